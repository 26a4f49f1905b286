//! Which events we have published ourselves: relays bring them back to whoever asks for what we say.

use nostr::prelude::EventId;
use std::collections::HashSet;
use std::time::Duration;
use tokio::time::Instant;

/// How long an event of ours is remembered, at least; at most twice as long.
pub const REMEMBERED: Duration = Duration::from_secs(60);

/// Two generations: when the younger is old enough it becomes the older, and the older is forgotten.
#[derive(Debug, Default)]
pub(crate) struct Own {
    young: HashSet<u64>,
    old: HashSet<u64>,
    since: Option<Instant>,
}

/// Ids are hashes: a part of one tells events of one process apart.
fn part(id: &EventId) -> u64 {
    id.as_bytes().iter().take(8).fold(0, |part, byte| part << 8 | u64::from(*byte))
}

impl Own {
    pub(crate) fn note(&mut self, id: &EventId, now: Instant) {
        let since = *self.since.get_or_insert(now);
        if now - since >= REMEMBERED {
            // Nothing of a generation that ended long ago is young enough to stay.
            let is_recent = now - since < 2 * REMEMBERED;
            let young = std::mem::take(&mut self.young);
            self.old = if is_recent { young } else { HashSet::new() };
            self.since = Some(now);
        }
        self.young.insert(part(id));
    }

    pub(crate) fn contains(&self, id: &EventId) -> bool {
        self.young.contains(&part(id)) || self.old.contains(&part(id))
    }
}

#[cfg(test)]
mod tests {
    use super::{Own, REMEMBERED};
    use nostr::prelude::EventId;
    use tokio::time::Instant;

    #[test]
    fn events_are_remembered_for_a_while() {
        let id = |number: u8| EventId::from_byte_array([number; 32]);
        let (mut own, start) = (Own::default(), Instant::now());
        own.note(&id(1), start);
        own.note(&id(2), start + REMEMBERED - REMEMBERED / 10);
        own.note(&id(3), start + REMEMBERED);
        assert!([1, 2, 3].iter().all(|number| own.contains(&id(*number))));
        own.note(&id(4), start + 2 * REMEMBERED - REMEMBERED / 10);
        assert!(own.contains(&id(2)), "not older than that");
        own.note(&id(5), start + 2 * REMEMBERED);
        assert!(!own.contains(&id(1)) && own.contains(&id(3)));
    }
}
