//! `nostr_events_query`: events by filters.

use crate::argument;
use crate::failure::Failure;
use crate::network::{Route, patience};
use crate::result::EventItemsResult;
use crate::shape::record;
use crate::tool::{self, About, Effect, Status, Turn};
use nostr::prelude::Filter;
use serde_json::Value;

record! {
    struct Input {
        /// Filters as in NIP-01; keys and ids also as npub1…, note1…
        filters: Vec<Value>,
        /// How many events at most (default 100)
        limit: Option<u64>,
        /// Seconds to wait
        timeout_secs: Option<u64>,
        /// Ask these relays only
        relays: Option<Vec<String>>,
    }
}

/// As many as relays take at once.
const MAX_FILTERS: usize = 20;

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 29,
        name: "nostr_events_query",
        title: "Find events by filters",
        status: Status::Stable,
        nips: &[1],
        summary: "Finds events on relays with raw NIP-01 filters. Needs no key.",
        effect: Effect::ReadsThere,
        example: r#"{"filters":[{"kinds":[1],"limit":5}]}"#,
    };

    type Input = Input;
    type Output = EventItemsResult;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<EventItemsResult, Failure> {
        if input.filters.is_empty() || input.filters.len() > MAX_FILTERS {
            return Err(Failure::invalid(format!("1 to {MAX_FILTERS} filters can be asked for")).at("/filters"));
        }
        let limit = argument::limit(input.limit, 100)?;
        let read = |(index, value): (usize, &Value)| -> Result<Filter, Failure> {
            let filter = argument::filter(value, &format!("/filters/{index}"))?;
            let own = filter.limit.unwrap_or(limit).min(limit);
            Ok(filter.limit(own))
        };
        let filters: Vec<Filter> = input.filters.iter().enumerate().map(read).collect::<Result<_, _>>()?;
        let relays = argument::relays(input.relays.as_deref().unwrap_or_default(), "/relays")?;
        let route = if relays.is_empty() { Route::Usual } else { Route::Only(&relays) };
        turn.list(&filters, route, patience(input.timeout_secs), limit).await
    }
}
