//! `nostr_follows_remove`: follow somebody no more.

use crate::argument;
use crate::failure::Failure;
use crate::follows::{Change, Followed};
use crate::shape::record;
use crate::tool::{self, About, Effect, Status, Turn};
use std::collections::{BTreeMap, BTreeSet};

record! {
    struct Input {
        /// Whom (npub, nprofile or hex)
        pubkey: String,
        /// Publish now (default true)
        publish: Option<bool>,
        /// Publish even if the present list cannot be read, and lose it (default false)
        force: Option<bool>,
    }
}

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 57,
        name: "nostr_follows_remove",
        title: "Unfollow",
        status: Status::Stable,
        nips: &[2],
        summary: "Takes one out of the active key's follow list. The list is read first, and everything else in it stays.",
        effect: Effect::Replaces,
        example: r#"{"pubkey":"npub10xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqpkge6d"}"#,
    };

    type Input = Input;
    type Output = Followed;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<Followed, Failure> {
        let key = argument::public_key(&input.pubkey, "/pubkey")?;
        let change = Change { add: BTreeMap::new(), remove: BTreeSet::from([key]) };
        turn.change_follows(input.publish, input.force, |_| change.clone()).await
    }
}
