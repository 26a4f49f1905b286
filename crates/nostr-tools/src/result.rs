//! What many tools give.

use crate::keyring::Identity;
use crate::shape::record;
use nostr::nips::nip19::ToBech32;
use nostr::prelude::{Event, PublicKey, Tag};
use std::collections::BTreeMap;

/// What a stranger said, fit to be shown: one short line, without anything that terminals or models could take for more.
pub(crate) fn quoted(text: &str) -> String {
    const LONGEST: usize = 300;
    let plain = text.chars().map(|c| if c.is_control() || is_invisible(c) { ' ' } else { c });
    let mut short: String = plain.take(LONGEST + 1).collect();
    if short.chars().count() > LONGEST {
        short.pop();
        short.push('…');
    }
    short.trim().to_owned()
}

/// Characters that turn the direction of writing, or hide.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

/// A public key as people write it.
pub(crate) fn npub(key: &PublicKey) -> String {
    // There is nothing in a key that could not be written.
    key.to_bech32().unwrap_or_else(|_| key.to_hex())
}

record! {
    /// A stored key, without its secret.
    struct KeyEntry {
        /// The name under which the key is kept
        label: String,
        /// The public key (npub)
        public_key: String,
        /// When it was stored, in seconds since 1970
        created_at: i64,
    }
}

impl From<&Identity> for KeyEntry {
    fn from(identity: &Identity) -> Self {
        let public_key = npub(&identity.public_key);
        Self { label: identity.label.clone(), public_key, created_at: identity.created_at }
    }
}

record! {
    /// How publishing went. At least one relay has the event.
    struct SendResult {
        /// Event id
        id: String,
        /// Relays that have it
        success: Vec<String>,
        /// Others, and why
        failed: BTreeMap<String, String>,
        /// Who signed it
        pubkey: String,
    }
}

record! {
    /// An event.
    struct EventItem {
        /// Id (hex)
        id: String,
        /// Kind
        kind: u16,
        /// Author (hex)
        pubkey: String,
        /// Seconds since 1970
        created_at: u64,
        /// Content
        content: String,
        /// Tags
        tags: Vec<Vec<String>>,
        /// Signature
        sig: Option<String>,
    }
}

impl From<&Event> for EventItem {
    fn from(event: &Event) -> Self {
        Self {
            id: event.id.to_hex(),
            kind: event.kind.as_u16(),
            pubkey: event.pubkey.to_hex(),
            created_at: event.created_at.as_secs(),
            content: event.content.clone(),
            tags: event.tags.iter().map(Tag::as_slice).map(<[String]>::to_vec).collect(),
            sig: Some(event.sig.to_string()),
        }
    }
}

record! {
    /// Events that were found.
    struct EventItemsResult {
        /// Newest first
        items: Vec<EventItem>,
        /// How many
        count: u64,
    }
}

record! {
    /// A relay, and how it is.
    struct RelayStatusRow {
        /// Its address
        url: String,
        /// connected, connecting, disconnected, or what is wrong
        status: String,
        /// We read from it
        read: bool,
        /// We write to it
        write: bool,
        /// Only in use because of others' relay lists
        discovery: bool,
    }
}

record! {
    /// Relays.
    struct RelayListResult {
        /// The relays
        relays: Vec<RelayStatusRow>,
    }
}

record! {
    /// Somebody who is followed.
    struct FollowEntry {
        /// Who (hex or npub)
        pubkey: String,
        /// Where they can be found
        relay_url: Option<String>,
        /// A name for them
        petname: Option<String>,
    }
}

record! {
    /// How publishing a profile or list went.
    struct PublishResult {
        /// Kept here
        saved: bool,
        /// A relay has it
        published: bool,
        /// Relays that have it
        success_relays: Vec<String>,
        /// Others, and why
        failed_relays: BTreeMap<String, String>,
        /// Event id (hex)
        event_id: Option<String>,
        /// Whose (hex)
        pubkey: Option<String>,
    }
}
