//! `nostr_events_post_text`: a note.

use crate::failure::Failure;
use crate::publish::Wishes;
use crate::result::SendResult;
use crate::shape::record;
use crate::tool::{self, About, Effect, Status, Turn};
use nostr::prelude::Kind;

record! {
    struct Input {
        /// The text of the note
        content: String,
        /// Bits of proof of work (NIP-13)
        pow: Option<u8>,
        /// Publish to these relays instead of the usual ones
        to_relays: Option<Vec<String>>,
    }
}

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 31,
        name: "nostr_events_post_text",
        title: "Post a note",
        status: Status::Stable,
        nips: &[1],
        summary: "Publishes a short text note (kind 1) by the active key. At least one relay has it when this succeeds.",
        effect: Effect::Publishes,
        example: r#"{"content":"Hello, Nostr"}"#,
    };

    type Input = Input;
    type Output = SendResult;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<SendResult, Failure> {
        let wishes = Wishes { pow: input.pow, to_relays: input.to_relays };
        turn.publish(Kind::TextNote, Vec::new(), input.content, wishes).await
    }
}
