//! Sealed events (NIP-59): an unsigned event inside a seal by its author, inside a wrap by nobody.
//!
//! Unwrapping is the second half of the verifying gate: the wrap has passed it already, the seal passes it here. The id of
//! the inner event is computed, not believed, so that one request in many wraps is still one request.
//!
//! Also the older way to hide a text (NIP-04), for those who know no other. It has no authentication of its own; the
//! signature of the event around it must have been checked.

use crate::sign::sign;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use nostr::nips::nip04;
use nostr::nips::nip44::v2::{self, ConversationKey};
use nostr::prelude::{Event, Filter, Keys, Kind, PublicKey, Tag, Timestamp, UnsignedEvent};
use rustix::rand::{GetRandomFlags, getrandom};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// How far back a wrap may be dated. Both ends must look this far back for what is new.
pub const SPREAD_SECS: u64 = 2 * 24 * 60 * 60;

/// The version of NIP-44 that is spoken, as payloads begin.
const VERSION: u8 = 2;

/// Shared keys that are remembered at once, in half a megabyte: as many as may call in turn.
const MAX_SHARED: usize = 4096;

/// Why a wrap could not be opened, or made. Nobody is told more: it would help whoever tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unopened {
    #[error("not a wrap for us, or not readable")]
    Unreadable,
    #[error("the seal is forged")]
    Forged,
    #[error("the seal's author is not the author of what is inside")]
    Mismatch,
    #[error("it is too long to be sealed")]
    TooLong,
    #[error("there is no random source")]
    Random,
}

/// Whether an event is a wrap.
pub fn is_wrap(event: &Event) -> bool {
    event.kind == Kind::GiftWrap
}

/// Wraps for `me`.
pub fn filter(me: PublicKey) -> Filter {
    Filter::new().kind(Kind::GiftWrap).pubkey(me)
}

/// Opens and closes wraps for one key, and remembers what it shares with those it talks to: finding that out costs more
/// than a signature, and each call needs it several times.
#[derive(Debug)]
pub struct Sealer {
    keys: Keys,
    shared: Mutex<HashMap<PublicKey, ConversationKey>>,
}

impl Sealer {
    pub fn new(keys: Keys) -> Self {
        Self { keys, shared: Mutex::default() }
    }

    /// The key that we share with somebody.
    fn shared(&self, with: &PublicKey) -> Result<ConversationKey, Unopened> {
        let mut known = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(key) = known.get(with) {
            return Ok(*key);
        }
        let key = ConversationKey::derive(self.keys.secret_key(), with).map_err(|_| Unopened::Unreadable)?;
        if known.len() >= MAX_SHARED {
            known.clear();
        }
        known.insert(*with, key);
        Ok(key)
    }

    /// Opens a wrap that has passed the gate. The event that is returned has its true id and author.
    pub fn open(&self, wrap: &Event) -> Result<UnsignedEvent, Unopened> {
        if wrap.kind != Kind::GiftWrap {
            return Err(Unopened::Unreadable);
        }
        // The wrap's key is used once, so there is nothing to remember.
        let once = ConversationKey::derive(self.keys.secret_key(), &wrap.pubkey).map_err(|_| Unopened::Unreadable)?;
        let seal = Event::from_json(decrypt(&once, &wrap.content)?).map_err(|_| Unopened::Unreadable)?;
        if seal.kind != Kind::Seal || seal.verify().is_err() {
            return Err(Unopened::Forged);
        }
        let inner = decrypt(&self.shared(&seal.pubkey)?, &seal.content)?;
        let mut inner = UnsignedEvent::from_json(inner).map_err(|_| Unopened::Unreadable)?;
        if inner.pubkey != seal.pubkey {
            return Err(Unopened::Mismatch);
        }
        inner.id = Some(inner.compute_id());
        Ok(inner)
    }

