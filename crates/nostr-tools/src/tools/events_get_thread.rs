//! `nostr_events_get_thread`: a conversation.

use crate::argument;
use crate::failure::Failure;
use crate::network::{Route, patience};
use crate::result::EventItem;
use crate::shape::record;
use crate::tool::{self, About, Effect, Status, Turn};
use nostr::prelude::{Event, EventId, Filter, SingleLetterTag};

record! {
    struct Input {
        /// Any event of the conversation (note1…, nevent1… or hex)
        event_id: String,
        /// How many replies at most (default 50)
        limit: Option<u64>,
        /// Seconds to wait
        timeout_secs: Option<u64>,
    }
}

record! {
    struct Output {
        /// The id of what the conversation began with, in hex
        root_id: String,
        /// That event, if it was found
        root: Option<EventItem>,
        /// What was said since, oldest first
        replies: Vec<EventItem>,
        /// How many
        count: u64,
    }
}

/// Notes, comments, and chat in threads; reactions and reposts say nothing.
const KINDS: [u16; 4] = [1, 11, 1111, 1244];

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 106,
        name: "nostr_events_get_thread",
        title: "Read a conversation",
        status: Status::Experimental,
        nips: &[10, 22],
        summary: "Fetches the conversation that an event belongs to: what it began with, and all replies and comments.",
        effect: Effect::ReadsThere,
        example: r#"{"event_id":"0000000000000000000000000000000000000000000000000000000000000001"}"#,
    };

    type Input = Input;
    type Output = Output;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<Output, Failure> {
        let id = argument::event_id(&input.event_id, "/event_id")?;
        let limit = argument::limit(input.limit, 50)?;
        let patience = patience(input.timeout_secs);
        let hints = argument::hints(&input.event_id);
        let found = turn.find(id, &hints).await?;
        let missing = || Failure::not_found("no relay that was asked has this event").at("/event_id");
        let event = found.ok_or_else(missing)?;
        let root_id = root_of(&event).unwrap_or(id);
        let root = if root_id == id { Some(event) } else { turn.find(root_id, &hints).await? };
        let kinds = || Filter::new().kinds(KINDS.map(nostr::prelude::Kind::from)).limit(limit);
        let filters = [kinds().event(root_id), kinds().custom_tag(SingleLetterTag::UPPERCASE_E, root_id.to_hex())];
        let mut replies = turn.fetch(&filters, Route::Also(&hints), patience).await?;
        replies.truncate(limit);
        replies.reverse();
        let replies: Vec<EventItem> = replies.iter().map(EventItem::from).collect();
        Ok(Output {
            root_id: root_id.to_hex(),
            root: root.as_ref().map(EventItem::from),
            count: replies.len() as u64,
            replies,
        })
    }
}

/// What a conversation began with: `E`, or `e` marked as root, or the first `e` of those who do not mark.
fn root_of(event: &Event) -> Option<EventId> {
    let id = |tag: &nostr::prelude::Tag| tag.content().and_then(|text| EventId::from_hex(text).ok());
    let marked =
        |tag: &&nostr::prelude::Tag| tag.kind() == "e" && tag.as_slice().get(3).is_some_and(|mark| mark == "root");
    let plain =
        |tag: &&nostr::prelude::Tag| tag.kind() == "e" && tag.as_slice().get(3).is_none_or(|mark| mark != "mention");
    let tags = &event.tags;
    let found = tags.iter().find(|tag| tag.kind() == "E").or_else(|| tags.iter().find(marked));
    found.or_else(|| tags.iter().find(plain).filter(|_| event.kind.as_u16() == 1)).and_then(id)
}
