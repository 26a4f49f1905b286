//! Which requests have been here: the part of the ledger that is looked at for every event.
//!
//! There are two generations. The older one is dropped when all its requests have left the window in which they would be
//! taken, so that forgetting never lets one run twice; whatever is not known here is still refused by the ledger.

use nostr::prelude::{EventId, Timestamp};
use rialto_ledger::job::Stage;
use rialto_ledger::ledger::Seen;
use std::collections::HashMap;

/// What has become of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    New,
    Open,
    /// Answered, at this time.
    Done(u32),
}

/// Half of an id is enough to tell requests apart, and half the memory.
type Key = [u8; 16];

fn key(id: &[u8; 32]) -> Key {
    let mut half = [0; 16];
    half.copy_from_slice(&id[..16]);
    half
}

/// Seconds in 32 bits, which last until the year 2106.
fn short(seconds: u64) -> u32 {
    u32::try_from(seconds).unwrap_or(u32::MAX)
}

#[derive(Debug, Default)]
pub(crate) struct Memory {
    young: HashMap<Key, Known>,
    old: HashMap<Key, Known>,
    /// When the younger one began.
    since: u64,
    keep: u64,
}

impl Memory {
    /// Requests are remembered for at least `keep` seconds.
    pub(crate) fn new(keep: u64, now: Timestamp, seen: &[Seen]) -> Self {
        let known = |seen: &Seen| match seen.stage {
            Stage::Done => Known::Done(short(seen.at)),
            _ => Known::Open,
        };
        let young = seen.iter().map(|seen| (key(&seen.id), known(seen))).collect();
        Self { young, old: HashMap::new(), since: now.as_secs(), keep }
    }

    pub(crate) fn get(&self, id: &EventId) -> Known {
        let key = key(id.as_bytes());
        self.young.get(&key).or_else(|| self.old.get(&key)).copied().unwrap_or(Known::New)
    }

    pub(crate) fn opened(&mut self, id: &EventId, now: Timestamp) {
        self.put(id, Known::Open, now);
    }

    pub(crate) fn done(&mut self, id: &EventId, now: Timestamp) {
        self.put(id, Known::Done(short(now.as_secs())), now);
    }

    fn put(&mut self, id: &EventId, known: Known, now: Timestamp) {
        if now.as_secs() >= self.since.saturating_add(self.keep) {
            self.old = std::mem::take(&mut self.young);
            self.since = now.as_secs();
        }
        self.young.insert(key(id.as_bytes()), known);
    }
}

#[cfg(test)]
mod tests {
    use super::{Known, Memory};
    use nostr::prelude::{EventId, Timestamp};
    use rialto_ledger::job::Stage;
    use rialto_ledger::ledger::Seen;

    #[test]
    fn requests_are_forgotten_only_when_they_would_not_be_taken_any_more() {
        let id = |number: u8| EventId::from_byte_array([number; 32]);
        let seen =
            [(1, Stage::Done), (2, Stage::Quoted)].map(|(number, stage)| Seen { id: [number; 32], stage, at: 990 });
        let mut memory = Memory::new(100, Timestamp::from(1000), &seen);
        assert_eq!(
            (memory.get(&id(1)), memory.get(&id(2)), memory.get(&id(3))),
            (Known::Done(990), Known::Open, Known::New)
        );
        memory.opened(&id(3), Timestamp::from(1099));
        memory.opened(&id(4), Timestamp::from(1100));
        assert_eq!(memory.get(&id(1)), Known::Done(990), "one generation back");
        memory.done(&id(4), Timestamp::from(1199));
        assert_eq!(memory.get(&id(3)), Known::Open, "100 seconds after it came");
        memory.opened(&id(5), Timestamp::from(1200));
        assert_eq!((memory.get(&id(3)), memory.get(&id(4))), (Known::New, Known::Done(1199)));
    }
}
