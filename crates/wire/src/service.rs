//! What providers say of themselves, whichever way they are called.

use crate::dvmcp::announcement;
use crate::manifest::description;
use crate::tags::tag;
use crate::{dvmcp, manifest};
use nostr::prelude::{Event, EventId, Filter, Kind, PublicKey, Tag, Tags, Timestamp, UnsignedEvent};
use rialto_mcp::json;
use std::borrow::Cow;

/// What every announcement and every manifest of ours has as a `t` tag.
pub(crate) const TOPIC: &str = "mcp";

/// Tools that are named in `t` tags; more would be refused by relays that count tags.
const MAX_TOPICS: usize = 200;

/// Manifests that are asked for at once. Much else has their kind.
const MAX_MANIFESTS: usize = 1000;

/// How a service can be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wire {
    /// Requests and responses of data vending machines.
    Dvmcp,
    /// Encrypted direct messages.
    Manifest,
}

impl Wire {
    pub const ALL: [Wire; 2] = [Wire::Dvmcp, Wire::Manifest];

    pub fn name(self) -> &'static str {
        match self {
            Wire::Dvmcp => "dvmcp",
            Wire::Manifest => "manifest",
        }
    }
}

/// How one request travels, and its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Way {
    pub wire: Wire,
    /// Nobody but the two can see who they are, let alone what they say.
    pub sealed: bool,
}

impl Way {
    pub const PUBLIC: Way = Way { wire: Wire::Dvmcp, sealed: false };
    pub const SEALED: Way = Way { wire: Wire::Dvmcp, sealed: true };
    pub const MESSAGE: Way = Way { wire: Wire::Manifest, sealed: false };
    pub const SEALED_MESSAGE: Way = Way { wire: Wire::Manifest, sealed: true };

    /// In a word or two.
    pub fn name(self) -> &'static str {
        match (self.wire, self.sealed) {
            (Wire::Dvmcp, true) => "sealed",
            (Wire::Dvmcp, false) => "public",
            (Wire::Manifest, true) => "sealed message",
            (Wire::Manifest, false) => "message",
        }
    }
}

/// A service as its announcement or its manifest describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Service {
    pub wire: Wire,
    pub provider: PublicKey,
    pub id: String,
    pub name: String,
    pub about: String,
    /// MCP definitions as JSON texts; those of an announcement may be brief. Only objects with a name.
    pub tools: Vec<String>,
    /// Sealed requests are taken.
    pub sealed: bool,
    /// What could not be used, in words that may quote strangers.
    pub flaws: Vec<String>,
    pub announced: Timestamp,
    pub event: EventId,
}

/// Reads an event that has passed the gate; `None` if it describes no MCP service.
pub fn read(event: &Event) -> Option<Service> {
    announcement::read(event).or_else(|| description::read(event))
}

/// Descriptions of all services. Manifests of others may lack the tag by which ours are found, but no number of events that
/// are something else may crowd out those that have it.
pub fn all() -> [Filter; 2] {
    [
        Filter::new().kinds([dvmcp::ANNOUNCEMENT, manifest::MANIFEST]).hashtag(TOPIC),
        Filter::new().kind(manifest::MANIFEST).limit(MAX_MANIFESTS),
    ]
}

/// Descriptions of the services of one provider.
pub fn of(provider: PublicKey) -> Filter {
    Filter::new().kinds([dvmcp::ANNOUNCEMENT, manifest::MANIFEST]).author(provider)
}

/// Whether events of this kind describe services.
pub fn is_description(kind: Kind) -> bool {
    kind == dvmcp::ANNOUNCEMENT || kind == manifest::MANIFEST
}

/// The tags by which tools are found, with what they cost where that is known.
pub(crate) fn topics<'a>(tools: impl Iterator<Item = (Cow<'a, str>, Option<u64>)>) -> Vec<Tag> {
    let tools = tools.filter(|(name, _)| name != TOPIC).take(MAX_TOPICS);
    let topic = |(name, price): (Cow<'a, str>, Option<u64>)| match price {
        Some(sat) => tag("t", [&name, &sat.to_string(), "sats"]),
        None => tag("t", [&name]),
    };
    std::iter::once((Cow::Borrowed(TOPIC), None)).chain(tools).map(topic).collect()
}

