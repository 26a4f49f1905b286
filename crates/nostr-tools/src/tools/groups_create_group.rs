//! `nostr_groups_create_group`: a new group.

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
        place: 45,
        name: "nostr_groups_create_group",
        title: "Create a group",
        status: Status::Stable,
        nips: &[29],
        summary: "Creates a group (kind 9007). nostr_groups_edit_metadata describes it.",
        effect: Effect::Publishes,
        example: r#"{"group_id":"pizza","content":""}"#,
    };

    type Input = Input;
    type Output = SendResult;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<SendResult, Failure> {
        input.send(9007, [], turn).await
    }
}
