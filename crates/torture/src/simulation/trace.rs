//! What has happened, in order.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

#[derive(Clone, Debug, Hash, PartialEq, Eq)]
struct Record {
    at: u64,
    what: &'static str,
    job: Option<usize>,
    more: &'static str,
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>8}.{:03}  ", self.at / 1000, self.at % 1000)?;
        match self.job {
            Some(job) => write!(f, "request {job:<3} ")?,
            None => write!(f, "{:12}", "")?,
        }
        write!(f, "{}{}{}", self.what, if self.more.is_empty() { "" } else { " " }, self.more)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace(Vec<Record>);

impl Trace {
    pub(super) fn add(&mut self, at: u64, what: &'static str, job: Option<usize>, more: &'static str) {
        self.0.push(Record { at, what, job, more });
    }

    /// The same for the same history, and for hardly any other.
    pub fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.0.hash(&mut hasher);
        hasher.finish()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The last lines, or all.
    pub fn last(&self, lines: usize) -> String {
        let skipped = self.0.len().saturating_sub(lines);
        self.0[skipped..].iter().map(|record| format!("{record}\n")).collect()
    }
}
