//! NIP-59 step by step, so that each step can be done wrongly.

use nostr::key::{Keys, PublicKey};
use nostr::nips::nip44;

use super::event::{Draft, Event, hex_key, now};

pub const SEAL: u32 = 13;
pub const WRAP: u32 = 1059;

pub fn encrypt(from: &Keys, to: &str, text: &str) -> String {
    let to = PublicKey::from_hex(to).unwrap();
    nip44::encrypt(from.secret_key(), &to, text, nip44::Version::V2).unwrap()
}

pub fn decrypt(reader: &Keys, from: &str, text: &str) -> Option<String> {
    nip44::decrypt(reader.secret_key(), &PublicKey::from_hex(from).ok()?, text).ok()
}

/// A seal by `sealer` around any text. NIP-59 wants times in the past.
pub fn seal(sealer: &Keys, to: &str, kind: u32, text: &str) -> Event {
    Draft::new(kind, encrypt(sealer, to, text)).at(now() - 3600).sign(sealer)
}

/// A gift wrap with a key of its own around any text; as old as NIP-59 allows, since others choose such times at random.
pub fn wrap(to: &str, text: &str) -> Event {
    let once = Keys::generate();
    Draft::new(WRAP, encrypt(&once, to, text)).tag(&["p", to]).at(now() - 2 * 86_400 + 60).sign(&once)
}

/// The draft by this author, sealed and wrapped as it should be, with the event inside.
pub fn send(author: &Keys, to: &str, draft: &Draft) -> (Event, Event) {
    let rumor = draft.unsigned(&hex_key(author));
    (rumor.clone(), wrap(to, &seal(author, to, SEAL, &rumor.json()).json()))
}

/// A wrap that was opened: all its layers, each checked.
#[derive(Clone, Debug)]
pub struct Opened {
    pub rumor: Event,
    pub seal: Event,
}

/// Opens a wrap. What a provider sends must be right in every layer, so mistakes are failures.
pub fn open(reader: &Keys, wrap: &Event) -> Opened {
    let text = decrypt(reader, &wrap.pubkey, &wrap.content).unwrap_or_else(|| panic!("cannot be opened: {wrap:?}"));
    let seal: Event = serde_json::from_str(&text).unwrap_or_else(|error| panic!("no seal ({error}): {text}"));
    assert_eq!(seal.problem(), None, "{seal:?}");
    assert_eq!(seal.kind, SEAL, "{seal:?}");
    assert_eq!(seal.tags.len(), 0, "a seal has no tags: {seal:?}");
    assert_ne!(seal.pubkey, wrap.pubkey, "a wrap has a key of its own");
    let text = decrypt(reader, &seal.pubkey, &seal.content).unwrap_or_else(|| panic!("cannot be opened: {seal:?}"));
    let rumor: Event = serde_json::from_str(&text).unwrap_or_else(|error| panic!("no event ({error}): {text}"));
    assert_eq!(rumor.id, rumor.computed_id(), "{rumor:?}");
    assert_eq!(rumor.pubkey, seal.pubkey, "{rumor:?}");
    assert_eq!(rumor.sig, "", "what is inside is not signed: {rumor:?}");
    Opened { rumor, seal }
}
