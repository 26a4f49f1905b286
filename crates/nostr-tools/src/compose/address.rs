//! What stands for an event in an argument: its id, or its address, in every form that people write them.

use crate::argument;
use crate::compose::has_address;
use crate::failure::Failure;
use nostr::nips::nip01::Coordinate;
use nostr::nips::nip19::{FromBech32, Nip19, Nip19Coordinate};
use nostr::prelude::{Event, EventId, Filter, Kind, PublicKey, RelayUrl};

/// An event that is named by whoever calls.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reference {
    pub(crate) name: Name,
    pub(crate) author: Option<PublicKey>,
    pub(crate) kind: Option<Kind>,
    /// Where it may be found.
    pub(crate) relays: Vec<RelayUrl>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Name {
    Id(EventId),
    Address(Coordinate),
}

impl Reference {
    /// note1…, nevent1…, naddr1…, an id in hex, or `kind:pubkey:d`.
    pub(crate) fn parse(text: &str, pointer: &str) -> Result<Self, Failure> {
        if let Ok(Nip19::Event(event)) = Nip19::from_bech32(argument::bare(text)) {
            let name = Name::Id(event.event_id);
            return Ok(Self { name, author: event.author, kind: event.kind, relays: event.relays });
        }
        if let Some(Nip19Coordinate { coordinate, relays }) = coordinate(text) {
            let (author, kind) = (Some(coordinate.public_key), Some(coordinate.kind));
            return Ok(Self { name: Name::Address(coordinate), author, kind, relays });
        }
        let id = argument::event_id(text, pointer).map_err(|_| {
            Failure::invalid("an event is note1…, nevent1…, naddr1…, 64 hexadecimal digits, or kind:pubkey:d")
                .at(pointer)
        })?;
        Ok(Self { name: Name::Id(id), author: None, kind: None, relays: Vec::new() })
    }

    pub(crate) fn filter(&self) -> Filter {
        match &self.name {
            Name::Id(id) => Filter::new().id(*id),
            Name::Address(address) => {
                let filter = Filter::new().kind(address.kind).author(address.public_key);
                if address.kind.is_addressable() { filter.identifier(&address.identifier) } else { filter }
            }
        }
    }

    /// Relays answer what they like.
    pub(crate) fn fits(&self, event: &Event) -> bool {
        match &self.name {
            Name::Id(id) => event.id == *id,
            Name::Address(address) => event.coordinate().as_ref() == Some(address),
        }
    }
}

fn coordinate(text: &str) -> Option<Nip19Coordinate> {
    let bare = argument::bare(text);
    let found = match Nip19::from_bech32(bare) {
        Ok(Nip19::Coordinate(found)) => found,
        _ => Nip19Coordinate::new(plain(bare)?, []),
    };
    has_address(found.coordinate.kind).then_some(found)
}

/// `kind:pubkey:d`, where `d` may have colons of its own.
fn plain(text: &str) -> Option<Coordinate> {
    let mut parts = text.splitn(3, ':');
    let (kind, key, identifier) = (parts.next()?, parts.next()?, parts.next()?);
    let key = PublicKey::from_hex(&key.to_lowercase()).ok()?;
    Some(Coordinate::new(Kind::from_u16(kind.parse().ok()?), key).identifier(identifier))
}

/// An address: naddr1… or `kind:pubkey:d`.
pub(crate) fn address(text: &str, pointer: &str) -> Result<Nip19Coordinate, Failure> {
    coordinate(text).ok_or_else(|| {
        Failure::invalid("an address is naddr1… or kind:pubkey:d, of a kind that has addresses").at(pointer)
    })
}

/// An address of something of this kind, of which `what` says what it is.
pub(crate) fn address_of(kind: Kind, what: &str, text: &str, pointer: &str) -> Result<Nip19Coordinate, Failure> {
    let found = address(text, pointer)?;
    if found.coordinate.kind != kind {
        let words = format!("that is an event of kind {}; {what} has kind {kind}", found.coordinate.kind);
        return Err(Failure::invalid(words).at(pointer));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::{Name, Reference, address_of};
    use nostr::nips::nip01::Coordinate;
    use nostr::nips::nip19::{Nip19Coordinate, Nip19Event, ToBech32};
    use nostr::prelude::{EventId, Keys, Kind, RelayUrl};

    #[test]
    fn events_are_named_in_many_ways() {
        let key = Keys::generate().public_key();
        let id = EventId::from_hex(&"ab".repeat(32)).unwrap();
        let relay = RelayUrl::parse("wss://relay.example").unwrap();
        let article = Coordinate::new(Kind::LongFormTextNote, key).identifier("my:article");
        let event = Nip19Event::new(id).author(key).kind(Kind::TextNote).relays([relay.clone()]);
        let by_id = |text: &str| (text.to_owned(), Name::Id(id));
        let by_address = |text: String| (text, Name::Address(article.clone()));
        let cases = [
            by_id(&id.to_hex()),
            by_id(&id.to_hex().to_uppercase()),
            by_id(&id.to_bech32().unwrap()),
            by_id(&format!(" nostr:{}", event.to_bech32().unwrap())),
            by_address(format!("30023:{key}:my:article")),
            by_address(Nip19Coordinate::new(article.clone(), [relay.clone()]).to_bech32().unwrap()),
        ];
        for (text, name) in cases {
            assert_eq!(Reference::parse(&text, "/x").unwrap().name, name, "{text}");
        }
        let reference = Reference::parse(&event.to_bech32().unwrap(), "/x").unwrap();
        assert_eq!(
            (reference.author, reference.kind, reference.relays),
            (Some(key), Some(Kind::TextNote), vec![relay])
        );
        for text in ["", "x", &key.to_bech32().unwrap(), &format!("1:{key}:x"), "30023:x:y"] {
            assert!(Reference::parse(text, "/x").is_err(), "{text}");
        }
        assert!(address_of(Kind::from_u16(30_009), "a badge", &format!("30023:{key}:x"), "/badge").is_err());
    }
}
