//! `nostr_events_query`: events by filters.

use crate::failure::Failure;
use crate::network::PATIENCE;
use crate::result::{EventItem, EventItemsResult};
use crate::shape::record;
use crate::tool::{self, About, Effect, Status, Turn};
use nostr::prelude::Filter;
use serde_json::Value;
use std::time::Duration;

record! {
    struct Input {
        /// Filters as in NIP-01; an event that fits any of them is found
        filters: Vec<Value>,
        /// How many events at most
        limit: Option<u64>,
        /// How long to wait for relays
        timeout_secs: Option<u64>,
    }
}

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
        let filters = input.filters.iter().enumerate().map(|(index, filter)| {
            serde_json::from_value::<Filter>(filter.clone())
                .map_err(|error| Failure::invalid(format!("not a filter: {error}")).at(format!("/filters/{index}")))
        });
        let filters: Vec<Filter> = filters.collect::<Result<_, _>>()?;
        let patience = input.timeout_secs.map_or(PATIENCE, Duration::from_secs);
        let events = turn.session.network.fetch(&filters, &[], patience).await?;
        let limit = usize::try_from(input.limit.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
        let items: Vec<EventItem> = events.iter().take(limit).map(EventItem::from).collect();
        Ok(EventItemsResult { count: items.len() as u64, items })
    }
}
