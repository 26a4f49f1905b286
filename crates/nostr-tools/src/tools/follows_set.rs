//! `nostr_follows_set`: the whole follow list.

use crate::argument;
use crate::failure::Failure;
use crate::follows::{self, Change};
use crate::result::{FollowEntry, PublishResult};
use crate::shape::record;
use crate::tool::{self, About, Effect, Status, Turn};
use nostr::prelude::Event;
use std::collections::BTreeMap;

record! {
    struct Input {
        /// Whom to follow, and nobody else
        follows: Vec<FollowEntry>,
        /// Publish now (default true)
        publish: Option<bool>,
        /// Publish even if the present list cannot be read, and lose it (default false)
        force: Option<bool>,
    }
}

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 53,
        name: "nostr_follows_set",
        title: "Replace the follow list",
        status: Status::Stable,
        nips: &[2],
        summary: "Makes the active key follow exactly these. To follow or unfollow one, use nostr_follows_add or _remove.",
        effect: Effect::Replaces,
        example: r#"{"follows":[{"pubkey":"npub10xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqpkge6d"}]}"#,
    };

    type Input = Input;
    type Output = PublishResult;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<PublishResult, Failure> {
        let mut wanted = BTreeMap::new();
        for (index, entry) in input.follows.iter().enumerate() {
            let pointer = format!("/follows/{index}");
            let key = argument::public_key(&entry.pubkey, &format!("{pointer}/pubkey"))?;
            wanted.insert(key, follows::rest(entry.relay_url.as_deref(), entry.petname.as_deref(), &pointer)?);
        }
        // What was kept for later was about a list that is given up now.
        let drafts = turn.session.network.store.drafts(&turn.me()?)?;
        let change = |base: Option<&Event>| {
            let present = follows::keys(base).into_iter().chain(drafts.follow.keys().copied());
            let remove = present.filter(|key| !wanted.contains_key(key)).collect();
            Change { add: wanted.clone(), remove }
        };
        Ok(turn.change_follows(input.publish, input.force, change).await?.result)
    }
}
