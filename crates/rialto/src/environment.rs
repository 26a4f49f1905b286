//! The process environment, read once, and the registry of every `RIALTO_*` variable.
//!
//! Code asks this snapshot instead of the process, so that tests can give their own. An empty variable counts as unset.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use crate::suggest::nearest;

pub(crate) const CONFIG: &str = "RIALTO_CONFIG";
pub(crate) const CONTEXT_CACHE_ROOT: &str = "CONTEXT_CACHE_ROOT";
pub(crate) const CONTEXT_TOOL_TIMEOUT_SECS: &str = "CONTEXT_TOOL_TIMEOUT_SECS";
pub(crate) const ERA: &str = "RIALTO_ERA";
pub(crate) const LIGHTNING: &str = "RIALTO_LIGHTNING";
pub(crate) const LOG: &str = "RIALTO_LOG";
pub(crate) const MAX_TIMEOUT_SECS: &str = "RIALTO_MAX_TIMEOUT_SECS";
pub(crate) const NOSTR_PASSPHRASE: &str = "RIALTO_NOSTR_PASSPHRASE";
pub(crate) const PREFIX: &str = "RIALTO_PREFIX";
pub(crate) const RELAYS: &str = "RIALTO_RELAYS";
pub(crate) const STARTUP_GRACE_MS: &str = "RIALTO_STARTUP_GRACE_MS";
pub(crate) const TIMEOUT_SECS: &str = "RIALTO_TIMEOUT_SECS";

/// Every variable of ours with its meaning. One that is not in this list is reported as unknown.
const REGISTRY: [(&str, &str); 10] = [
    (CONFIG, "files to read instead of project and user file, separated like PATH"),
    (ERA, "protocol era of servers that set none: auto, legacy or modern"),
    (LIGHTNING, "the program with the Lightning network for `rialto demo --paid`"),
    (LOG, "how much is said without -q and -v: quiet, info, verbose or debug"),
    (MAX_TIMEOUT_SECS, "seconds that progress may extend one call to at most"),
    (NOSTR_PASSPHRASE, "what seals and opens the secret keys of the Nostr tools (NIP-49)"),
    (PREFIX, "when names get their server in front: always, conflict or never"),
    (RELAYS, "relays to use where no --relay is given, separated by spaces or commas"),
    (STARTUP_GRACE_MS, "milliseconds that lists wait for servers that are still starting"),
    (TIMEOUT_SECS, "seconds that one call may take without a sign of life"),
];

/// Variables of the machine that we follow as well.
const FOLLOWED: [(&str, &str); 5] = [
    ("CODEX_HOME", "where Codex keeps its file, for `rialto connect codex`"),
    (CONTEXT_CACHE_ROOT, "the folder with caches where no --root is given"),
    (CONTEXT_TOOL_TIMEOUT_SECS, "seconds that one call of `rialto mcp context` may take"),
    ("NO_COLOR", "any value switches colour off, unless --color always is given"),
    ("XDG_*_HOME", "CONFIG, DATA, STATE and CACHE: where files live, see `rialto paths`"),
];

/// The section of `rialto --help`.
pub(crate) fn help_section() -> String {
    let lines: Vec<String> =
        REGISTRY.iter().chain(&FOLLOWED).map(|(name, meaning)| format!("  {name:<24} {meaning}")).collect();
    format!("Environment:\n{}", lines.join("\n"))
}

/// A variable as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Variable {
    Unset,
    Text(String),
    /// Set, but not valid UTF-8. The bytes are not kept: they may be a secret.
    NotText,
}

/// A snapshot of environment variables. Values are not printable: many hold secrets.
pub(crate) struct Environment {
    values: BTreeMap<OsString, OsString>,
}

impl Environment {
    pub(crate) fn of_process() -> Self {
        Self { values: std::env::vars_os().collect() }
    }

    #[cfg(test)]
    pub(crate) fn of(values: &[(&str, &str)]) -> Self {
        Self { values: values.iter().map(|(name, value)| (name.into(), value.into())).collect() }
    }

    /// The raw value; `None` when unset or empty.
    pub(crate) fn raw(&self, name: &str) -> Option<&OsStr> {
        self.values.get(OsStr::new(name)).map(OsString::as_os_str).filter(|value| !value.is_empty())
    }

    /// The value as text, where an empty one is kept: `${NAME}` in a configuration file may be meant to be empty.
    pub(crate) fn variable(&self, name: &str) -> Variable {
        match self.values.get(OsStr::new(name)).map(|value| value.to_str()) {
            None => Variable::Unset,
            Some(Some(text)) => Variable::Text(text.to_owned()),
            Some(None) => Variable::NotText,
        }
    }

    /// An absolute path; anything else counts as unset.
    pub(crate) fn absolute_path(&self, name: &str) -> Option<PathBuf> {
        self.raw(name).map(PathBuf::from).filter(|path| path.is_absolute())
    }

    pub(crate) fn home(&self) -> Option<PathBuf> {
        self.absolute_path("HOME").or_else(|| self.absolute_path("USERPROFILE"))
    }

    /// One sentence for each `RIALTO_*` variable that nobody reads.
    pub(crate) fn unknown_names(&self) -> Vec<String> {
        let known = |name: &str| REGISTRY.iter().any(|(known, _)| *known == name);
        let names = self.values.keys().map(|name| name.to_string_lossy());
        names
            .filter(|name| name.starts_with("RIALTO_") && !known(name))
            .map(|name| match nearest(&name, REGISTRY.iter().map(|(known, _)| *known)) {
                Some(meant) => format!("unknown environment variable `{name}`: did you mean `{meant}`?"),
                None => format!("unknown environment variable `{name}`: it has no effect"),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{Environment, REGISTRY};

    #[test]
    fn registry_is_sorted_and_prefixed() {
        assert!(REGISTRY.is_sorted());
        assert!(REGISTRY.iter().all(|(name, _)| name.starts_with("RIALTO_")));
    }

    #[test]
    fn unknown_names_suggest_the_nearest() {
        let environment = Environment::of(&[("RIALTO_PREFX", "x"), ("RIALTO_LOG", "info"), ("PATH", "/bin")]);
        assert_eq!(
            environment.unknown_names(),
            ["unknown environment variable `RIALTO_PREFX`: did you mean `RIALTO_PREFIX`?"]
        );
    }
}
