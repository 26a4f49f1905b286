//! What is kept on this machine beside keys: which relays to use, and what we last knew of the user's own profile and lists.
//!
//! The events kept here are no second truth. They are what a list is compared with before it is replaced, so that a relay
//! that has forgotten, or has an old version, cannot make us publish less than there was.

use crate::failure::Failure;
use nostr::prelude::{Event, Kind, PublicKey, RelayUrl};
use rialto_store::{Changed, Document};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::Path;

/// A relay that the user has chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Chosen {
    pub(crate) url: RelayUrl,
    pub(crate) read: bool,
    pub(crate) write: bool,
}

/// What the user wants published later: changes, not whole lists.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Drafts {
    /// Fields of the profile; null takes one away.
    #[serde(default)]
    pub(crate) profile: Map<String, Value>,
    /// Whom to follow (with the rest of the tag) and whom not to.
    #[serde(default)]
    pub(crate) follow: BTreeMap<PublicKey, Vec<String>>,
    #[serde(default)]
    pub(crate) unfollow: Vec<PublicKey>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Person {
    /// The newest events of their kinds that we have seen.
    #[serde(default)]
    known: BTreeMap<String, Event>,
    #[serde(default)]
    drafts: Drafts,
}

/// What is kept in `settings.json`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Settings {
    #[serde(default)]
    relays: Vec<Chosen>,
    #[serde(default)]
    people: BTreeMap<PublicKey, Person>,
}

/// The settings of one user.
#[derive(Debug)]
pub(crate) struct Store {
    document: Document,
}

impl Store {
    pub(crate) fn new(directory: &Path) -> Self {
        Self { document: Document::new(directory.join("settings.json")) }
    }

    fn read(&self) -> Result<Settings, Failure> {
        Ok(self.document.read()?)
    }

    fn change<T>(&self, change: impl FnOnce(&mut Settings) -> T) -> Result<T, Failure> {
        let changed = self.document.update(|settings: &mut Settings| {
            let before = settings.clone();
            let outcome = change(settings);
            let changed = if *settings == before { Changed::No } else { Changed::Yes };
            (outcome, changed)
        });
        Ok(changed?)
    }

    pub(crate) fn relays(&self) -> Result<Vec<Chosen>, Failure> {
        Ok(self.read()?.relays)
    }

    pub(crate) fn change_relays<T>(&self, change: impl FnOnce(&mut Vec<Chosen>) -> T) -> Result<T, Failure> {
        self.change(|settings| change(&mut settings.relays))
    }

    /// The newest version of a replaceable event that we know of.
    pub(crate) fn known(&self, who: &PublicKey, kind: Kind, identifier: &str) -> Result<Option<Event>, Failure> {
        let known = self.read()?.people.remove(who).and_then(|mut person| person.known.remove(&name(kind, identifier)));
        // Somebody may have edited the file; nothing unsigned gets any further.
        Ok(known.filter(|event| event.pubkey == *who && event.kind == kind && event.verify().is_ok()))
    }

    /// Keeps an event of the user's, unless a newer one is kept already.
    pub(crate) fn learn(&self, event: &Event) -> Result<(), Failure> {
        let identifier = event.tags.identifier().unwrap_or_default();
        self.change(|settings| {
            let known = &mut settings.people.entry(event.pubkey).or_default().known;
            let name = name(event.kind, &identifier);
            if known.get(&name).is_none_or(|old| is_newer(event, old)) {
                known.insert(name, event.clone());
            }
        })
    }

    pub(crate) fn drafts(&self, who: &PublicKey) -> Result<Drafts, Failure> {
        Ok(self.read()?.people.remove(who).unwrap_or_default().drafts)
    }

    pub(crate) fn change_drafts<T>(
        &self,
        who: &PublicKey,
        change: impl FnOnce(&mut Drafts) -> T,
    ) -> Result<T, Failure> {
        self.change(|settings| change(&mut settings.people.entry(*who).or_default().drafts))
    }
}

fn name(kind: Kind, identifier: &str) -> String {
    if kind.is_addressable() { format!("{}:{identifier}", kind.as_u16()) } else { kind.as_u16().to_string() }
}

/// Whether one version takes the place of another (NIP-01): by time, then by the smaller id.
pub(crate) fn is_newer(event: &Event, than: &Event) -> bool {
    (event.created_at, std::cmp::Reverse(event.id)) > (than.created_at, std::cmp::Reverse(than.id))
}

#[cfg(test)]
mod tests {
    use super::Store;
    use nostr::prelude::{Keys, Kind, Timestamp, UnsignedEvent};
    use rialto_relay::sign::sign;

    #[test]
    fn older_versions_do_not_replace_newer_ones() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::new(directory.path());
        let keys = Keys::generate();
        let version = |time: u64, text: &str| {
            sign(&keys, UnsignedEvent::new(keys.public_key(), Timestamp::from(time), Kind::Metadata, [], text))
        };
        for event in [version(2, "new"), version(1, "old")] {
            store.learn(&event).unwrap();
        }
        let known = Store::new(directory.path()).known(&keys.public_key(), Kind::Metadata, "").unwrap().unwrap();
        assert_eq!(known.content, "new");
        assert!(store.known(&Keys::generate().public_key(), Kind::Metadata, "").unwrap().is_none());
    }
}
