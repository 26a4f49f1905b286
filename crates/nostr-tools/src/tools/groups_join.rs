//! `nostr_groups_join`: a request to be let in.

use crate::compose::group::moderation;
use crate::compose::{filled, tag};
use crate::failure::Failure;
use crate::result::SendResult;
use crate::tool::{self, About, Effect, Status, Turn};

moderation! {
    struct Input {
        /// Code of an invitation
        invite_code: Option<String>,
    }
}

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 48,
        name: "nostr_groups_join",
        title: "Join a group",
        status: Status::Stable,
        nips: &[29],
        summary: "Asks to be let into a group (kind 9021). The relay says why if it does not.",
        effect: Effect::Publishes,
        example: r#"{"group_id":"pizza","content":"I like pizza","invite_code":"extra-cheese"}"#,
    };

    type Input = Input;
    type Output = SendResult;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<SendResult, Failure> {
        let code = input.invite_code.as_deref().map(|code| filled(code, "/invite_code")).transpose()?;
        input.send(9021, code.map(|code| tag("code", [code])), turn).await
    }
}
