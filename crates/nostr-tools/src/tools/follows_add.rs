//! `nostr_follows_add`: follow somebody.

use crate::argument;
use crate::failure::Failure;
use crate::follows::{self, Change, Followed};
use crate::shape::record;
use crate::tool::{self, About, Effect, Status, Turn};
use std::collections::{BTreeMap, BTreeSet};

record! {
    struct Input {
        /// Whom (npub, nprofile or hex)
        pubkey: String,
        /// A relay where they can be found
        relay_url: Option<String>,
        /// A name for them
        petname: Option<String>,
        /// Publish now (default true)
        publish: Option<bool>,
        /// Publish even if the present list cannot be read, and lose it (default false)
        force: Option<bool>,
    }
}

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 56,
        name: "nostr_follows_add",
        title: "Follow",
        status: Status::Stable,
        nips: &[2],
        summary: "Adds one to the active key's follow list. The list is read first, and everything else in it stays.",
        effect: Effect::Replaces,
        example: r#"{"pubkey":"npub10xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqpkge6d"}"#,
    };

    type Input = Input;
    type Output = Followed;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<Followed, Failure> {
        let key = argument::public_key(&input.pubkey, "/pubkey")?;
        let rest = follows::rest(input.relay_url.as_deref(), input.petname.as_deref(), "")?;
        let change = Change { add: BTreeMap::from([(key, rest)]), remove: BTreeSet::new() };
        turn.change_follows(input.publish, input.force, |_| change.clone()).await
    }
}
