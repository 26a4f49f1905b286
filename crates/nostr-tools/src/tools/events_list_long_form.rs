//! `nostr_events_list_long_form`: articles.

use crate::argument;
use crate::failure::Failure;
use crate::network::{Route, patience};
use crate::result::EventItemsResult;
use crate::shape::record;
use crate::tool::{self, About, Effect, Status, Turn};
use nostr::prelude::{Filter, Kind};

record! {
    struct Input {
        /// Only by this author (npub or hex)
        author_npub: Option<String>,
        /// Only with one of these hashtags
        hashtags: Option<Vec<String>>,
        /// Only the article of this identifier (d tag)
        identifier: Option<String>,
        /// How many at most (default 20)
        limit: Option<u64>,
        /// Not older (seconds since 1970)
        since: Option<u64>,
        /// Not newer
        until: Option<u64>,
        /// Seconds to wait
        timeout_secs: Option<u64>,
    }
}

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 61,
        name: "nostr_events_list_long_form",
        title: "List articles",
        status: Status::Stable,
        nips: &[23],
        summary: "Lists long-form articles (kind 30023), the newest version of each.",
        effect: Effect::ReadsThere,
        example: r#"{"hashtags":["nostr"],"limit":5}"#,
    };

    type Input = Input;
    type Output = EventItemsResult;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<EventItemsResult, Failure> {
        let mut filter = Filter::new().kind(Kind::LongFormTextNote);
        if let Some(author) = &input.author_npub {
            filter = filter.author(argument::public_key(author, "/author_npub")?);
        }
        if let Some(tags) = input.hashtags.filter(|tags| !tags.is_empty()) {
            let plain = |tag: &String| tag.trim().trim_start_matches('#').to_lowercase();
            filter = filter.hashtags(tags.iter().map(plain));
        }
        if let Some(identifier) = input.identifier {
            filter = filter.identifier(identifier);
        }
        let limit = argument::limit(input.limit, 20)?;
        let filter = argument::window(filter, input.since, input.until, limit)?;
        turn.list(&[filter], Route::Usual, patience(input.timeout_secs), limit).await
    }
}
