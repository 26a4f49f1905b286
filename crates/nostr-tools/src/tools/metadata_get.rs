//! `nostr_metadata_get`: one's own profile as it is known here.

use crate::failure::Failure;
use crate::profile::{self, ProfileMetadata};
use crate::shape::record;
use crate::tool::{self, About, Effect, Status, Turn};
use nostr::prelude::Kind;

record! {
    struct Input {}
}

record! {
    struct Output {
        /// Whose it is, in hex
        pubkey: String,
        /// The profile, if one is known here
        metadata: Option<ProfileMetadata>,
    }
}

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 51,
        name: "nostr_metadata_get",
        title: "Show the profile",
        status: Status::Stable,
        nips: &[1],
        summary: "Shows the active key's profile as it is kept here, with changes that are not published yet. Asks no relay.",
        effect: Effect::ReadsHere,
        example: "{}",
    };

    type Input = Input;
    type Output = Output;

    async fn run(_input: Input, turn: &Turn<'_>) -> Result<Output, Failure> {
        let who = turn.me()?;
        let store = &turn.session.network.store;
        let drafts = store.drafts(&who)?.profile;
        let known = store.known(&who, Kind::Metadata, "")?;
        let is_known = known.is_some() || !drafts.is_empty();
        let mut members = known.as_ref().and_then(profile::content).unwrap_or_default();
        profile::merge(&mut members, &drafts);
        Ok(Output { pubkey: who.to_hex(), metadata: is_known.then(|| profile::known_fields(&members)) })
    }
}
