//! `nostr_groups_list_messages`: what is said in a group.

use crate::argument;
use crate::compose::group::Group;
use crate::failure::Failure;
use crate::network::{Route, patience};
use crate::result::EventItemsResult;
use crate::shape::record;
use crate::tool::{self, About, Effect, Status, Turn};
use nostr::prelude::{Filter, Kind, SingleLetterTag};

record! {
    struct Input {
        /// The group: host'id, naddr1…, or an id on the relays in use
        group_id: String,
        /// How many at most (default 50)
        limit: Option<u64>,
        /// Not older (seconds since 1970)
        since: Option<u64>,
        /// Not newer
        until: Option<u64>,
        /// Seconds to wait
        timeout_secs: Option<u64>,
    }
}

/// Chat, threads, and comments.
const KINDS: [u16; 3] = [9, 11, 1111];

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 111,
        name: "nostr_groups_list_messages",
        title: "Read a group",
        status: Status::Experimental,
        nips: &[29],
        summary: "Lists the newest messages in a relay-based group.",
        effect: Effect::ReadsThere,
        example: r#"{"group_id":"relay.example.com'cats","limit":20}"#,
    };

    type Input = Input;
    type Output = EventItemsResult;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<EventItemsResult, Failure> {
        let group = Group::parse(&input.group_id)?;
        let limit = argument::limit(input.limit, 50)?;
        let filter = Filter::new().kinds(KINDS.map(Kind::from)).custom_tag(SingleLetterTag::LOWERCASE_H, &group.id);
        let filter = argument::window(filter, input.since, input.until, limit)?;
        let places = group.places(turn)?;
        turn.list(&[filter], Route::Only(&places), patience(input.timeout_secs), limit).await
    }
}
