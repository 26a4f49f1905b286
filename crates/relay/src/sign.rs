//! Signing, without the check of our own signature that would cost more than the signature itself.

use crate::socket::Later;
use nostr::prelude::{Event, Keys, PublicKey, UnsignedEvent};

/// Somebody else who signs for us, perhaps on another machine, perhaps after asking a person.
pub trait Sign: std::fmt::Debug + Send + Sync + 'static {
    fn public_key(&self) -> PublicKey;

    /// The signed event; `None` if it is refused, or nobody is there.
    fn sign(&self, event: UnsignedEvent) -> Later<'_, Option<Event>>;
}

/// Signs an event by `keys`; whatever author it named is replaced.
pub fn sign(keys: &Keys, mut unsigned: UnsignedEvent) -> Event {
    unsigned.pubkey = keys.public_key();
    let id = unsigned.compute_id();
    let signature = keys.sign_schnorr(id.as_bytes());
    let UnsignedEvent { pubkey, created_at, kind, tags, content, .. } = unsigned;
    Event::new(id, pubkey, created_at, kind, tags, content, signature)
}

#[cfg(test)]
mod tests {
    use super::sign;
    use nostr::prelude::{Keys, Kind, Timestamp, UnsignedEvent};

    #[test]
    fn the_signature_holds() {
        let keys = Keys::generate();
        let other = Keys::generate().public_key();
        let event = sign(&keys, UnsignedEvent::new(other, Timestamp::from(1), Kind::TextNote, [], "hi"));
        assert_eq!(event.pubkey, keys.public_key());
        event.verify().unwrap();
    }
}
