//! `nostr_keys_list`: all keys, without their secrets.

use crate::failure::Failure;
use crate::result::KeyEntry;
use crate::shape::{Nothing, record};
use crate::tool::{self, About, Effect, Status, Turn};

record! {
    struct Output {
        /// The keys
        keys: Vec<KeyEntry>,
        /// How many there are
        count: u64,
        /// The label of the active one
        active: Option<String>,
    }
}

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 4,
        name: "nostr_keys_list",
        title: "List keys",
        status: Status::Stable,
        nips: &[],
        summary: "Lists labels and public keys, and which one is active.",
        effect: Effect::ReadsHere,
        example: r#"{}"#,
    };

    type Input = Nothing;
    type Output = Output;

    async fn run(_input: Nothing, turn: &Turn<'_>) -> Result<Output, Failure> {
        let (identities, active) = turn.session.keyring.list()?;
        let keys: Vec<KeyEntry> = identities.iter().map(KeyEntry::from).collect();
        Ok(Output { count: keys.len() as u64, keys, active })
    }
}
