//! `nostr_events_post_text`: a note.

use crate::argument;
use crate::compose::{self, Tags, publication, text};
use crate::failure::Failure;
use crate::result::SendResult;
use crate::tool::{self, About, Effect, Status, Turn};
use nostr::prelude::Kind;

publication! {
    struct Input {
        /// Text; nostr:npub1 and nostr:nevent1 mention and quote
        content: String,
        /// Further tags
        tags: Option<Vec<Vec<String>>>,
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
        summary: "Publishes a note (kind 1) by the active key.",
        effect: Effect::Publishes,
        example: r#"{"content":"Hello, Nostr"}"#,
    };

    type Input = Input;
    type Output = SendResult;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<SendResult, Failure> {
        compose::filled(&input.content, "/content")?;
        let mut tags = Tags::default();
        tags.add_all(argument::tags(input.tags.as_deref().unwrap_or_default(), "/tags")?);
        text::mention(&mut tags, &input.content);
        text::hashtags(&mut tags, &input.content);
        let wishes = input.wishes();
        turn.publish(Kind::TextNote, tags.into_vec(), input.content, wishes).await
    }
}
