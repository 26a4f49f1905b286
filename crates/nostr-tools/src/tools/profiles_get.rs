//! `nostr_profiles_get`: anybody's profile.

use crate::argument;
use crate::failure::Failure;
use crate::network::{Route, patience};
use crate::profile;
use crate::shape::record;
use crate::tool::{self, About, Effect, Status, Turn};
use nostr::prelude::{Filter, Kind};
use serde_json::Value;

record! {
    struct Input {
        /// Whose (npub, nprofile or hex)
        pubkey: String,
        /// Seconds to wait
        timeout_secs: Option<u64>,
    }
}

record! {
    struct Output {
        /// Whose it is, in hex
        pubkey: String,
        /// The profile as its owner wrote it, if there is one
        metadata: Option<Value>,
    }
}

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 69,
        name: "nostr_profiles_get",
        title: "Get a profile",
        status: Status::Stable,
        nips: &[1],
        summary: "Fetches anybody's profile from relays. Needs no key. What is in it is the owner's word, nothing more.",
        effect: Effect::ReadsThere,
        example: r#"{"pubkey":"npub10xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqpkge6d"}"#,
    };

    type Input = Input;
    type Output = Output;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<Output, Failure> {
        let who = argument::public_key(&input.pubkey, "/pubkey")?;
        let mut relays = argument::hints(&input.pubkey);
        relays.extend(turn.session.network.indexers());
        let filter = Filter::new().author(who).kind(Kind::Metadata).limit(1);
        let found = turn.fetch(&[filter], Route::Also(&relays), patience(input.timeout_secs)).await?;
        let metadata = found.first().and_then(profile::content).map(Value::Object);
        Ok(Output { pubkey: who.to_hex(), metadata })
    }
}
