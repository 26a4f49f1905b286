//! What fuzzing tries and nobody else may call: readers of what strangers send, each with something to compare it with.

use crate::embedded;
use crate::frame::{self, Said};
use crate::gate;
use crate::seal::Sealer;
use nostr::nips::nip44;
use nostr::prelude::{Keys, Kind, SecretKey, Timestamp, UnsignedEvent};
use serde_json::Value;
use std::sync::LazyLock;

/// Messages between relays and clients, read as either would.
pub fn message(text: &str) {
    let said = frame::read(text);
    let whole: Option<Vec<Value>> = serde_json::from_str(text).ok();
    if let Some(said) = said
        // No Rust type holds every number that is JSON, and an event is not read here.
        && let Some(parts) = whole
    {
        let word = |index: usize| parts.get(index).and_then(Value::as_str).unwrap_or_default();
        let (label, words): (&str, Vec<&str>) = match &said {
            Said::Event { subscription, text } => {
                assert_eq!(serde_json::from_str::<Value>(text).ok().as_ref(), parts.get(2));
                let _ = gate::check(text);
                ("EVENT", vec![subscription])
            }
            Said::Verdict { id, accepted, message } => {
                assert_eq!(id.to_hex(), word(1).to_ascii_lowercase());
                assert_eq!(*accepted, parts[2] == Value::Bool(true));
                assert_eq!(message, word(3));
                ("OK", vec![])
            }
            Said::EndOfStored { subscription } => ("EOSE", vec![subscription]),
            Said::Closed { subscription, message } => ("CLOSED", vec![subscription, message]),
            Said::Notice(words) => ("NOTICE", vec![words]),
            Said::Challenge(challenge) => ("AUTH", vec![challenge]),
        };
        assert_eq!(word(0), label);
        for (index, read) in words.into_iter().enumerate() {
            assert_eq!(word(index + 1), read);
        }
    }
    embedded::fuzzing::message(text);
}

/// A filter, and whether the relay finds with it what a reader without any index does.
pub fn filter(text: &str) {
    embedded::fuzzing::filter(text);
}

/// What stands in a seal, whoever wrote it: what comes out is by the author of the seal, and its id is its own.
pub fn sealed(text: &str) -> Option<UnsignedEvent> {
    let (author, me) = &*KEYS;
    let hide = |text: &str| nip44::encrypt(author.secret_key(), &me.public_key(), text, nip44::Version::V2).ok();
    // A text that begins with a mark stands where the seal does, others inside of one.
    let seal = match text.strip_prefix('!') {
        Some(seal) => seal.to_owned(),
        None => {
            let seal = UnsignedEvent::new(author.public_key(), Timestamp::from(1), Kind::Seal, [], hide(text)?);
            crate::sign::sign(author, seal).as_json()
        }
    };
    let wrap = UnsignedEvent::new(author.public_key(), Timestamp::from(1), Kind::GiftWrap, [], hide(&seal)?);
    let opened = Sealer::new(me.clone()).open(&crate::sign::sign(author, wrap)).ok()?;
    assert_eq!(opened.id, Some(opened.compute_id()), "the id is its own");
    assert_eq!(opened.pubkey, author.public_key(), "only the author of the seal is believed");
    Some(opened)
}

/// Who receives what [`sealed`] opens.
pub fn me() -> nostr::prelude::PublicKey {
    KEYS.1.public_key()
}

#[expect(clippy::expect_used, reason = "these are keys")]
static KEYS: LazyLock<(Keys, Keys)> = LazyLock::new(|| {
    let key = |byte: u8| Keys::new(SecretKey::from_slice(&[byte; 32]).expect("a key"));
    (key(1), key(2))
});
