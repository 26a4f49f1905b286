//! Groups that live on a relay (NIP-29): what the tools for their members and moderators have in common.

use crate::argument;
use crate::compose::{Tags, filled, tag};
use crate::failure::Failure;
use crate::publish::{Route, Wishes};
use crate::result::SendResult;
use crate::tool::Turn;
use nostr::nips::nip19::{FromBech32, Nip19};
use nostr::prelude::{Kind, RelayUrl, Tag};

/// What a relay says about a group.
pub(crate) const METADATA: Kind = Kind::Custom(39_000);

/// How many characters of an id a reference to an earlier event has.
const REFERENCE: usize = 8;

/// The input of a tool that tells a group something, and how it is told.
macro_rules! moderation {
    (struct $name:ident { $($(#[doc = $doc:literal])+ $field:ident: $type:ty,)* }) => {
        $crate::compose::publication! {
            struct $name {
                /// Its id, naddr1 or host'id
                group_id: String,
                /// Reason, may be empty
                content: String,
                $($(#[doc = $doc])+ $field: $type,)*
                /// Recent event ids there
                previous_refs: Option<Vec<String>>,
            }
        }

        impl $name {
            /// Publishes an event of this kind in the group.
            async fn send(
                &self,
                kind: u16,
                tags: impl IntoIterator<Item = nostr::prelude::Tag>,
                turn: &$crate::tool::Turn<'_>,
            ) -> Result<$crate::result::SendResult, $crate::failure::Failure> {
                let group = $crate::compose::group::Group::parse(&self.group_id)?;
                let previous = self.previous_refs.as_deref().unwrap_or_default();
                let tags = group.tags(tags, previous)?;
                group.send(turn, kind, tags, self.content.clone(), self.wishes()).await
            }
        }
    };
}

pub(crate) use moderation;

/// A group.
#[derive(Debug, PartialEq)]
pub(crate) struct Group {
    pub(crate) id: String,
    /// Where it lives, if that was said.
    pub(crate) relays: Vec<RelayUrl>,
}

impl Group {
    pub(crate) fn parse(text: &str) -> Result<Self, Failure> {
        let pointer = "/group_id";
        let bare = filled(argument::bare(text), pointer)?;
        if let Ok(Nip19::Coordinate(found)) = Nip19::from_bech32(bare) {
            if found.coordinate.kind != METADATA {
                return Err(Failure::invalid("that is the address of something else than a group").at(pointer));
            }
            return Ok(Self { id: found.coordinate.identifier, relays: found.relays });
        }
        let (host, id) = bare.split_once('\'').map_or((None, bare), |(host, id)| (Some(host), id));
        if id.is_empty() || id.chars().any(|letter| letter.is_whitespace() || letter.is_control()) {
            return Err(Failure::invalid("the id of a group has no spaces").at(pointer));
        }
        let with_scheme = |host: &str| if host.contains("://") { host.to_owned() } else { format!("wss://{host}") };
        let relay = host.map(|host| argument::relay(&with_scheme(host), pointer)).transpose()?;
        Ok(Self { id: id.to_owned(), relays: relay.into_iter().collect() })
    }

    /// `h`, what the event is about, and references to what happened before.
    pub(crate) fn tags(&self, more: impl IntoIterator<Item = Tag>, previous: &[String]) -> Result<Vec<Tag>, Failure> {
        let mut tags = Tags::default();
        tags.add(tag("h", [&self.id]));
        tags.add_all(more);
        let shorten = |(index, text): (usize, &String)| {
            let start = argument::bare(text).get(..REFERENCE).map(str::to_lowercase);
            let is_hex = |start: &String| start.chars().all(|letter| letter.is_ascii_hexdigit());
            let pointer = format!("/previous_refs/{index}");
            start
                .filter(is_hex)
                .ok_or_else(|| Failure::invalid("an event id begins with 8 hexadecimal digits").at(pointer))
        };
        let previous = previous.iter().enumerate().map(shorten).collect::<Result<Vec<_>, _>>()?;
        if !previous.is_empty() {
            tags.add(Tag::custom("previous", previous));
        }
        Ok(tags.into_vec())
    }

    /// Where the group lives, as far as we know; never where the people in it read, who may not want that known.
    pub(crate) fn places(&self, turn: &Turn<'_>) -> Result<Vec<RelayUrl>, Failure> {
        if self.relays.is_empty() { turn.session.network.write_relays() } else { Ok(self.relays.clone()) }
    }

    /// Publishes where the group lives.
    pub(crate) async fn send(
        &self,
        turn: &Turn<'_>,
        kind: u16,
        tags: Vec<Tag>,
        content: String,
        wishes: Wishes,
    ) -> Result<SendResult, Failure> {
        let places = self.places(turn)?;
        turn.publish_along(Kind::from_u16(kind), tags, content, wishes, Route::Only(&places)).await
    }
}

#[cfg(test)]
mod tests {
    use super::{Group, METADATA};
    use nostr::nips::nip01::Coordinate;
    use nostr::nips::nip19::{Nip19Coordinate, ToBech32};
    use nostr::prelude::{Keys, Kind, RelayUrl, Tag};

    #[test]
    fn a_group_is_named_with_or_without_its_relay() {
        let relay = RelayUrl::parse("wss://groups.example").unwrap();
        let key = Keys::generate().public_key();
        let address = |kind| {
            let address = Coordinate::new(kind, key).identifier("pizza");
            Nip19Coordinate::new(address, [relay.clone()]).to_bech32().unwrap()
        };
        let cases = [
            ("pizza".to_owned(), vec![]),
            ("groups.example'pizza".to_owned(), vec![relay.clone()]),
            ("wss://groups.example'pizza".to_owned(), vec![relay.clone()]),
            (address(METADATA), vec![relay.clone()]),
        ];
        for (text, relays) in cases {
            assert_eq!(Group::parse(&text).unwrap(), Group { id: "pizza".into(), relays }, "{text}");
        }
        for text in ["", "a b", "groups.example'", &address(Kind::LongFormTextNote)] {
            assert!(Group::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn earlier_events_are_named_by_their_beginning() {
        let group = Group { id: "pizza".into(), relays: Vec::new() };
        let tags = group.tags([], &["ABCDEF0123".into(), "12345678".into()]).unwrap();
        let tags: Vec<String> = tags.iter().map(|tag: &Tag| tag.as_slice().join(" ")).collect();
        assert_eq!(tags, ["h pizza", "previous abcdef01 12345678"]);
        assert!(group.tags([], &["xyz".into()]).is_err());
    }
}
