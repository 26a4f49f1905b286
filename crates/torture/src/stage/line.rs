//! Lines of the protocol as raw text, and waiting for them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use serde_json::value::RawValue;

/// How long a test waits for something that must come.
pub const PATIENCE: Duration = Duration::from_secs(8);

/// One line, as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line(pub String);

impl Line {
    /// The raw text of the value at a path of keys.
    pub fn find(&self, path: &[&str]) -> Option<String> {
        let mut text = self.0.clone();
        for key in path {
            let members: BTreeMap<String, &RawValue> = serde_json::from_str(&text).ok()?;
            text = members.get(*key)?.get().to_owned();
        }
        Some(text)
    }

    /// The same where the value must be there.
    pub fn raw(&self, path: &[&str]) -> String {
        self.find(path).unwrap_or_else(|| panic!("no {path:?} in {}", self.0))
    }

    pub fn id(&self) -> String {
        self.raw(&["id"])
    }

    pub fn has_id(&self, id: &str) -> bool {
        self.find(&["method"]).is_none() && self.find(&["id"]).as_deref() == Some(id)
    }

    pub fn is_method(&self, method: &str) -> bool {
        self.find(&["method"]).is_some_and(|found| found == format!("\"{method}\""))
    }

    /// The text, with replacements made one after the other; each must be there.
    pub fn with(&self, replacements: &[(&str, &str)]) -> String {
        replacements.iter().fold(self.0.clone(), |text, (from, to)| {
            assert!(text.contains(from), "no {from} in {text}");
            text.replacen(from, to, 1)
        })
    }
}

/// Lines that came, and those that will.
#[derive(Debug)]
pub struct Inbox {
    incoming: Receiver<Line>,
    /// Came, but nobody has asked for them yet.
    unclaimed: VecDeque<Line>,
}

impl Inbox {
    pub fn new(incoming: Receiver<Line>) -> Self {
        Self { incoming, unclaimed: VecDeque::new() }
    }

    /// The first line that fits, if one comes within `patience`.
    pub fn find(&mut self, patience: Duration, fits: impl Fn(&Line) -> bool) -> Option<Line> {
        if let Some(place) = self.unclaimed.iter().position(&fits) {
            return self.unclaimed.remove(place);
        }
        let deadline = Instant::now() + patience;
        loop {
            match self.incoming.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) if fits(&line) => return Some(line),
                Ok(line) => self.unclaimed.push_back(line),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return None,
            }
        }
    }

    /// What came and was not asked for.
    pub fn unclaimed(&mut self) -> Vec<Line> {
        self.unclaimed.extend(self.incoming.try_iter());
        self.unclaimed.iter().cloned().collect()
    }
}
