//! `nostr_events_delete`: a request to forget one's own events.

use crate::compose::address::{Name, Reference, address};
use crate::compose::{Tags, publication, tag};
use crate::failure::Failure;
use crate::network::{PATIENCE, Route};
use crate::result::SendResult;
use crate::tool::{self, About, Effect, Status, Turn};
use nostr::prelude::{Event, Filter, Kind, PublicKey, Tag};

publication! {
    struct Input {
        /// Ids, note1 or nevent1
        event_ids: Option<Vec<String>>,
        /// All versions: kind:pubkey:d or naddr1
        coordinates: Option<Vec<String>>,
        /// Why
        reason: Option<String>,
    }
}

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 63,
        name: "nostr_events_delete",
        title: "Delete own events",
        status: Status::Stable,
        nips: &[9],
        summary: "Asks relays and clients to forget events of the active key (kind 5). It cannot be undone, and nobody can be \
                  forced to comply.",
        effect: Effect::Replaces,
        example: r#"{"event_ids":["d7dd5eb3ab747e16f8d0212d53032ea2a7cadef53837e5a6c66d42849fcb9027"],"reason":"by accident"}"#,
    };

    type Input = Input;
    type Output = SendResult;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<SendResult, Failure> {
        let wishes = input.wishes();
        let author = turn.session.keyring.signer().await?.public_key();
        let (ids, addresses) = (input.event_ids.unwrap_or_default(), input.coordinates.unwrap_or_default());
        if ids.is_empty() && addresses.is_empty() {
            return Err(Failure::invalid("say what to delete with `event_ids` or `coordinates`").at("/event_ids"));
        }
        let mut tags = Tags::default();
        let mut kinds = Vec::new();
        for (id, kind) in events(&ids, author, turn).await? {
            tags.add(id);
            kinds.extend(kind);
        }
        for (index, text) in addresses.iter().enumerate() {
            let pointer = format!("/coordinates/{index}");
            let address = address(text, &pointer)?.coordinate;
            if address.public_key != author {
                return Err(Failure::invalid("only its author can delete an event").at(pointer));
            }
            tags.add(tag("a", [&address.to_string()]));
            kinds.push(address.kind);
        }
        tags.add_all(kinds.iter().map(|kind| tag("k", [&kind.to_string()])));
        turn.publish(Kind::EventDeletion, tags.into_vec(), input.reason.unwrap_or_default(), wishes).await
    }
}

/// An `e` tag for each event, and its kind as far as it is known.
async fn events(ids: &[String], author: PublicKey, turn: &Turn<'_>) -> Result<Vec<(Tag, Option<Kind>)>, Failure> {
    let mut named = Vec::new();
    for (index, text) in ids.iter().enumerate() {
        let pointer = format!("/event_ids/{index}");
        let reference = Reference::parse(text, &pointer)?;
        let Name::Id(id) = reference.name else {
            return Err(Failure::invalid("addresses belong in `coordinates`").at(pointer));
        };
        named.push((id, reference.kind, pointer));
    }
    let filter = Filter::new().ids(named.iter().map(|(id, ..)| *id));
    // That an event cannot be found does not mean that it is nowhere.
    let found = match named.is_empty() {
        true => Vec::new(),
        false => turn.fetch(&[filter], Route::Usual, PATIENCE).await.unwrap_or_default(),
    };
    let check = |(id, kind, pointer)| {
        let event = found.iter().find(|event| event.id == id);
        let kind = event.map(|event| event.kind).or(kind);
        if event.is_some_and(|event| !may_delete(event, author)) {
            return Err(Failure::invalid("only its author can delete an event").at(pointer));
        }
        if kind == Some(Kind::EventDeletion) {
            return Err(Failure::invalid("a deletion cannot be deleted").at(pointer));
        }
        Ok((tag("e", [&id.to_hex()]), kind))
    };
    named.into_iter().map(check).collect()
}

/// Authors may, and whoever a wrap is for: its author is a key that nobody has any more.
fn may_delete(event: &Event, who: PublicKey) -> bool {
    event.pubkey == who || event.kind == Kind::GiftWrap && event.tags.public_keys().any(|key| key == who)
}
