//! The one gate that every event passes: its id is recomputed, then its signature checked. Nothing behind it sees an event
//! that has not passed.
//!
//! The same event usually comes from several relays. A copy that is the same byte for byte as one that has passed costs a
//! hash and no more. Any other copy is checked like a new event before its id is looked at, so that nobody can put other
//! content under a known id.

use nostr::prelude::{Event, EventId};
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, PoisonError};

/// Longer events are not read at all. No relay that we know of passes on more.
pub const MAX_EVENT_BYTES: usize = 512 * 1024;

/// Events with more tags than this are not worth the check of their signature.
const MAX_TAGS: usize = 5_000;

/// How many events one generation remembers; two are kept. Copies of older ones are checked again, at the cost of that.
const GENERATION: usize = 7_000;

/// What the gate found.
#[derive(Debug)]
pub enum Passed {
    New(Box<Event>),
    /// Has passed before.
    Repeat(EventId),
}

/// Why an event did not pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Forged {
    #[error("longer than the limit")]
    TooLong,
    #[error("not an event")]
    Malformed,
    #[error("its id is not the hash of its content")]
    Id,
    #[error("its signature does not fit")]
    Signature,
}

/// Checks events and remembers which have passed.
#[derive(Debug, Default)]
pub struct Gate {
    hasher: RandomState,
    seen: Mutex<Seen>,
}

/// Two generations: when the younger is full it becomes the older, and the older is forgotten.
#[derive(Debug, Default)]
struct Seen {
    young: Generation,
    old: Generation,
}

#[derive(Debug, Default)]
struct Generation {
    /// From the hash of an event's text, as it was sent, to its id.
    texts: HashMap<u64, EventId>,
    ids: HashSet<EventId>,
}

impl Gate {
    /// Takes the JSON text of an event.
    pub fn pass(&self, text: &str) -> Result<Passed, Forged> {
        if text.len() > MAX_EVENT_BYTES {
            return Err(Forged::TooLong);
        }
        // Keyed, so that nobody can prepare a text that hides another.
        let hash = self.hasher.hash_one(text);
        if let Some(id) = self.seen(|seen| seen.text(hash)) {
            return Ok(Passed::Repeat(id));
        }
        let event = check(text)?;
        let is_new = self.seen(|seen| seen.insert(hash, event.id));
        Ok(if is_new { Passed::New(Box::new(event)) } else { Passed::Repeat(event.id) })
    }

    /// Notes an event of our own as it is sent: when a relay brings it back, it has passed.
    pub(crate) fn note(&self, text: &str, id: EventId) {
        let hash = self.hasher.hash_one(text);
        self.seen(|seen| seen.insert(hash, id));
    }

    fn seen<T>(&self, look: impl FnOnce(&mut Seen) -> T) -> T {
        look(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Checks an event without remembering it.
pub fn check(text: &str) -> Result<Event, Forged> {
    if text.len() > MAX_EVENT_BYTES {
        return Err(Forged::TooLong);
    }
    let event = Event::from_json(text).map_err(|_| Forged::Malformed)?;
    if event.tags.len() > MAX_TAGS {
        return Err(Forged::Malformed);
    }
    if !event.verify_id() {
        return Err(Forged::Id);
    }
    if !event.verify_signature() {
        return Err(Forged::Signature);
    }
    Ok(event)
}

impl Seen {
    fn text(&self, hash: u64) -> Option<EventId> {
        self.young.texts.get(&hash).or_else(|| self.old.texts.get(&hash)).copied()
    }

    /// Notes an event that has passed; says whether it is the first with its id.
    fn insert(&mut self, hash: u64, id: EventId) -> bool {
        if self.young.texts.len() >= GENERATION {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.texts.insert(hash, id);
        let is_known = self.old.ids.contains(&id);
        self.young.ids.insert(id) && !is_known
    }
}

#[cfg(test)]
mod tests {
    use super::{Forged, Gate, MAX_EVENT_BYTES, Passed};
    use crate::sign::sign;
    use nostr::prelude::{Event, Keys, Kind, Timestamp, UnsignedEvent};

    fn event(content: &str) -> Event {
        let keys = Keys::generate();
        sign(&keys, UnsignedEvent::new(keys.public_key(), Timestamp::from(1), Kind::TextNote, [], content))
    }

    #[test]
    fn a_copy_is_a_repeat_in_whatever_form() {
        let gate = Gate::default();
        let event = event("hi");
        let text = event.as_json();
        assert!(matches!(gate.pass(&text), Ok(Passed::New(_))));
        assert!(matches!(gate.pass(&text), Ok(Passed::Repeat(id)) if id == event.id));
        let spaced = text.replacen(':', ": ", 1);
        assert!(matches!(gate.pass(&spaced), Ok(Passed::Repeat(id)) if id == event.id));
    }

    #[test]
    fn other_content_under_a_known_id_is_refused() {
        let gate = Gate::default();
        let text = event("pay alice").as_json();
        gate.pass(&text).unwrap();
        assert_eq!(gate.pass(&text.replace("alice", "mallo")).unwrap_err(), Forged::Id);
        // A second time it must not have become known.
        assert_eq!(gate.pass(&text.replace("alice", "mallo")).unwrap_err(), Forged::Id);
    }

    #[test]
    fn forged_events_are_refused_however_often_they_come() {
        let gate = Gate::default();
        let (one, other) = (event("a"), event("b"));
        let swapped =
            Event::new(one.id, one.pubkey, one.created_at, one.kind, one.tags.clone(), one.content.clone(), other.sig);
        for _ in 0..2 {
            assert_eq!(gate.pass(&swapped.as_json()).unwrap_err(), Forged::Signature);
        }
        assert_eq!(gate.pass("{}").unwrap_err(), Forged::Malformed);
        assert_eq!(gate.pass(&" ".repeat(MAX_EVENT_BYTES + 1)).unwrap_err(), Forged::TooLong);
        assert!(matches!(gate.pass(&one.as_json()), Ok(Passed::New(_))), "the genuine one is not harmed");
    }
}
