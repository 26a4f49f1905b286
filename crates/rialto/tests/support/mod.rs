//! Runs the real binary in a world of its own: an empty home, an empty project below it, no inherited variables.

#![allow(dead_code, reason = "not every test file uses all of it")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A home directory with a project in it, removed when dropped.
pub(crate) struct World {
    _guard: tempfile::TempDir,
    root: PathBuf,
    variables: Vec<(String, String)>,
    below: PathBuf,
}

/// What one run gave, with changing parts replaced by placeholders.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) exit: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl World {
    pub(crate) fn new() -> Self {
        let guard = tempfile::tempdir().unwrap();
        let root = guard.path().canonicalize().unwrap();
        let world = Self { _guard: guard, root, variables: Vec::new(), below: PathBuf::new() };
        fs::create_dir_all(world.project()).unwrap();
        world
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.home().join("project")
    }

    /// Writes a file of the project, or of the home directory when it begins with `~/`.
    pub(crate) fn file(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = match path.strip_prefix("~/") {
            Some(path) => self.home().join(path),
            None => self.project().join(path),
        };
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) fn variable(&mut self, name: &str, value: &str) {
        let value = value.replace("[HOME]", self.home().to_str().unwrap());
        self.variables.push((name.to_owned(), value));
    }

    /// Runs start in this directory below the project.
    pub(crate) fn below(&mut self, directory: &str) {
        self.below = directory.into();
        fs::create_dir_all(self.project().join(directory)).unwrap();
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Run {
        let output = Command::new(env!("CARGO_BIN_EXE_rialto"))
            .args(arguments)
            .env_clear()
            .env("HOME", self.home())
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .current_dir(self.project().join(&self.below))
            .output()
            .unwrap();
        let readable = |bytes: Vec<u8>| {
            let text = String::from_utf8(bytes).unwrap();
            let text = text.replace(self.home().to_str().unwrap(), "[HOME]").replace(&own_path(), "[RIALTO]");
            text.replace(env!("CARGO_PKG_VERSION"), "[VERSION]").replace('\u{1b}', "[ESC]")
        };
        Run {
            exit: output.status.code().unwrap_or(-1),
            stdout: readable(output.stdout),
            stderr: readable(output.stderr),
        }
    }
}

/// The whole path of the binary.
pub(crate) fn own_path() -> String {
    fs::canonicalize(env!("CARGO_BIN_EXE_rialto")).unwrap().into_os_string().into_string().unwrap()
}

/// The top of the repository.
pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}
