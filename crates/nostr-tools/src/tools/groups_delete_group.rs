//! `nostr_groups_delete_group`: the end of a group.

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
        place: 46,
        name: "nostr_groups_delete_group",
        title: "Delete a group",
        status: Status::Stable,
        nips: &[29],
        summary: "Deletes a group with everything in it (kind 9008).",
        effect: Effect::Replaces,
        example: r#"{"group_id":"pizza","content":"nobody is here"}"#,
    };

    type Input = Input;
    type Output = SendResult;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<SendResult, Failure> {
        input.send(9008, [], turn).await
    }
}
