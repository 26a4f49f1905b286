//! One event as the relay keeps it: its own text, and beside it only what is needed to find it.
//!
//! The text goes to subscribers byte for byte, so an event is parsed once in its life. It is kept as it came only if
//! nothing in it escapes the signature; otherwise it is written anew from the signed fields.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::HashSet;

use nostr::event::{self, EventId, Kind, Signature, Tag};
use nostr::key::PublicKey;
use nostr::types::Timestamp;
use serde::Deserialize;

/// An id or a public key.
pub(super) type Bytes32 = [u8; 32];

/// The order in which events are served: newest first, and of equal age the lowest id first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Position {
    pub(super) created_at: Reverse<u64>,
    pub(super) id: Bytes32,
}

/// What a kind means for storing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Storage {
    Regular,
    Replaceable,
    Addressable,
    Ephemeral,
}

impl Storage {
    pub(super) fn of(kind: u16) -> Self {
        match kind {
            0 | 3 | 10_000..20_000 => Storage::Replaceable,
            20_000..30_000 => Storage::Ephemeral,
            30_000..40_000 => Storage::Addressable,
            _ => Storage::Regular,
        }
    }

    pub(super) fn is_stored(self) -> bool {
        self != Storage::Ephemeral
    }
}

/// The kind of deletion requests (NIP-09).
pub(super) const DELETION: u16 = 5;

/// The kind of authentication events (NIP-42).
pub(super) const AUTHENTICATION: u16 = 22242;

/// An event whose id and signature have been checked, or that comes from our own file.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) id: Bytes32,
    pub(super) author: Bytes32,
    pub(super) created_at: u64,
    pub(super) kind: u16,
    /// When it expires (NIP-40).
    pub(super) expires: Option<u64>,
    /// First values of tags with a single letter, by which filters find events.
    pub(super) tags: Box<[(u8, Box<str>)]>,
    /// Whether only its author may publish it (NIP-70).
    pub(super) is_protected: bool,
    pub(super) text: Box<str>,
}

impl Event {
    pub(super) fn position(&self) -> Position {
        Position { created_at: Reverse(self.created_at), id: self.id }
    }

    pub(super) fn storage(&self) -> Storage {
        Storage::of(self.kind)
    }

    pub(super) fn is_expired(&self, now: u64) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }

    /// First values of all tags with this letter.
    pub(super) fn values(&self, letter: u8) -> impl Iterator<Item = &str> {
        self.tags.iter().filter(move |(name, _)| *name == letter).map(|(_, value)| &**value)
    }

    /// Of all events with the same address only the newest is kept.
    pub(super) fn address(&self) -> Option<Address> {
        let identifier = match self.storage() {
            Storage::Replaceable => "",
            Storage::Addressable => self.values(b'd').next().unwrap_or_default(),
            Storage::Regular | Storage::Ephemeral => return None,
        };
        Some(Address { kind: self.kind, author: self.author, identifier: identifier.into() })
    }
}

/// The name under which the newest version of a replaceable or addressable event is found.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Address {
    pub(super) kind: u16,
    pub(super) author: Bytes32,
    pub(super) identifier: Box<str>,
}

impl Address {
    /// Reads `kind:author:identifier`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, ':');
        let kind = parts.next()?.parse().ok()?;
        let author = parse_hex(parts.next()?)?;
        let identifier = match Storage::of(kind) {
            Storage::Addressable => parts.next()?.into(),
            Storage::Replaceable => parts.next().filter(|identifier| identifier.is_empty())?.into(),
            Storage::Regular | Storage::Ephemeral => return None,
        };
        Some(Self { kind, author, identifier })
    }
}

/// An event that has been read but not checked.
#[derive(Debug)]
pub(super) struct Unverified<'a> {
    event: event::Event,
    text: Cow<'a, str>,
}

/// The fields of an event and nothing else.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(borrow)]
    pubkey: Cow<'a, str>,
    created_at: u64,
    kind: u16,
    tags: Vec<Vec<String>>,
    #[serde(borrow)]
    content: Cow<'a, str>,
    #[serde(borrow)]
    sig: Cow<'a, str>,
}