    /// Seals an event for `receiver`. `now` and the noise in it keep the true time of sending to ourselves.
    pub fn close(&self, receiver: &PublicKey, mut inner: UnsignedEvent, now: Timestamp) -> Result<Event, Unopened> {
        let keys = &self.keys;
        inner.pubkey = keys.public_key();
        inner.id = Some(inner.compute_id());
        let content = encrypt(&self.shared(receiver)?, &inner.as_json())?;
        let seal = UnsignedEvent::new(keys.public_key(), earlier(now), Kind::Seal, [], content);
        let wrapper = Keys::generate();
        let once = ConversationKey::derive(wrapper.secret_key(), receiver).map_err(|_| Unopened::Unreadable)?;
        let content = encrypt(&once, &sign(keys, seal).as_json())?;
        let tags = [Tag::public_key(*receiver)];
        Ok(sign(&wrapper, UnsignedEvent::new(wrapper.public_key(), earlier(now), Kind::GiftWrap, tags, content)))
    }

    /// Hides a text from all but `receiver` (NIP-04).
    pub fn hide(&self, receiver: &PublicKey, text: &str) -> Result<String, Unopened> {
        let iv = random::<16>()?;
        nip04::encrypt_with_iv(self.keys.secret_key(), receiver, text, iv).map_err(|_| Unopened::Unreadable)
    }

    /// Reads what `sender` has hidden (NIP-04).
    pub fn reveal(&self, sender: &PublicKey, text: &str) -> Result<String, Unopened> {
        nip04::decrypt(self.keys.secret_key(), sender, text).map_err(|_| Unopened::Unreadable)
    }
}

/// Opens one wrap.
pub fn open(keys: &Keys, wrap: &Event) -> Result<UnsignedEvent, Unopened> {
    Sealer::new(keys.clone()).open(wrap)
}

/// Closes one.
pub fn close(keys: &Keys, receiver: &PublicKey, inner: UnsignedEvent, now: Timestamp) -> Result<Event, Unopened> {
    Sealer::new(keys.clone()).close(receiver, inner, now)
}

fn encrypt(key: &ConversationKey, text: &str) -> Result<String, Unopened> {
    let payload = v2::encrypt_to_bytes_with_nonce(key, text.as_bytes(), random()?).map_err(|_| Unopened::TooLong)?;
    Ok(BASE64.encode(payload))
}

fn decrypt(key: &ConversationKey, text: &str) -> Result<String, Unopened> {
    let payload = BASE64.decode(text).map_err(|_| Unopened::Unreadable)?;
    if payload.first() != Some(&VERSION) {
        return Err(Unopened::Unreadable);
    }
    let bytes = v2::decrypt_to_bytes(key, &payload).map_err(|_| Unopened::Unreadable)?;
    String::from_utf8(bytes).map_err(|_| Unopened::Unreadable)
}

fn random<const N: usize>() -> Result<[u8; N], Unopened> {
    let mut bytes = [0; N];
    match getrandom(&mut bytes, GetRandomFlags::empty()) {
        Ok(read) if read == N => Ok(bytes),
        _ => Err(Unopened::Random),
    }
}

/// A random moment in the two days before.
fn earlier(now: Timestamp) -> Timestamp {
    let mut noise = [0u8; 8];
    // Without random numbers no key could have been made; were it so, the true time would be told.
    let _ = getrandom(&mut noise, GetRandomFlags::empty());
    // Not quite two days, so that slow relays and clocks stay within what receivers look back for.
    let seconds = u64::from_le_bytes(noise) % (SPREAD_SECS - 3600);
    Timestamp::from(now.as_secs().saturating_sub(seconds))
}

#[cfg(test)]
mod tests {
    use super::{SPREAD_SECS, Sealer, Unopened, close, open};
    use crate::sign::sign;
    use nostr::nips::nip44;
    use nostr::nips::nip59::UnwrappedGift;
    use nostr::prelude::{Keys, Kind, Tag, Timestamp, UnsignedEvent};

    fn inner(author: &Keys) -> UnsignedEvent {
        UnsignedEvent::new(author.public_key(), Timestamp::from(1000), Kind::from(5910), [], "secret")
    }

