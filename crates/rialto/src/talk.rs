//! Talk: everything said to people while a command works. It goes to stderr, because stdout belongs to data.
//!
//! This is deliberately not a logging framework: a command line tool needs three levels, colour that can be switched
//! off, and one JSON object per line when a program is listening.

use std::io::{ErrorKind, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

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

/// What is said, and in which tone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Info,
    Warn,
    Verbose,
}

/// A voice for places that must not wait: whoever reads our stderr may be slow, and a gateway has other things to do.
#[derive(Debug)]
pub(crate) struct Aside {
    lines: SyncSender<(Tone, String)>,
    lost: Arc<AtomicUsize>,
}

impl Aside {
    /// How many lines may wait to be written.
    const WAITING: usize = 4096;

    pub(crate) fn new(talk: Talk) -> (Self, AsideEnd) {
        let (lines, waiting) = sync_channel::<(Tone, String)>(Self::WAITING);
        let (ended, end) = sync_channel(1);
        let lost = Arc::new(AtomicUsize::new(0));
        let counter = lost.clone();
        std::thread::spawn(move || {
            for (tone, line) in waiting {
                match tone {
                    Tone::Info => talk.info(&line),
                    Tone::Warn => talk.warn(&line),
                    Tone::Verbose => talk.verbose(&line),
                }
                let lost = counter.swap(0, Ordering::Relaxed);
                if lost > 0 {
                    talk.warn(&format!("{lost} lines were lost here, because nobody read them in time"));
                }
            }
            let _ = ended.send(());
        });
        (Self { lines, lost }, AsideEnd(end))
    }

    pub(crate) fn say(&self, tone: Tone, line: String) {
        if self.lines.try_send((tone, line)).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Waits for the last words of an [`Aside`] that has been dropped.
#[derive(Debug)]
pub(crate) struct AsideEnd(Receiver<()>);

impl AsideEnd {
    pub(crate) fn wait(self) {
        let _ = self.0.recv_timeout(Duration::from_secs(1));
    }
}

/// Writes to stderr. Nobody can be told when that fails, so the result is dropped.
pub(crate) fn write_talk(text: &str) {
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        match std::io::stderr().lock().write(rest) {
            Ok(written) => rest = &rest[written..],
            // It may be the same pipe as a standard output that must not block.
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::sleep(Duration::from_millis(5)),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
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
