//! `nostr_keys_derive_public`: the public half of a secret key.

use crate::failure::Failure;
use crate::result::npub;
use crate::shape::record;
use crate::tool::{self, About, Effect, Status, Turn};
use nostr::prelude::Keys;

record! {
    secret struct Input {
        /// label:NAME; if allowed nsec1… or hex
        private_key: String,
    }
}

record! {
    struct Output {
        /// The public key as npub
        public_key_npub: String,
        /// The public key in hex
        public_key_hex: String,
    }
}

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 10,
        name: "nostr_keys_derive_public",
        title: "Derive a public key",
        status: Status::Stable,
        nips: &[],
        summary: "Gives the public key of a stored key, or of a raw secret if allowed.",
        effect: Effect::ReadsHere,
        example: r#"{"private_key":"label:work"}"#,
    };

    type Input = Input;
    type Output = Output;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<Output, Failure> {
        let pointer = "/private_key";
        let key = match input.private_key.trim().strip_prefix("label:") {
            Some(label) => turn.session.keyring.find(label).map_err(|failure| failure.at(pointer))?.public_key,
            None => {
                turn.session.guard.admit_secret().map_err(|failure| failure.at(pointer))?;
                let keys = Keys::parse(input.private_key.trim());
                keys.map_err(|_| Failure::invalid("it is no secret key").at(pointer))?.public_key()
            }
        };
        Ok(Output { public_key_npub: npub(&key), public_key_hex: key.to_hex() })
    }
}
