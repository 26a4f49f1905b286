//! `nostr_nip05_resolve`: whose a name on the web is.

use crate::failure::Failure;
use crate::name;
use crate::result::npub;
use crate::shape::record;
use crate::tool::{self, About, Effect, Status, Turn};
use nostr::prelude::RelayUrl;

record! {
    struct Input {
        /// name@domain
        identifier: String,
        /// Seconds to wait
        timeout_secs: Option<u64>,
    }
}

record! {
    struct Output {
        /// The name
        identifier: String,
        /// Where the domain says so
        url: String,
        /// The public key, in hex
        pubkey_hex: String,
        /// The public key (npub)
        pubkey_npub: String,
        /// Relays where they can be found
        relays: Vec<String>,
        /// Relays of their remote signer
        nip46_relays: Vec<String>,
    }
}

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 18,
        name: "nostr_nip05_resolve",
        title: "Resolve a NIP-05 name",
        status: Status::Stable,
        nips: &[5],
        summary: "Asks a domain whose key a name like bob@example.com stands for.",
        effect: Effect::ReadsThere,
        example: r#"{"identifier":"bob@example.com"}"#,
    };

    type Input = Input;
    type Output = Output;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<Output, Failure> {
        let found = name::look_up(turn, &input.identifier, input.timeout_secs).await?;
        let texts = |relays: &[RelayUrl]| {
            relays.iter().take(name::MAX_RELAYS).map(|relay| relay.as_str_without_trailing_slash().to_owned()).collect()
        };
        Ok(Output {
            identifier: input.identifier.trim().to_owned(),
            url: found.url.to_string(),
            pubkey_hex: found.public_key.to_hex(),
            pubkey_npub: npub(&found.public_key),
            relays: texts(&found.relays),
            nip46_relays: texts(&found.signer_relays),
        })
    }
}
