//! `nostr_follows_fetch`: the follow list as it is published.

use crate::failure::Failure;
use crate::follows::{self, FollowList};
use crate::network::{PATIENCE, Progress};
use crate::shape::record;
use crate::tool::{self, About, Effect, Status, Turn};
use nostr::prelude::Kind;

record! {
    struct Input {}
}

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 55,
        name: "nostr_follows_fetch",
        title: "Fetch the follow list",
        status: Status::Stable,
        nips: &[2],
        summary: "Fetches the active key's follow list from relays, and keeps it.",
        effect: Effect::ReadsThere,
        example: "{}",
    };

    type Input = Input;
    type Output = FollowList;

    async fn run(_input: Input, turn: &Turn<'_>) -> Result<FollowList, Failure> {
        let who = turn.me()?;
        let network = &turn.session.network;
        let found = network.newest(who, Kind::ContactList, PATIENCE, &Progress::of(turn)).await?;
        if let Some(event) = &found {
            network.store.learn(event)?;
        }
        let follows = follows::entries(found.iter().flat_map(|event| event.tags.iter()));
        Ok(FollowList { pubkey: who.to_hex(), count: follows.len() as u64, follows })
    }
}
