//! `nostr_relays_get_list`: where somebody reads and writes.

use crate::argument;
use crate::failure::Failure;
use crate::network::{Progress, patience};
use crate::relay_list::{self, RelayEntry};
use crate::shape::record;
use crate::tool::{self, About, Effect, Status, Turn};
use nostr::prelude::Kind;

record! {
    struct Input {
        /// Whose (npub or hex; default the active key)
        pubkey: Option<String>,
        /// Seconds to wait
        timeout_secs: Option<u64>,
    }
}

record! {
    struct Output {
        /// Whose, in hex
        pubkey: String,
        /// The relays
        relays: Vec<RelayEntry>,
        /// How many
        count: u64,
    }
}

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 104,
        name: "nostr_relays_get_list",
        title: "Get a relay list",
        status: Status::Experimental,
        nips: &[65],
        summary: "Fetches the published relay list (kind 10002) of anybody: where they write, and where they read.",
        effect: Effect::ReadsThere,
        example: "{}",
    };

    type Input = Input;
    type Output = Output;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<Output, Failure> {
        let who = match &input.pubkey {
            Some(text) => argument::public_key(text, "/pubkey")?,
            None => turn.me()?,
        };
        let network = &turn.session.network;
        let found = network.newest(who, Kind::RelayList, patience(input.timeout_secs), &Progress::of(turn)).await?;
        let relays = found.as_ref().map(relay_list::entries).unwrap_or_default();
        Ok(Output { pubkey: who.to_hex(), count: relays.len() as u64, relays })
    }
}
