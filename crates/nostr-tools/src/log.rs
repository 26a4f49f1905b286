//! What was done with the keys, one line for each step, in files that are only ever appended to.
//!
//! Whatever changes, signs or publishes something is written down before it happens, and again with its outcome: if the
//! first line cannot be written, nothing happens. Secrets are never part of a line.

mod pages;

use self::pages::Pages;
use crate::failure::Failure;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// How a call went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It is about to happen.
    Begun,
    Done,
    /// The operator or the user did not allow it.
    Refused,
    Failed,
}

impl Outcome {
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Begun => "begun",
            Outcome::Done => "done",
            Outcome::Refused => "refused",
            Outcome::Failed => "failed",
        }
    }
}

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Seconds since 1970.
    pub at: u64,
    /// Which call, so that its two lines can be told to belong together.
    pub call: String,
    pub tool: String,
    pub outcome: Outcome,
    /// The label of the active key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Who called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub arguments: Map<String, Value>,
    /// The event that was signed or published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// Why it failed, in a word and in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// The log of one directory.
#[derive(Debug)]
pub struct Log {
    pages: Pages,
    next: AtomicU64,
}

impl Log {
    pub fn new(directory: &Path) -> Self {
        Self { pages: Pages::new(directory), next: AtomicU64::new(1) }
    }

    /// The file that lines are added to.
    pub fn path(&self) -> &Path {
        self.pages.current()
    }

    /// A name for a call that no other has, as long as processes do not start twice in a second with the same number.
    pub(crate) fn name_call(&self, at: u64) -> String {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        format!("{at:x}-{:x}-{number:x}", std::process::id())
    }

    /// Adds a line.
    pub(crate) fn append(&self, line: &Line) -> Result<(), Failure> {
        let failed = |error: String| {
            Failure::internal(format!("the log `{}` cannot be written: {error}", self.path().display()))
        };
        let text = serde_json::to_vec(line).map_err(|error| failed(error.to_string()))?;
        self.pages.append(&text).map_err(|error| failed(error.to_string()))
    }

    /// The lines, oldest first. What cannot be understood is passed over: the end may be half a line after a crash.
    pub fn read(&self) -> std::io::Result<Vec<Line>> {
        let mut lines = Vec::new();
        for page in self.pages.open()? {
            for text in BufReader::new(page).split(b'\n') {
                lines.extend(serde_json::from_slice(&text?).ok());
            }
        }
        Ok(lines)
    }
}

#[cfg(test)]
mod tests {
    use super::{Line, Log, Outcome};
    use serde_json::Map;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn lines_are_added_and_read_again() {
        let home = tempfile::tempdir().unwrap();
        let log = Log::new(home.path());
        assert!(log.read().unwrap().is_empty());
        let mut line = Line {
            at: 1,
            call: log.name_call(1),
            tool: "nostr_events_post_text".to_owned(),
            outcome: Outcome::Begun,
            key: Some("me".to_owned()),
            client: None,
            arguments: Map::new(),
            event: None,
            reason: None,
            message: None,
        };
        log.append(&line).unwrap();
        line.outcome = Outcome::Done;
        log.append(&line).unwrap();
        std::fs::OpenOptions::new()
            .append(true)
            .open(log.path())
            .and_then(|mut file| std::io::Write::write_all(&mut file, b"{half"))
            .unwrap();
        let outcomes: Vec<Outcome> = log.read().unwrap().iter().map(|line| line.outcome).collect();
        assert_eq!(outcomes, [Outcome::Begun, Outcome::Done]);
        assert_eq!(std::fs::metadata(log.path()).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
