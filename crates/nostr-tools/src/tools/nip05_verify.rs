//! `nostr_nip05_verify`: whether a name on the web is somebody's.

use crate::argument;
use crate::failure::Failure;
use crate::name;
use crate::shape::record;
use crate::tool::{self, About, Effect, Status, Turn};
use rialto_relay::nip05;

record! {
    struct Input {
        /// name@domain
        identifier: String,
        /// Who it should be (hex or npub)
        pubkey: String,
        /// Seconds to wait
        timeout_secs: Option<u64>,
    }
}

record! {
    struct Output {
        /// The name
        identifier: String,
        /// Where the domain was asked
        url: String,
        /// Who it should be, in hex
        pubkey_hex: String,
        /// Whether the domain says so
        valid: bool,
    }
}

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 19,
        name: "nostr_nip05_verify",
        title: "Verify a NIP-05 name",
        status: Status::Stable,
        nips: &[5],
        summary: "Tells whether a name like bob@example.com stands for this key. That the domain cannot be asked is an error.",
        effect: Effect::ReadsThere,
        example: r#"{"identifier":"bob@example.com","pubkey":"npub10xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqpkge6d"}"#,
    };

    type Input = Input;
    type Output = Output;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<Output, Failure> {
        let expected = argument::public_key(&input.pubkey, "/pubkey")?;
        let address = name::parse(&input.identifier)?;
        let url = nip05::url_of(address.name(), address.domain()).map_err(|error| name::failure(&error))?;
        let valid = match name::ask(turn, &address, input.timeout_secs).await? {
            Ok(found) => found.public_key == expected,
            // The domain was asked and does not know the name: that is an answer.
            Err(nip05::Error::NoName(..)) => false,
            Err(error) => return Err(name::failure(&error)),
        };
        Ok(Output {
            identifier: input.identifier.trim().to_owned(),
            url: url.to_string(),
            pubkey_hex: expected.to_hex(),
            valid,
        })
    }
}
