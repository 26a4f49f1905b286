//! `nostr_events_search`: events by words.

use crate::argument;
use crate::failure::Failure;
use crate::network::{Route, patience};
use crate::result::EventItemsResult;
use crate::shape::record;
use crate::tool::{self, About, Effect, Status, Turn};
use nostr::prelude::{Filter, Kind};

record! {
    struct Input {
        /// Words to look for
        query: String,
        /// Only by this author (npub or hex)
        author_npub: Option<String>,
        /// Only of these kinds (default 1)
        kinds: Option<Vec<u16>>,
        /// How many at most (default 50)
        limit: Option<u64>,
        /// Not older (seconds since 1970)
        since: Option<u64>,
        /// Not newer
        until: Option<u64>,
        /// Seconds to wait
        timeout_secs: Option<u64>,
        /// Ask these relays only
        relays: Option<Vec<String>>,
    }
}

/// No search needs more.
const MAX_QUERY: usize = 1_000;

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 30,
        name: "nostr_events_search",
        title: "Search events",
        status: Status::Stable,
        nips: &[50],
        summary: "Finds events by words, on relays that can search: those in use that say so, and well-known ones.",
        effect: Effect::ReadsThere,
        example: r#"{"query":"lightning","limit":10}"#,
    };

    type Input = Input;
    type Output = EventItemsResult;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<EventItemsResult, Failure> {
        let query = input.query.trim();
        if query.is_empty() || query.len() > MAX_QUERY {
            return Err(Failure::invalid(format!("`query` must have 1 to {MAX_QUERY} bytes")).at("/query"));
        }
        let kinds = input.kinds.unwrap_or_else(|| vec![Kind::TextNote.as_u16()]);
        let mut filter = Filter::new().search(query).kinds(kinds.into_iter().map(Kind::from));
        if let Some(author) = &input.author_npub {
            filter = filter.author(argument::public_key(author, "/author_npub")?);
        }
        let limit = argument::limit(input.limit, 50)?;
        let filter = argument::window(filter, input.since, input.until, limit)?;
        let chosen = argument::relays(input.relays.as_deref().unwrap_or_default(), "/relays")?;
        let relays = if chosen.is_empty() { turn.session.network.searchers().await? } else { chosen };
        if relays.is_empty() {
            let words = "none of the relays in use can search (NIP-50); name one that can in `relays`";
            return Err(Failure::relays(words));
        }
        turn.list(&[filter], Route::Only(&relays), patience(input.timeout_secs), limit).await
    }
}
