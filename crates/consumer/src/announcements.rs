//! Announcements never go back: the newest that was ever seen of each service counts, also after a restart, however many
//! relays still serve an older one. Otherwise a relay could bring back a tool or a promise that its provider has withdrawn.

use nostr::prelude::{Event, EventId, PublicKey, Timestamp};
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
    /// It says that sealed requests are taken.
    #[serde(default)]
    sealed: bool,
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
        let mark = Mark { created_at: event.created_at.as_secs(), id: event.id.to_hex(), sealed: service.sealed };
        let key = key(&service);
        let mut state = self.state();
        match state.marks.get(&key) {
            Some(known) if *known == mark => return Some(service),
            Some(known) if known.id != mark.id && !mark.is_newer_than(known) => return None,
            _ => {}
        }
        state.marks.insert(key, mark);
        state.is_unsaved = true;
        Some(service)
    }

    /// Whether a provider has said over this wire, as far as it was heard last, that it takes sealed requests.
    pub fn were_sealed(&self, provider: &PublicKey, wire: Wire) -> bool {
        let start = start(provider, wire);
        let state = self.state();
        let mut marks = state.marks.range(start.clone()..).take_while(|(key, _)| key.starts_with(&start));
        marks.any(|(_, mark)| mark.sealed)
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
    let id: String = service.id.chars().take(200).collect();
    format!("{}{id}", start(&service.provider, service.wire))
}

/// How the keys of one provider's services begin.
fn start(provider: &PublicKey, wire: Wire) -> String {
    match wire {
        Wire::Dvmcp => format!("{}:", provider.to_hex()),
        wire => format!("{}:{}:", wire.name(), provider.to_hex()),
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
    use rialto_wire::service::Wire;

    fn announce(keys: &Keys, id: &str, name: &str, at: u64) -> Event {
        let offer = Offer {
            id,
            name,
            about: "",
            tools: &[],
            resources: &[],
            templates: &[],
            prompts: &[],
            relays: &[],
            mints: &[],
        };
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
    fn what_was_sealed_is_remembered_until_the_provider_says_otherwise() {
        let directory = tempfile::tempdir().unwrap();
        let (keys, now) = (Keys::generate(), Timestamp::from(2000));
        let seen = Announcements::in_directory(directory.path()).unwrap();
        assert!(!seen.were_sealed(&keys.public_key(), Wire::Dvmcp));
        assert!(seen.take(&announce(&keys, "a", "sealed", 1000), now).unwrap().sealed);
        seen.save().unwrap();
        // Another process; the file may also be of a time when this was not noted.
        let file = directory.path().join("announcements.json");
        for (from, to) in [("\"sealed\":true", "\"sealed\":true"), (",\"sealed\":true", "")] {
            let text = std::fs::read_to_string(&file).unwrap();
            assert!(text.contains(from), "{text}");
            std::fs::write(&file, text.replace(from, to)).unwrap();
            let seen = Announcements::in_directory(directory.path()).unwrap();
            assert_eq!(seen.were_sealed(&keys.public_key(), Wire::Dvmcp), !to.is_empty());
            assert!(seen.take(&announce(&keys, "a", "sealed", 1000), now).is_some(), "the newest may come again");
            assert!(seen.were_sealed(&keys.public_key(), Wire::Dvmcp));
            assert!(!seen.were_sealed(&keys.public_key(), Wire::Manifest), "that is another wire");
            assert!(!seen.were_sealed(&Keys::generate().public_key(), Wire::Dvmcp), "that is another provider");
            let mut open = announce(&keys, "a", "open", 1500);
            open.tags.retain(|tag| tag.kind() != "encryption");
            assert!(seen.take(&open, now).is_some());
            assert!(!seen.were_sealed(&keys.public_key(), Wire::Dvmcp));
        }
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
