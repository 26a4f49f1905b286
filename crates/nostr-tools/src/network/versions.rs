//! When we last wrote each event that replaces an earlier one.
//!
//! Times are in seconds, and of two versions of one second relays keep the one with the smaller id, whichever came last. So
//! a version is at least a second later than the one before it.

use nostr::prelude::{Event, Kind, PublicKey, Timestamp};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// More than anybody writes in a second.
const MOST: usize = 1_000;

/// The newest versions that we know of, as far as they could be in the way.
#[derive(Debug, Default)]
pub(crate) struct Versions(Mutex<HashMap<(PublicKey, u16, String), u64>>);

impl Versions {
    /// The time of the next version, which nobody else gets.
    pub(crate) fn next(&self, who: PublicKey, kind: Kind, identifier: &str, now: Timestamp) -> Timestamp {
        if !kind.is_replaceable() && !kind.is_addressable() {
            return now;
        }
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // What is in the past is in nobody's way.
        known.retain(|_, time| *time >= now.as_secs());
        if known.len() >= MOST {
            known.clear();
        }
        let last = known.entry((who, kind.as_u16(), identifier.to_owned())).or_default();
        *last = now.as_secs().max(last.saturating_add(1));
        Timestamp::from(*last)
    }

    /// A version that relays have.
    pub(crate) fn saw(&self, event: &Event) {
        let identifier = event.tags.identifier().unwrap_or_default().to_string();
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let last = known.entry((event.pubkey, event.kind.as_u16(), identifier)).or_default();
        *last = event.created_at.as_secs().max(*last);
    }
}

#[cfg(test)]
mod tests {
    use super::Versions;
    use nostr::prelude::{Keys, Kind, Tag, Timestamp, UnsignedEvent};
    use rialto_relay::sign::sign;

    #[test]
    fn no_two_versions_have_one_time() {
        let versions = Versions::default();
        let keys = Keys::generate();
        let next = |kind: u16, name: &str, now: u64| {
            versions.next(keys.public_key(), Kind::from(kind), name, Timestamp::from(now)).as_secs()
        };
        assert_eq!([next(30009, "a", 50), next(30009, "a", 50), next(30009, "a", 50)], [50, 51, 52]);
        assert_eq!([next(30009, "b", 50), next(10000, "", 50), next(30009, "a", 60)], [50, 50, 60]);
        assert_eq!([next(1, "", 50), next(1, "", 50)], [50, 50], "what replaces nothing needs no place");
        let tags = [Tag::identifier("c")];
        let ahead = UnsignedEvent::new(keys.public_key(), Timestamp::from(90), Kind::from(30009), tags, "");
        versions.saw(&sign(&keys, ahead));
        assert_eq!(next(30009, "c", 60), 91, "the clock of another client may be ahead of ours");
    }
}
