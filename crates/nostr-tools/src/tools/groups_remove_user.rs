//! `nostr_groups_remove_user`: a member less.

use crate::argument;
use crate::compose::group::moderation;
use crate::compose::text::person;
use crate::failure::Failure;
use crate::result::SendResult;
use crate::tool::{self, About, Effect, Status, Turn};

moderation! {
    struct Input {
        /// Whom
        pubkey: String,
    }
}

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 42,
        name: "nostr_groups_remove_user",
        title: "Remove a group member",
        status: Status::Stable,
        nips: &[29],
        summary: "Removes somebody from a group (kind 9001).",
        effect: Effect::Replaces,
        example: r#"{"group_id":"pizza","content":"spam","pubkey":"79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798"}"#,
    };

    type Input = Input;
    type Output = SendResult;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<SendResult, Failure> {
        let key = argument::public_key(&input.pubkey, "/pubkey")?;
        input.send(9001, [person(&key, None)], turn).await
    }
}
