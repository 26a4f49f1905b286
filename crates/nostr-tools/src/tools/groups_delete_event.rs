//! `nostr_groups_delete_event`: an event less in a group.

use crate::argument;
use crate::compose::group::moderation;
use crate::compose::tag;
use crate::failure::Failure;
use crate::result::SendResult;
use crate::tool::{self, About, Effect, Status, Turn};

moderation! {
    struct Input {
        /// Id or nevent1
        event_id: String,
    }
}

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 44,
        name: "nostr_groups_delete_event",
        title: "Delete an event in a group",
        status: Status::Stable,
        nips: &[29],
        summary: "Removes an event from a group (kind 9005).",
        effect: Effect::Replaces,
        example: r#"{"group_id":"pizza","content":"spam","event_id":"d7dd5eb3ab747e16f8d0212d53032ea2a7cadef53837e5a6c66d42849fcb9027"}"#,
    };

    type Input = Input;
    type Output = SendResult;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<SendResult, Failure> {
        let id = argument::event_id(&input.event_id, "/event_id")?;
        input.send(9005, [tag("e", [&id.to_hex()])], turn).await
    }
}
