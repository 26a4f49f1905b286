//! Talk: everything said to people while a command works. It goes to stderr, because stdout belongs to data.
//!
//! This is deliberately not a logging framework: a command line tool needs three levels, colour that can be switched
//! off, and one JSON object per line when a program is listening.

use std::io::{IsTerminal, Write};

use serde_json::json;

use crate::environment::Environment;

/// How much is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// Errors only.
    Quiet,
    /// What a person should know.
    Info,
    /// What helps to understand a decision.
    Verbose,
    /// Everything.
    Debug,
}

impl Level {
    /// The names accepted by `RIALTO_LOG`.
    pub(crate) const NAMES: [(&'static str, Level); 4] =
        [("quiet", Level::Quiet), ("info", Level::Info), ("verbose", Level::Verbose), ("debug", Level::Debug)];
}

/// Whether labels are coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Paint {
    Always,
    Never,
}

impl Paint {
    /// Colour on a terminal, unless `NO_COLOR` (any non-empty value) or `TERM=dumb` ask for none.
    pub(crate) fn automatic(environment: &Environment, listener: Listener) -> Self {
        let refused = environment.raw("NO_COLOR").is_some();
        let dumb = environment.raw("TERM").is_some_and(|value| value == "dumb");
        match listener {
            Listener::Terminal if !refused && !dumb => Paint::Always,
            _ => Paint::Never,
        }
    }

    pub(crate) fn error(self, label: &str) -> String {
        self.wrap("1;31", label)
    }

    pub(crate) fn hint(self, label: &str) -> String {
        self.wrap("1;36", label)
    }

    fn warning(self, label: &str) -> String {
        self.wrap("1;33", label)
    }

    fn wrap(self, style: &str, label: &str) -> String {
        match self {
            Paint::Always => format!("\u{1b}[{style}m{label}\u{1b}[0m"),
            Paint::Never => label.to_owned(),
        }
    }
}

/// What stderr leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listener {
    Terminal,
    FileOrPipe,
}

impl Listener {
    pub(crate) fn of_stderr() -> Self {
        if std::io::stderr().is_terminal() { Listener::Terminal } else { Listener::FileOrPipe }
    }
}

/// In which shape data and talk are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Text,
    Json,
}

/// The voice of one process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Talk {
    pub(crate) level: Level,
    pub(crate) paint: Paint,
    pub(crate) format: Format,
}

impl Talk {
    /// Something a person should know, such as what was written where.
    pub(crate) fn info(&self, message: &str) {
        self.say(Level::Info, "info", message);
    }

    /// Something that is probably not as intended, though the command goes on.
    pub(crate) fn warn(&self, message: &str) {
        self.say(Level::Info, "warning", message);
    }

    /// Why something was decided.
    pub(crate) fn verbose(&self, message: &str) {
        self.say(Level::Verbose, "verbose", message);
    }

    fn say(&self, level: Level, label: &str, message: &str) {
        if level > self.level {
            return;
        }
        let line = match (self.format, label) {
            (Format::Json, _) => json!({ label: { "message": message } }).to_string(),
            (Format::Text, "warning") => format!("{} {message}", self.paint.warning("warning:")),
            (Format::Text, _) => message.to_owned(),
        };
        write_talk(&format!("{line}\n"));
    }
}

/// Writes to stderr. Nobody can be told when that fails, so the result is dropped.
pub(crate) fn write_talk(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::{Listener, Paint};
    use crate::environment::Environment;

    #[test]
    fn colour_is_for_willing_terminals_only() {
        let cases = [
            ("TERM", "xterm", Listener::Terminal, Paint::Always),
            ("TERM", "xterm", Listener::FileOrPipe, Paint::Never),
            ("NO_COLOR", "1", Listener::Terminal, Paint::Never),
            ("NO_COLOR", "0", Listener::Terminal, Paint::Never),
            ("NO_COLOR", "", Listener::Terminal, Paint::Always),
            ("TERM", "dumb", Listener::Terminal, Paint::Never),
        ];
        for (name, value, listener, expected) in cases {
            let environment = Environment::of(&[(name, value)]);
            assert_eq!(Paint::automatic(&environment, listener), expected, "{name}={value}");
        }
    }
}
