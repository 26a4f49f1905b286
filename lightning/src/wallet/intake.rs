//! Each request counts once, however often it comes. Whoever sends one again has missed the answer, and gets the same one.

use nostr::prelude::{Event, EventId, Timestamp};
use std::collections::{BTreeSet, HashMap};

/// Requests older than this are not taken, so nothing of them need be remembered longer.
const WINDOW_SECS: u64 = 3600;

/// The requests that have come, by their dates, and what was answered.
#[derive(Debug, Default)]
pub(crate) struct Intake {
    taken: BTreeSet<(Timestamp, EventId)>,
    answers: HashMap<EventId, Event>,
}

impl Intake {
    /// Notes a request before anything is done about it; says whether it is the first time.
    pub(crate) fn take(&mut self, created_at: Timestamp, id: EventId, now: Timestamp) -> bool {
        let oldest = Timestamp::from(now.as_secs().saturating_sub(WINDOW_SECS));
        while self.taken.first().is_some_and(|(date, _)| *date < oldest) {
            if let Some((_, forgotten)) = self.taken.pop_first() {
                self.answers.remove(&forgotten);
            }
        }
        created_at >= oldest && self.taken.insert((created_at, id))
    }

    pub(crate) fn answered(&mut self, request: EventId, response: Event) {
        self.answers.insert(request, response);
    }

    pub(crate) fn answer(&self, request: &EventId) -> Option<&Event> {
        self.answers.get(request)
    }
}

#[cfg(test)]
mod tests {
    use super::{Intake, WINDOW_SECS};
    use nostr::prelude::{EventId, Keys, Kind, Timestamp, UnsignedEvent};
    use rialto_relay::sign::sign;

    #[test]
    fn a_request_is_taken_once_and_not_when_it_is_forgotten() {
        let mut intake = Intake::default();
        let id = EventId::from_byte_array([7; 32]);
        let (made, now) = (Timestamp::from(10_000), Timestamp::from(10_001));
        assert!(intake.take(made, id, now));
        assert!(!intake.take(made, id, now));
        let keys = Keys::generate();
        let response = sign(&keys, UnsignedEvent::new(keys.public_key(), now, Kind::Custom(23195), [], "done"));
        intake.answered(id, response.clone());
        assert_eq!(intake.answer(&id), Some(&response));
        let later = Timestamp::from(made.as_secs() + WINDOW_SECS + 1);
        assert!(!intake.take(made, id, later));
        assert!(intake.taken.is_empty() && intake.answers.is_empty());
    }
}
