//! Arguments that many tools take, understood in every form that people and models write them.

use crate::failure::Failure;
use nostr::nips::nip19::{FromBech32, Nip19};
use nostr::prelude::{Event, EventId, Filter, PublicKey, RelayUrl, Tag, Timestamp};
use serde_json::Value;

/// A public key: npub1…, nprofile1…, hex, each also with `nostr:` in front.
pub(crate) fn public_key(text: &str, pointer: &str) -> Result<PublicKey, Failure> {
    let bare = bare(text);
    let key = match Nip19::from_bech32(bare) {
        Ok(Nip19::Pubkey(key)) => Some(key),
        Ok(Nip19::Profile(profile)) => Some(profile.public_key),
        // What is longer would be read as far as a key goes.
        _ if bare.len() == 64 => PublicKey::from_hex(&bare.to_lowercase()).ok(),
        _ => None,
    };
    // Any 32 bytes can be written like a key; only half of them are one.
    let key = key.filter(|key| key.xonly().is_ok());
    key.ok_or_else(|| Failure::invalid("a public key is npub1…, nprofile1… or 64 hexadecimal digits").at(pointer))
}

/// An event id: note1…, nevent1…, hex.
pub(crate) fn event_id(text: &str, pointer: &str) -> Result<EventId, Failure> {
    let bare = bare(text);
    let id = match Nip19::from_bech32(bare) {
        Ok(Nip19::EventId(id)) => Some(id),
        Ok(Nip19::Event(event)) => Some(event.event_id),
        _ if bare.len() == 64 => EventId::from_hex(&bare.to_lowercase()).ok(),
        _ => None,
    };
    id.ok_or_else(|| Failure::invalid("an event id is note1…, nevent1… or 64 hexadecimal digits").at(pointer))
}

/// A signed event, as JSON text.
pub(crate) fn signed_event(text: &str, pointer: &str) -> Result<Event, Failure> {
    // The parser's own words could quote what was meant to be a secret.
    let words = "a signed event is a JSON object with id, pubkey, created_at, kind, tags, content and sig";
    let event: Event = serde_json::from_str(text).map_err(|_| Failure::invalid(words).at(pointer))?;
    event.verify().map_err(|_| Failure::invalid("the id or the signature of the event is wrong").at(pointer))?;
    Ok(event)
}

/// The address of a relay.
pub(crate) fn relay(text: &str, pointer: &str) -> Result<RelayUrl, Failure> {
    RelayUrl::parse(text.trim()).map_err(|_| Failure::invalid("a relay is wss://… or ws://…").at(pointer))
}

/// Several of them.
pub(crate) fn relays(texts: &[String], pointer: &str) -> Result<Vec<RelayUrl>, Failure> {
    texts.iter().enumerate().map(|(index, text)| relay(text, &format!("{pointer}/{index}"))).collect()
}

/// Tags as they are written in events.
pub(crate) fn tags(tags: &[Vec<String>], pointer: &str) -> Result<Vec<Tag>, Failure> {
    let parse = |(index, tag): (usize, &Vec<String>)| {
        let named = Tag::parse(tag).ok().filter(|tag| !tag.kind().trim().is_empty());
        named.ok_or_else(|| Failure::invalid("a tag has a name").at(format!("{pointer}/{index}")))
    };
    tags.iter().enumerate().map(parse).collect()
}

/// Several public keys.
pub(crate) fn public_keys(texts: &[String], pointer: &str) -> Result<Vec<PublicKey>, Failure> {
    texts.iter().enumerate().map(|(index, text)| public_key(text, &format!("{pointer}/{index}"))).collect()
}

/// A filter as in NIP-01, in which keys and ids may be written in any form.
pub(crate) fn filter(value: &Value, pointer: &str) -> Result<Filter, Failure> {
    let mut value = value.clone();
    let members = value.as_object_mut().ok_or_else(|| Failure::invalid("a filter is an object").at(pointer))?;
    for (name, member) in members.iter_mut() {
        let is_key = matches!(name.as_str(), "authors" | "#p" | "#P");
        let is_id = matches!(name.as_str(), "ids" | "#e" | "#E");
        let Value::Array(items) = member else { continue };
        for (index, item) in items.iter_mut().enumerate().filter(|_| is_key || is_id) {
            let place = format!("{pointer}/{name}/{index}");
            let Value::String(text) = item else { continue };
            *text = if is_key { public_key(text, &place)?.to_hex() } else { event_id(text, &place)?.to_hex() };
        }
    }
    serde_json::from_value(value).map_err(|error| Failure::invalid(format!("not a filter: {error}")).at(pointer))
}

/// From when, until when, and how many.
pub(crate) fn window(
    mut filter: Filter,
    since: Option<u64>,
    until: Option<u64>,
    limit: usize,
) -> Result<Filter, Failure> {
    if since.zip(until).is_some_and(|(since, until)| since > until) {
        return Err(Failure::invalid("`since` is after `until`").at("/since"));
    }
    filter.since = since.map(Timestamp::from);
    filter.until = until.map(Timestamp::from);
    Ok(filter.limit(limit))
}

/// How many, within reason.
pub(crate) fn limit(wanted: Option<u64>, usual: usize) -> Result<usize, Failure> {
    const MOST: usize = 1_000;
    match wanted {
        Some(0) => Err(Failure::invalid("`limit` must be at least 1").at("/limit")),
        Some(wanted) => Ok(usize::try_from(wanted).unwrap_or(MOST).min(MOST)),
        None => Ok(usual),
    }
}

/// What follows `nostr:`, if that is there.
pub(crate) fn bare(text: &str) -> &str {
    let text = text.trim();
    match text.get(..6) {
        Some(scheme) if scheme.eq_ignore_ascii_case("nostr:") => &text[6..],
        _ => text,
    }
}

/// Relays that were named with a reference (nprofile1…, nevent1…, naddr1…).
pub(crate) fn hints(text: &str) -> Vec<RelayUrl> {
    const MOST: usize = 5;
    let relays = match Nip19::from_bech32(bare(text)) {
        Ok(Nip19::Profile(profile)) => profile.relays,
        Ok(Nip19::Event(event)) => event.relays,
        Ok(Nip19::Coordinate(address)) => address.relays,
        _ => Vec::new(),
    };
    relays.into_iter().take(MOST).collect()
}
