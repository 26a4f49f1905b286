//! `nostr_keys_export`: a key in its public forms.

use crate::failure::Failure;
use crate::result::npub;
use crate::shape::{choice, record};
use crate::tool::{self, About, Effect, Status, Turn};
use nostr::nips::nip19::ToBech32;

choice! {
    enum Format {
        Bech32 = "bech32",
        Hex = "hex",
        Both = "both",
    }
}

record! {
    struct Input {
        /// Form of the secret (default bech32)
        format: Option<Format>,
        /// Show the secret too (default false)
        include_private: Option<bool>,
        /// Which key; the active one if absent
        label: Option<String>,
    }
}

record! {
    struct Output {
        /// The label of the key
        label: String,
        /// The public key as npub
        public_key_npub: String,
        /// The public key in hex
        public_key_hex: String,
        /// The secret key in hex
        private_key_hex: Option<String>,
        /// The secret key as nsec
        private_key_nsec: Option<String>,
        /// What to beware of
        warning: Option<String>,
    }
}

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 8,
        name: "nostr_keys_export",
        title: "Show a key",
        status: Status::Stable,
        nips: &[],
        summary: "Shows a key as npub and hex; the secret only if the operator allows it.",
        effect: Effect::ReadsHere,
        example: r#"{"format":"both"}"#,
    };

    type Input = Input;
    type Output = Output;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<Output, Failure> {
        let keyring = &turn.session.keyring;
        let identity = match &input.label {
            Some(label) => keyring.find(label)?,
            None => keyring
                .active()?
                .ok_or_else(|| Failure::invalid("there is no active key; say which one with `label`").at("/label"))?,
        };
        let mut output = Output {
            label: identity.label.clone(),
            public_key_npub: npub(&identity.public_key),
            public_key_hex: identity.public_key.to_hex(),
            private_key_hex: None,
            private_key_nsec: None,
            warning: None,
        };
        if input.include_private == Some(true) {
            turn.session.guard.admit_secret().map_err(|failure| failure.at("/include_private"))?;
            let keys = keyring.keys_of(&identity).await?;
            let format = input.format.unwrap_or(Format::Bech32);
            if format != Format::Hex {
                let nsec = keys.secret_key().to_bech32();
                output.private_key_nsec = Some(nsec.map_err(|error| Failure::internal(error.to_string()))?);
            }
            if format != Format::Bech32 {
                output.private_key_hex = Some(keys.secret_key().to_secret_hex());
            }
            output.warning = Some("Whoever has the secret key is this identity. Do not repeat it.".to_owned());
        }
        Ok(output)
    }
}
