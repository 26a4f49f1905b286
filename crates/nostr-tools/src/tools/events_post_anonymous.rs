//! `nostr_events_post_anonymous`: a note by nobody.

use crate::argument;
use crate::compose::{self, publication};
use crate::failure::Failure;
use crate::result::SendResult;
use crate::tool::{self, About, Effect, Status, Turn};
use nostr::prelude::Kind;

publication! {
    struct Input {
        /// Text
        content: String,
        /// Tags
        tags: Option<Vec<Vec<String>>>,
    }
}

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 72,
        name: "nostr_events_post_anonymous",
        title: "Post a note anonymously",
        status: Status::Stable,
        nips: &[1],
        summary: "Publishes a note (kind 1) by a key used once, over connections of its own. Needs no key; relays still see your \
                  IP address.",
        effect: Effect::Publishes,
        example: r#"{"content":"Nobody said this"}"#,
    };

    type Input = Input;
    type Output = SendResult;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<SendResult, Failure> {
        compose::filled(&input.content, "/content")?;
        // Only what the caller wrote: nothing here may show how the software that wrote it works.
        let tags = argument::tags(input.tags.as_deref().unwrap_or_default(), "/tags")?;
        let wishes = input.wishes();
        turn.publish_anonymously(Kind::TextNote, tags, input.content, wishes).await
    }
}
