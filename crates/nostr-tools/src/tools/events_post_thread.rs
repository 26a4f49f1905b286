//! `nostr_events_post_thread`: the beginning of a discussion.

use crate::compose::{self, Tags, publication, tag, text};
use crate::failure::Failure;
use crate::result::SendResult;
use crate::tool::{self, About, Effect, Status, Turn};
use nostr::prelude::Kind;

const THREAD: Kind = Kind::Custom(11);

publication! {
    struct Input {
        /// Title
        subject: String,
        /// Text
        content: String,
        /// Topics
        hashtags: Option<Vec<String>>,
    }
}

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 32,
        name: "nostr_events_post_thread",
        title: "Begin a thread",
        status: Status::Stable,
        nips: &[1],
        summary: "Publishes the beginning of a discussion (kind 11), answered with nostr_events_post_comment.",
        effect: Effect::Publishes,
        example: r#"{"subject":"Relays","content":"Which ones do you use?","hashtags":["nostr"]}"#,
    };

    type Input = Input;
    type Output = SendResult;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<SendResult, Failure> {
        let mut tags = Tags::default();
        tags.add(tag("title", [compose::filled(&input.subject, "/subject")?]));
        tags.add_all(compose::topics(input.hashtags.as_deref().unwrap_or_default(), "/hashtags")?);
        text::mention(&mut tags, &input.content);
        let wishes = input.wishes();
        turn.publish(THREAD, tags.into_vec(), input.content, wishes).await
    }
}
