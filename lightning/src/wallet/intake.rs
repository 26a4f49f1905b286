//! Each request counts once, however often it comes.

use nostr::prelude::{EventId, Timestamp};
use std::collections::BTreeSet;

/// Requests older than this are not taken, so their ids need not be remembered longer.
const WINDOW_SECS: u64 = 3600;

/// The requests that have come, by their dates.
#[derive(Debug, Default)]
pub(crate) struct Intake(BTreeSet<(Timestamp, EventId)>);

impl Intake {
    /// Notes a request before anything is done about it; says whether it is the first time.
    pub(crate) fn take(&mut self, created_at: Timestamp, id: EventId, now: Timestamp) -> bool {
        let oldest = Timestamp::from(now.as_secs().saturating_sub(WINDOW_SECS));
        while self.0.first().is_some_and(|(date, _)| *date < oldest) {
            self.0.pop_first();
        }
        created_at >= oldest && self.0.insert((created_at, id))
    }
}

#[cfg(test)]
mod tests {
    use super::{Intake, WINDOW_SECS};
    use nostr::prelude::{EventId, Timestamp};

    #[test]
    fn a_request_is_taken_once_and_not_when_it_is_forgotten() {
        let mut intake = Intake::default();
        let id = EventId::from_byte_array([7; 32]);
        let (made, now) = (Timestamp::from(10_000), Timestamp::from(10_001));
        assert!(intake.take(made, id, now));
        assert!(!intake.take(made, id, now));
        let later = Timestamp::from(made.as_secs() + WINDOW_SECS + 1);
        assert!(!intake.take(made, id, later));
        assert!(intake.0.is_empty());
    }
}
