//! `nostr_events_list_notifications`: what others did that concerns us.

use crate::argument;
use crate::failure::Failure;
use crate::network::{Route, patience};
use crate::result::{EventItem, EventItemsResult};
use crate::shape::record;
use crate::tool::{self, About, Effect, Status, Turn};
use nostr::prelude::{Filter, Kind};

record! {
    struct Input {
        /// Only of these kinds (default replies, mentions, comments, reactions, reposts, zaps)
        kinds: Option<Vec<u16>>,
        /// How many at most (default 30)
        limit: Option<u64>,
        /// Not older (seconds since 1970)
        since: Option<u64>,
        /// Not newer
        until: Option<u64>,
        /// Seconds to wait
        timeout_secs: Option<u64>,
    }
}

const KINDS: [u16; 6] = [1, 6, 7, 16, 1111, 9735];

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 107,
        name: "nostr_events_list_notifications",
        title: "List notifications",
        status: Status::Experimental,
        nips: &[1, 10, 18, 22, 25, 57],
        summary: "Lists what others did that mentions the active key: replies, comments, reactions, reposts and zap receipts.",
        effect: Effect::ReadsThere,
        example: r#"{"limit":10}"#,
    };

    type Input = Input;
    type Output = EventItemsResult;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<EventItemsResult, Failure> {
        let me = turn.me()?;
        let limit = argument::limit(input.limit, 30)?;
        let kinds = input.kinds.unwrap_or_else(|| KINDS.to_vec()).into_iter().map(Kind::from);
        let filter = Filter::new().pubkey(me).kinds(kinds);
        let filter = argument::window(filter, input.since, input.until, limit)?;
        let found = turn.fetch(&[filter], Route::Usual, patience(input.timeout_secs)).await?;
        let others = found.iter().filter(|event| event.pubkey != me);
        let items: Vec<EventItem> = others.take(limit).map(EventItem::from).collect();
        Ok(EventItemsResult { count: items.len() as u64, items })
    }
}