impl Fields<'_> {
    fn into_event(self) -> Option<event::Event> {
        // Capitals, and digits beyond the last, would be passed on although nobody signed them.
        let is_plain =
            |hex: &str, length: usize| hex.len() == length && hex.bytes().all(|byte| !byte.is_ascii_uppercase());
        if !is_plain(&self.id, 64) || !is_plain(&self.pubkey, 64) || !is_plain(&self.sig, 128) {
            return None;
        }
        let tags: Result<Vec<Tag>, _> = self.tags.into_iter().map(Tag::parse).collect();
        Some(event::Event::new(
            EventId::from_hex(&self.id).ok()?,
            PublicKey::from_hex(&self.pubkey).ok()?,
            Timestamp::from_secs(self.created_at),
            Kind::from_u16(self.kind),
            tags.ok()?,
            self.content,
            Signature::from_hex(&self.sig).ok()?,
        ))
    }
}

impl<'a> Unverified<'a> {
    /// Reads an event; the error says what is wrong with it.
    pub(super) fn parse(text: &'a str) -> Result<Self, String> {
        let fields = serde_json::from_str::<Fields<'_>>(text);
        // Control characters can only stand between tokens; they would break our file of lines.
        let is_one_line = !text.bytes().any(|byte| byte < b' ');
        if let Some(event) = fields.ok().filter(|_| is_one_line).and_then(Fields::into_event) {
            return Ok(Self { event, text: Cow::Borrowed(text) });
        }
        let event: event::Event = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let text = serde_json::to_string(&event).map_err(|error| error.to_string())?;
        Ok(Self { event, text: Cow::Owned(text) })
    }

    pub(super) fn id(&self) -> Bytes32 {
        *self.event.id.as_bytes()
    }

    pub(super) fn kind(&self) -> u16 {
        self.event.kind.as_u16()
    }

    pub(super) fn created_at(&self) -> u64 {
        self.event.created_at.as_secs()
    }

    pub(super) fn tag_count(&self) -> usize {
        self.event.tags.len()
    }

    pub(super) fn has_difficulty(&self, bits: u8) -> bool {
        self.event.check_pow(bits)
    }

    /// The first value of the first tag with this name.
    pub(super) fn tag(&self, name: &str) -> Option<&str> {
        self.event.tags.iter().find(|tag| tag.kind() == name).and_then(Tag::content)
    }

    /// Checks the id, then the signature.
    pub(super) fn verify(self) -> Result<Event, &'static str> {
        if !self.event.verify_id() {
            return Err("the id is wrong");
        }
        if !self.event.verify_signature() {
            return Err("the signature is wrong");
        }
        Ok(self.into_event())
    }

    /// Checks the id only. That is enough for our own file, where every signature has been checked before and where
    /// damage shows in the id.
    pub(super) fn verify_id(self) -> Result<Event, &'static str> {
        if self.event.verify_id() { Ok(self.into_event()) } else { Err("the id is wrong") }
    }

    fn into_event(self) -> Event {
        let mut tags = Vec::new();
        // A value that is repeated would only make the search for subscribers longer.
        let mut seen = HashSet::new();
        for tag in self.event.tags.iter() {
            if let ([letter], Some(value)) = (tag.kind().as_bytes(), tag.content())
                && letter.is_ascii_alphabetic()
                && seen.insert((*letter, value))
            {
                tags.push((*letter, value.into()));
            }
        }
        Event {
            id: self.id(),
            author: *self.event.pubkey.as_bytes(),
            created_at: self.created_at(),
            kind: self.kind(),
            expires: self.tag("expiration").and_then(|seconds| seconds.parse().ok()),
            tags: tags.into_boxed_slice(),
            is_protected: self.event.tags.iter().any(|tag| tag.kind() == "-"),
            text: self.text.into(),
        }
    }
}

/// Reads 64 lowercase hexadecimal digits, the only form that NIP-01 allows.
pub(super) fn parse_hex(text: &str) -> Option<Bytes32> {
    if text.len() != 64 || text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return None;
    }
    Some(*EventId::from_hex(text).ok()?.as_bytes())
}

pub(super) fn to_hex(bytes: &Bytes32) -> String {
    EventId::from_byte_array(*bytes).to_hex()
}
