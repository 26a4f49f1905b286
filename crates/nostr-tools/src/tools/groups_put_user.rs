//! `nostr_groups_put_user`: a member, or new roles for one.

use crate::argument;
use crate::compose::filled;
use crate::compose::group::moderation;
use crate::failure::Failure;
use crate::result::SendResult;
use crate::tool::{self, About, Effect, Status, Turn};
use nostr::prelude::Tag;

moderation! {
    struct Input {
        /// Whom
        pubkey: String,
        /// All their roles
        roles: Option<Vec<String>>,
    }
}

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 41,
        name: "nostr_groups_put_user",
        title: "Add a group member",
        status: Status::Stable,
        nips: &[29],
        summary: "Adds somebody to a group, or sets the roles of a member (kind 9000).",
        effect: Effect::Replaces,
        example: r#"{"group_id":"pizza","content":"welcome","pubkey":"79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798","roles":["moderator"]}"#,
    };

    type Input = Input;
    type Output = SendResult;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<SendResult, Failure> {
        let key = argument::public_key(&input.pubkey, "/pubkey")?;
        let roles = input.roles.iter().flatten().enumerate();
        let roles = roles.map(|(index, role)| filled(role, &format!("/roles/{index}")).map(str::to_owned));
        let roles: Vec<String> = roles.collect::<Result<_, _>>()?;
        let person = Tag::custom("p", [key.to_hex()].into_iter().chain(roles));
        input.send(9000, [person], turn).await
    }
}
