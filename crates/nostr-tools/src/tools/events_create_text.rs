//! `nostr_events_create_text`: a note that is not signed yet.

use crate::argument;
use crate::failure::Failure;
use crate::shape::record;
use crate::tool::{self, About, Effect, Status, Turn};
use nostr::prelude::{Kind, Timestamp, UnsignedEvent};

record! {
    struct Input {
        /// The text of the note
        content: String,
        /// In seconds since 1970 (default now)
        created_at: Option<u64>,
        /// Its tags
        tags: Option<Vec<Vec<String>>>,
    }
}

record! {
    struct Output {
        /// The id, in hex
        event_id: String,
        /// The author, in hex
        pubkey: String,
        /// The event as JSON, for nostr_events_sign
        unsigned_event_json: String,
    }
}

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 70,
        name: "nostr_events_create_text",
        title: "Draft a note",
        status: Status::Stable,
        nips: &[1],
        summary: "Drafts a text note (kind 1) of the active key, unsigned and unpublished.",
        effect: Effect::ReadsHere,
        example: r#"{"content":"Hello, Nostr","tags":[["t","nostr"]]}"#,
    };

    type Input = Input;
    type Output = Output;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<Output, Failure> {
        let session = turn.session;
        let author = session
            .keyring
            .active()?
            .ok_or_else(|| Failure::no_signer("there is no active key; choose one with nostr_keys_set_active"))?;
        let tags = argument::tags(input.tags.as_deref().unwrap_or_default(), "/tags")?;
        let at = input.created_at.map_or_else(|| session.clock.now(), Timestamp::from);
        let mut draft = UnsignedEvent::new(author.public_key, at, Kind::TextNote, tags, input.content);
        let event_id = draft.id().to_hex();
        let unsigned_event_json =
            serde_json::to_string(&draft).map_err(|error| Failure::internal(error.to_string()))?;
        Ok(Output { event_id, pubkey: author.public_key.to_hex(), unsigned_event_json })
    }
}
