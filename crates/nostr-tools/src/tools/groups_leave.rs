//! `nostr_groups_leave`: out of a group.

use crate::compose::group::moderation;
use crate::failure::Failure;
use crate::result::SendResult;
use crate::tool::{self, About, Effect, Status, Turn};

moderation! {
    struct Input {}
}

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 49,
        name: "nostr_groups_leave",
        title: "Leave a group",
        status: Status::Stable,
        nips: &[29],
        summary: "Leaves a group (kind 9022).",
        effect: Effect::Replaces,
        example: r#"{"group_id":"pizza","content":"goodbye"}"#,
    };

    type Input = Input;
    type Output = SendResult;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<SendResult, Failure> {
        input.send(9022, [], turn).await
    }
}
