//! Manifests (kind 30200), and calls by encrypted direct message.
//!
//! A message is the same JSON as kind 4, encrypted with NIP-04, or as kind 14 inside a seal. Here its text stands in the
//! event in the clear; whoever sends and receives it sees to the encryption. `docs/manifest.md` describes the whole.

pub mod answer;
pub mod description;
pub mod request;
#[cfg(test)]
mod tests;

use crate::tags::tag;
use nostr::prelude::{Filter, Kind, PublicKey, Tag, UnsignedEvent};

pub(crate) const MANIFEST: Kind = Kind::Custom(30200);
const MESSAGE: Kind = Kind::EncryptedDirectMessage;
const SEALED: Kind = Kind::PrivateDirectMessage;

/// The schema of an answer in the form of an MCP result: what a tool without an output schema gives.
pub const CONTENT_SCHEMA: &str = concat!(
    r#"{"type":"object","properties":{"content":{"type":"array","items":"#,
    r#"{"type":"object","properties":{"type":{"type":"string"}},"required":["type"]}}},"required":["content"]}"#
);

/// Messages to `me` that are not sealed.
pub fn filter(me: PublicKey) -> Filter {
    Filter::new().kind(MESSAGE).pubkey(me)
}

/// Whether the text of an event is encrypted with NIP-04.
pub fn is_encrypted(kind: Kind) -> bool {
    kind == MESSAGE
}

/// Whether an event that was sealed is a message.
pub fn is_sealed(kind: Kind) -> bool {
    kind == SEALED
}

/// The kind of a message.
fn kind(sealed: bool) -> Kind {
    if sealed { SEALED } else { MESSAGE }
}

/// Whether a message is for `me` and by somebody else.
fn is_for(event: &UnsignedEvent, me: &PublicKey) -> bool {
    let mut named = event.tags.iter().filter(|tag| tag.kind() == "p").filter_map(Tag::content);
    let is_named = named.any(|key| PublicKey::from_hex(key).is_ok_and(|key| key == *me));
    (event.kind == MESSAGE || event.kind == SEALED) && event.pubkey != *me && is_named
}

/// The tag that names a receiver.
fn to(receiver: PublicKey) -> Tag {
    tag("p", [&receiver.to_hex()])
}
