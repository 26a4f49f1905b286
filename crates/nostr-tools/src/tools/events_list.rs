//! `nostr_events_list`: events that people ask for every day.

use crate::argument;
use crate::failure::Failure;
use crate::network::{Route, patience};
use crate::result::EventItemsResult;
use crate::shape::{choice, record};
use crate::tool::{self, About, Effect, Status, Turn};
use nostr::prelude::{Filter, Kind};

choice! {
    enum Preset {
        MyNotes = "my_notes",
        MentionsMe = "mentions_me",
        MyMetadata = "my_metadata",
        ByAuthor = "by_author",
        ByKind = "by_kind",
    }
}

record! {
    struct Input {
        /// Which events
        preset: Preset,
        /// The author (npub or hex), for by_author
        author_npub: Option<String>,
        /// The kind, for by_kind
        kind: Option<u16>,
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

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 28,
        name: "nostr_events_list",
        title: "List events",
        status: Status::Stable,
        nips: &[1],
        summary: "Lists the newest events: my_notes, mentions_me, my_metadata (of the active key), by_author, or by_kind.",
        effect: Effect::ReadsThere,
        example: r#"{"preset":"my_notes","limit":10}"#,
    };

    type Input = Input;
    type Output = EventItemsResult;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<EventItemsResult, Failure> {
        let author = input.author_npub.as_deref().map(|text| argument::public_key(text, "/author_npub")).transpose()?;
        let missing = |name: &str| Failure::invalid(format!("this preset needs `{name}`")).at(format!("/{name}"));
        let mut filter = match input.preset {
            Preset::MyNotes => Filter::new().author(turn.me()?).kind(Kind::TextNote),
            Preset::MentionsMe => Filter::new().pubkey(turn.me()?),
            Preset::MyMetadata => Filter::new().author(turn.me()?).kind(Kind::Metadata),
            Preset::ByAuthor => Filter::new().author(author.ok_or_else(|| missing("author_npub"))?),
            Preset::ByKind => {
                let filter = Filter::new().kind(Kind::from(input.kind.ok_or_else(|| missing("kind"))?));
                author.map_or_else(|| filter.clone(), |author| filter.clone().author(author))
            }
        };
        if let (Some(kind), Preset::ByAuthor | Preset::MentionsMe) = (input.kind, input.preset) {
            filter = filter.kind(Kind::from(kind));
        }
        let limit = argument::limit(input.limit, 50)?;
        let filter = argument::window(filter, input.since, input.until, limit)?;
        turn.list(&[filter], Route::Usual, patience(input.timeout_secs), limit).await
    }
}
