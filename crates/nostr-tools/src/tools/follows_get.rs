//! `nostr_follows_get`: the follow list as it is known here.

use crate::failure::Failure;
use crate::follows::FollowList;
use crate::shape::record;
use crate::tool::{self, About, Effect, Status, Turn};

record! {
    struct Input {}
}

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 54,
        name: "nostr_follows_get",
        title: "Show the follow list",
        status: Status::Stable,
        nips: &[2],
        summary: "Shows whom the active key follows, as it is kept here. Asks no relay; nostr_follows_fetch does.",
        effect: Effect::ReadsHere,
        example: "{}",
    };

    type Input = Input;
    type Output = FollowList;

    async fn run(_input: Input, turn: &Turn<'_>) -> Result<FollowList, Failure> {
        let who = turn.me()?;
        let follows = turn.local_follows(&who)?;
        Ok(FollowList { pubkey: who.to_hex(), count: follows.len() as u64, follows })
    }
}