    #[test]
    fn what_is_closed_can_be_opened_by_its_receiver_alone() {
        let (sender, receiver, stranger) = (Keys::generate(), Keys::generate(), Keys::generate());
        let now = Timestamp::now();
        let wrap = close(&sender, &receiver.public_key(), inner(&sender), now).unwrap();
        wrap.verify().unwrap();
        assert_ne!(wrap.pubkey, sender.public_key());
        assert!(wrap.created_at <= now && wrap.created_at.as_secs() > now.as_secs() - SPREAD_SECS);
        let opened = open(&receiver, &wrap).unwrap();
        assert_eq!((opened.pubkey, opened.content.as_str()), (sender.public_key(), "secret"));
        assert_eq!(open(&stranger, &wrap).unwrap_err(), Unopened::Unreadable);
        // Another implementation opens it as well.
        assert_eq!(UnwrappedGift::from_gift_wrap(&receiver, &wrap).unwrap().sender, sender.public_key());
    }

    #[test]
    fn what_is_hidden_is_read_by_its_receiver_alone_and_nothing_damaged_is() {
        let (sender, receiver) = (Sealer::new(Keys::generate()), Sealer::new(Keys::generate()));
        let (from, to) = (sender.keys.public_key(), receiver.keys.public_key());
        for text in ["", "{}", "ünï", &"x".repeat(5000)] {
            let hidden = sender.hide(&to, text).unwrap();
            assert_eq!(receiver.reveal(&from, &hidden).unwrap(), text);
            assert_ne!(receiver.reveal(&to, &hidden).ok().as_deref(), Some(text), "{text}: with another key");
        }
        let hidden = sender.hide(&to, "{\"tool_name\":\"a\",\"arguments\":{}}").unwrap();
        let half = hidden.len() / 2;
        for damaged in ["", "?iv=", "a?iv=b", &hidden[..half], &hidden[half..], &hidden.replace("?iv=", "?iv=?iv=")] {
            assert_eq!(receiver.reveal(&from, damaged), Err(Unopened::Unreadable), "{damaged}");
        }
    }

    #[test]
    fn a_seal_vouches_for_its_own_author_only() {
        let (victim, attacker, receiver) = (Keys::generate(), Keys::generate(), Keys::generate());
        let to = receiver.public_key();
        let encrypt =
            |keys: &Keys, text: &str| nip44::encrypt(keys.secret_key(), &to, text, nip44::Version::V2).unwrap();
        let seal = |kind: Kind, inner: &UnsignedEvent| {
            let content = encrypt(&attacker, &inner.as_json());
            sign(&attacker, UnsignedEvent::new(attacker.public_key(), Timestamp::from(1), kind, [], content)).as_json()
        };
        let wrap = |seal: &str| {
            let unsigned = UnsignedEvent::new(
                to,
                Timestamp::from(1),
                Kind::GiftWrap,
                [Tag::public_key(to)],
                encrypt(&attacker, seal),
            );
            sign(&attacker, unsigned)
        };
        assert_eq!(open(&receiver, &wrap(&seal(Kind::Seal, &inner(&victim)))).unwrap_err(), Unopened::Mismatch);
        assert_eq!(open(&receiver, &wrap(&seal(Kind::TextNote, &inner(&attacker)))).unwrap_err(), Unopened::Forged);
        let forged =
            seal(Kind::Seal, &inner(&attacker)).replace(&attacker.public_key().to_hex(), &victim.public_key().to_hex());
        assert_eq!(open(&receiver, &wrap(&forged)).unwrap_err(), Unopened::Forged);
        let mut lying = inner(&attacker);
        let true_id = lying.compute_id();
        lying.id = Some(nostr::prelude::EventId::from_byte_array([0; 32]));
        if let Ok(opened) = open(&receiver, &wrap(&seal(Kind::Seal, &lying))) {
            assert_eq!(opened.id, Some(true_id), "a claimed id is not believed");
        }
    }
}
