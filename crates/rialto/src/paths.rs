//! Where files live: the XDG base directories, with a folder `rialto` in each.
//!
//! As the XDG specification asks, a variable that is empty or holds a relative path counts as unset.

use std::path::{Path, PathBuf};

use crate::environment::Environment;

/// The name of the file that is searched upward from the current directory.
pub(crate) const PROJECT_FILE: &str = "rialto.toml";

/// The four directories. Nothing is created by asking for them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Directories {
    /// What the user writes.
    pub(crate) config: PathBuf,
    /// What must be kept.
    pub(crate) data: PathBuf,
    /// What may be lost at some inconvenience: histories, logs.
    pub(crate) state: PathBuf,
    /// What can be made again.
    pub(crate) cache: PathBuf,
}

impl Directories {
    /// `None` when there is neither a home directory nor the XDG variable that would replace it.
    pub(crate) fn find(environment: &Environment) -> Option<Self> {
        let home = environment.home();
        let directory = |variable: &str, below_home: &str| {
            let base = match environment.absolute_path(variable) {
                Some(path) => path,
                None => home.as_ref()?.join(below_home),
            };
            Some(base.join("rialto"))
        };
        Some(Self {
            config: directory("XDG_CONFIG_HOME", ".config")?,
            data: directory("XDG_DATA_HOME", ".local/share")?,
            state: directory("XDG_STATE_HOME", ".local/state")?,
            cache: directory("XDG_CACHE_HOME", ".cache")?,
        })
    }

    /// The user's own configuration, read below the project's.
    pub(crate) fn user_file(&self) -> PathBuf {
        self.config.join("config.toml")
    }
}

/// The nearest `rialto.toml` from `start` upward. The search ends after the home directory, so that a file above it,
/// which belongs to somebody else, is never picked up from inside.
pub(crate) fn find_project_file(start: &Path, home: Option<&Path>) -> Option<PathBuf> {
    // The current directory comes without symbolic links, the home directory as its owner wrote it.
    let home = home.map(|home| home.canonicalize().unwrap_or_else(|_| home.to_owned()));
    for directory in start.ancestors() {
        let candidate = directory.join(PROJECT_FILE);
        if candidate.is_file() {
            return Some(candidate);
        }
        if Some(directory) == home.as_deref() {
            break;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::Directories;
    use crate::environment::Environment;

    #[test]
    fn relative_and_empty_xdg_values_are_ignored() {
        let environment = Environment::of(&[
            ("HOME", "/people/ada"),
            ("XDG_CONFIG_HOME", "/elsewhere"),
            ("XDG_DATA_HOME", "relative/data"),
            ("XDG_STATE_HOME", ""),
        ]);
        let found = Directories::find(&environment).unwrap();
        assert_eq!(found.config.to_str(), Some("/elsewhere/rialto"));
        assert_eq!(found.data.to_str(), Some("/people/ada/.local/share/rialto"));
        assert_eq!(found.state.to_str(), Some("/people/ada/.local/state/rialto"));
        assert_eq!(found.cache.to_str(), Some("/people/ada/.cache/rialto"));
    }

    #[test]
    fn no_home_and_no_variable_gives_nothing() {
        assert_eq!(Directories::find(&Environment::of(&[])), None);
    }
}