/// Where the price of a tool stands in its definition.
pub const PRICE: &str = "rialto/price";

/// A definition that says what the tool costs; `price` is a JSON object.
pub fn priced(tool: &[u8], price: &str) -> Vec<u8> {
    let mut member = Vec::new();
    json::push_member(&mut member, PRICE.as_bytes(), price.as_bytes());
    json::with_meta(&without_price(tool), &member)
}

/// A server may not say what its tools cost: that is for whoever offers them.
pub fn without_price(tool: &[u8]) -> Vec<u8> {
    match json::find(tool, ["_meta"]) {
        Ok([Some(place)]) if tool[place.start] == b'{' => {
            let meta = json::without_members(&tool[place.clone()], &[PRICE]);
            let mut whole = Vec::with_capacity(tool.len());
            json::splice(&mut whole, tool, &[(place, &meta)]);
            whole
        }
        _ => tool.to_vec(),
    }
}

/// What a definition says that a call costs at least, in satoshis.
pub(crate) fn price(tool: &[u8]) -> Option<u64> {
    let price = json::get(json::get(tool, "_meta")?, PRICE)?;
    std::str::from_utf8(json::get(price, "sat")?).ok()?.parse().ok()
}

/// Whether a description says that sealed requests are taken.
pub(crate) fn is_sealed(tags: &Tags) -> bool {
    // Several ways stand in one value, in several, or in several tags.
    let values = tags.iter().filter(|tag| tag.kind() == "encryption").flat_map(|tag| tag.as_slice().iter().skip(1));
    values.flat_map(|value| value.split([' ', ','])).any(|way| way == "nip59")
}

/// Where the provider reads and writes (NIP-65).
pub fn relay_list(relays: &[String], me: PublicKey, now: Timestamp) -> UnsignedEvent {
    UnsignedEvent::new(me, now, Kind::RelayList, relays.iter().map(|relay| tag("r", [relay])), "")
}

/// Where the provider reads sealed messages (NIP-17).
pub fn inbox_list(relays: &[String], me: PublicKey, now: Timestamp) -> UnsignedEvent {
    UnsignedEvent::new(me, now, Kind::InboxRelays, relays.iter().map(|relay| tag("relay", [relay])), "")
}

/// Withdraws a description (NIP-09).
pub fn withdrawal(described: &Event, now: Timestamp) -> UnsignedEvent {
    let (me, kind) = (described.pubkey, described.kind.as_u16().to_string());
    let id = crate::tags::value(&described.tags, "d").unwrap_or_default();
    let tags = [Tag::event(described.id), tag("a", [&format!("{kind}:{}:{id}", me.to_hex())]), tag("k", [&kind])];
    UnsignedEvent::new(me, now, Kind::EventDeletion, tags, "the service has stopped")
}

#[cfg(test)]
mod tests {
    use super::{all, is_sealed};
    use crate::manifest::MANIFEST;
    use nostr::prelude::{Tag, Tags};

    #[test]
    fn however_it_is_written_that_seals_are_read_it_is_understood() {
        for (written, expected) in [
            (&[&["encryption", "nip59"][..]][..], true),
            (&[&["encryption", "nip04 nip59"]], true),
            (&[&["encryption", "nip04", "nip59"]], true),
            (&[&["encryption", "nip04,nip59"]], true),
            (&[&["encryption", "nip04"], &["encryption", "nip59"]], true),
            (&[&["encryption", "nip04"]], false),
            (&[&["encryption"], &["t", "nip59"]], false),
            (&[], false),
        ] {
            let tags = written.iter().map(|tag| Tag::parse(tag.iter().copied()).unwrap()).collect();
            assert_eq!(is_sealed(&Tags::from_list(tags)), expected, "{written:?}");
        }
    }

    #[test]
    fn what_else_has_the_kind_of_manifests_does_not_crowd_them_out() {
        let filters = all();
        let mut unlimited = filters.iter().filter(|filter| filter.limit.is_none());
        assert!(unlimited.any(|filter| filter.kinds.iter().flatten().any(|kind| *kind == MANIFEST)), "{filters:?}");
    }
}
