//! `nostr_metadata_fetch`: the profile of a stored key, from relays.

use crate::failure::Failure;
use crate::network::{PATIENCE, Progress};
use crate::profile;
use crate::shape::record;
use crate::tool::{self, About, Effect, Status, Turn};
use nostr::prelude::Kind;
use serde_json::Value;

record! {
    struct Input {
        /// Which stored key (default the active one)
        label: Option<String>,
    }
}

record! {
    struct Output {
        /// Whose it is, in hex
        pubkey: String,
        /// The profile as it is published, if there is one
        metadata: Option<Value>,
    }
}

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 52,
        name: "nostr_metadata_fetch",
        title: "Fetch an own profile",
        status: Status::Stable,
        nips: &[1],
        summary: "Fetches the published profile of a stored key from relays, and keeps it.",
        effect: Effect::ReadsThere,
        example: "{}",
    };

    type Input = Input;
    type Output = Output;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<Output, Failure> {
        let who = match &input.label {
            Some(label) => turn.session.keyring.find(label).map_err(|failure| failure.at("/label"))?.public_key,
            None => turn.me()?,
        };
        let network = &turn.session.network;
        let found = network.newest(who, Kind::Metadata, PATIENCE, &Progress::of(turn)).await?;
        if let Some(event) = &found {
            network.store.learn(event)?;
        }
        let metadata = found.as_ref().and_then(profile::content).map(Value::Object);
        Ok(Output { pubkey: who.to_hex(), metadata })
    }
}
