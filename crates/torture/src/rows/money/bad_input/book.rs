//! What was found for each case on each wire.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use crate::score::Score;

/// The cases of the table.
const CASES: u8 = 30;

struct Entry {
    number: u8,
    what: String,
    problem: Option<String>,
}

#[derive(Default)]
pub(super) struct Book(Mutex<Vec<Entry>>);

impl Book {
    pub(super) fn note(&self, number: u8, what: impl Into<String>, found: Result<(), String>) {
        let entry = Entry { number, what: what.into(), problem: found.err() };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(entry);
    }

    /// Notes whether something is as it should be.
    #[expect(clippy::needless_pass_by_value, reason = "what is compared is mostly made for it")]
    pub(super) fn equal<T: PartialEq + std::fmt::Debug>(
        &self,
        number: u8,
        what: impl Into<String>,
        found: T,
        wanted: T,
    ) {
        let is_right = found == wanted;
        self.note(number, what, if is_right { Ok(()) } else { Err(format!("{found:?} instead of {wanted:?}")) });
    }

    pub(super) fn score(&self, score: &mut Score) {
        let entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let wrong: Vec<&Entry> = entries.iter().filter(|entry| entry.problem.is_some()).collect();
        for entry in wrong.iter().take(20) {
            let problem = entry.problem.as_deref().unwrap_or_default();
            score.note(format!("{} ({}): {problem:.600}", entry.number, entry.what));
        }
        let tried: BTreeSet<u8> = entries.iter().map(|entry| entry.number).collect();
        let failed: BTreeSet<u8> = wrong.iter().map(|entry| entry.number).collect();
        score.exactly("cases met", tried.difference(&failed).count(), usize::from(CASES));
        score.exactly("answers as stated", entries.len() - wrong.len(), entries.len());
    }
}
