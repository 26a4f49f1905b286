//! `nostr_groups_create_invite`: a code to join with.

use crate::compose::group::moderation;
use crate::compose::{filled, tag};
use crate::failure::Failure;
use crate::result::SendResult;
use crate::tool::{self, About, Effect, Status, Turn};

moderation! {
    struct Input {
        /// The code
        code: Option<String>,
    }
}

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 47,
        name: "nostr_groups_create_invite",
        title: "Invite to a group",
        status: Status::Stable,
        nips: &[29],
        summary: "Creates a code that lets people join a closed group (kind 9009), for nostr_groups_join.",
        effect: Effect::Publishes,
        example: r#"{"group_id":"pizza","content":"","code":"extra-cheese"}"#,
    };

    type Input = Input;
    type Output = SendResult;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<SendResult, Failure> {
        let code = input.code.as_deref().map(|code| filled(code, "/code")).transpose()?;
        input.send(9009, code.map(|code| tag("code", [code])), turn).await
    }
}
