//! Announcements never go back: the newest that was ever seen of each service counts, also after a restart, however many
//! relays still serve an older one. Otherwise a relay could bring back a tool or a promise that its provider has withdrawn.

use nostr::prelude::{Event, EventId, Timestamp};
use rialto_store::{Changed, Document, Error};
use rialto_wire::service::{self, Service, Wire};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How far ahead of our clock an announcement may be dated: a minute, and another for clocks that differ.
const MAX_FUTURE: u64 = 120;

/// Services that are remembered; of more, those announced longest ago are forgotten.
const MAX_MARKS: usize = 10_000;

/// The newest announcement seen of one service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Mark {
    created_at: u64,
    id: String,
}

impl Mark {
    /// Of two with the same date the one with the lower id counts, as on relays.
    fn is_newer_than(&self, other: &Self) -> bool {
        (self.created_at, std::cmp::Reverse(&self.id)) > (other.created_at, std::cmp::Reverse(&other.id))
    }
}

type Marks = BTreeMap<String, Mark>;

/// What has been seen.
#[derive(Debug)]
pub struct Announcements {
    document: Option<Document>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    marks: Marks,
    is_unsaved: bool,
}

impl Announcements {
    /// Remembers in the file `announcements.json` of this directory.
    pub fn in_directory(directory: &Path) -> Result<Self, Error> {
        let document = Document::new(directory.join("announcements.json"));
        let marks = document.read()?;
        Ok(Self { document: Some(document), state: Mutex::new(State { marks, is_unsaved: false }) })
    }

    /// Remembers only as long as it lives.
    pub fn in_memory() -> Self {
        Self { document: None, state: Mutex::default() }
    }

    /// Where it remembers, if it does.
    pub(crate) fn directory(&self) -> Option<&Path> {
        self.document.as_ref().and_then(|document| document.path().parent())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads an announcement; `None` if it is none, is dated too far ahead, or a newer one has been seen.
    pub fn take(&self, event: &Event, now: Timestamp) -> Option<Service> {
        let service = service::read(event)?;
        if event.created_at.as_secs() > now.as_secs().saturating_add(MAX_FUTURE) {
            return None;
        }
        let mark = Mark { created_at: event.created_at.as_secs(), id: event.id.to_hex() };
        let key = key(&service);
        let mut state = self.state();
        match state.marks.get(&key) {
            Some(known) if *known == mark => return Some(service),
            Some(known) if !mark.is_newer_than(known) => return None,
            _ => {}
        }
        state.marks.insert(key, mark);
        state.is_unsaved = true;
        Some(service)
    }

    /// Whether this is still the newest announcement of its service.
    pub fn is_current(&self, service: &Service) -> bool {
        self.state().marks.get(&key(service)).is_none_or(|mark| EventId::from_hex(&mark.id) == Ok(service.event))
    }

    /// Writes what is new to the file.
    pub fn save(&self) -> Result<(), Error> {
        let marks = {
            let mut state = self.state();
            if !std::mem::take(&mut state.is_unsaved) {
                return Ok(());
            }
            state.marks.clone()
        };
        let Some(document) = &self.document else { return Ok(()) };
        document.update(|stored: &mut Marks| {
            for (key, mark) in marks {
                if stored.get(&key).is_none_or(|known| mark.is_newer_than(known)) {
                    stored.insert(key, mark);
                }
            }
            shrink(stored);
            ((), Changed::Yes)
        })
    }
}

fn key(service: &Service) -> String {
    // The name is as long as its author wants; the key need not be.
    let (provider, id) = (service.provider.to_hex(), service.id.chars().take(200).collect::<String>());
    match service.wire {
        Wire::Dvmcp => format!("{provider}:{id}"),
        wire => format!("{}:{provider}:{id}", wire.name()),
    }
}

fn shrink(marks: &mut Marks) {
    if marks.len() <= MAX_MARKS {
        return;
    }
    let mut dates: Vec<u64> = marks.values().map(|mark| mark.created_at).collect();
    dates.sort_unstable();
    let oldest_kept = dates[dates.len() - MAX_MARKS];
    marks.retain(|_, mark| mark.created_at >= oldest_kept);
}

#[cfg(test)]
mod tests {
    use super::Announcements;
    use nostr::prelude::{Event, Keys, Timestamp};
    use rialto_relay::sign::sign;
    use rialto_wire::dvmcp::announcement::Offer;

    fn announce(keys: &Keys, id: &str, name: &str, at: u64) -> Event {
        let offer =
            Offer { id, name, about: "", tools: &[], resources: &[], templates: &[], prompts: &[], relays: &[] };
        sign(keys, offer.write(keys.public_key(), Timestamp::from(at)))
    }

    #[test]
    fn they_never_go_back_also_after_a_restart() {
        let directory = tempfile::tempdir().unwrap();
        let (keys, now) = (Keys::generate(), Timestamp::from(2000));
        let (old, new) = (announce(&keys, "a", "old", 1000), announce(&keys, "a", "new", 1500));
        let seen = Announcements::in_directory(directory.path()).unwrap();
        assert_eq!(seen.take(&old, now).unwrap().name, "old");
        assert_eq!(seen.take(&new, now).unwrap().name, "new");
        assert_eq!(seen.take(&old, now), None);
        assert!(seen.take(&new, now).is_some(), "the newest may come again");
        seen.save().unwrap();
        let again = Announcements::in_directory(directory.path()).unwrap();
        assert_eq!(again.take(&old, now), None);
        assert!(again.take(&new, now).is_some());
        assert!(again.take(&announce(&keys, "b", "other", 1), now).is_some(), "services have marks of their own");
        assert!(again.take(&announce(&Keys::generate(), "a", "other", 1), now).is_some());
    }

    #[test]
    fn of_two_with_one_date_the_lower_id_counts() {
        let (keys, now) = (Keys::generate(), Timestamp::from(2000));
        let mut both = [announce(&keys, "a", "one", 1000), announce(&keys, "a", "two", 1000)];
        both.sort_by_key(|event| event.id.to_hex());
        let seen = Announcements::in_memory();
        assert!(seen.take(&both[1], now).is_some());
        assert!(seen.take(&both[0], now).is_some());
        assert_eq!(seen.take(&both[1], now), None);
    }

    #[test]
    fn what_is_dated_ahead_does_not_block_the_present() {
        let (keys, now) = (Keys::generate(), Timestamp::from(2000));
        let seen = Announcements::in_memory();
        assert_eq!(seen.take(&announce(&keys, "a", "future", 9000), now), None);
        assert!(seen.take(&announce(&keys, "a", "now", 2000), now).is_some());
    }
}
