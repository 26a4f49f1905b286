//! `nostr_keys_verify`: whether a text is a key.

use crate::failure::Failure;
use crate::result::npub;
use crate::shape::{choice, record};
use crate::tool::{self, About, Effect, Status, Turn};
use nostr::prelude::{Keys, PublicKey};

choice! {
    enum KeyType {
        Npub = "npub",
        Nsec = "nsec",
        Hex = "hex",
        Invalid = "invalid",
    }
}

record! {
    secret struct Input {
        /// The text to check
        key: String,
    }
}

record! {
    struct Output {
        /// The text that was checked; secrets are masked
        input: String,
        /// What it is
        key_type: KeyType,
        /// Whether it is a valid key
        valid: bool,
        /// What is wrong with it
        error: Option<String>,
        /// The public key in hex
        public_key_hex: Option<String>,
        /// The public key as npub
        public_key_npub: Option<String>,
    }
}

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 9,
        name: "nostr_keys_verify",
        title: "Check a key",
        status: Status::Stable,
        nips: &[],
        summary: "Says whether a text is a valid npub, nsec or hex key. Secrets are not repeated.",
        effect: Effect::Calculates,
        example: r#"{"key":"npub180cvv07tjdrrgpa0j7j7tmnyl2yr6yr7l8j4s3evf6u64th6gkwsyjh6w6"}"#,
    };

    type Input = Input;
    type Output = Output;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<Output, Failure> {
        let text = input.key.trim();
        let is_hex = text.len() == 64 && text.chars().all(|letter| letter.is_ascii_hexdigit());
        let start = text.get(..5).unwrap_or_default().to_lowercase();
        let shown = turn.session.masked(text)?;
        let is_masked = shown != text;
        let (key_type, key, error) = match start.as_str() {
            "nsec1" => match Keys::parse(text) {
                Ok(keys) => (KeyType::Nsec, Some(keys.public_key()), None),
                Err(_) => (KeyType::Invalid, None, Some("the secret key is damaged".to_owned())),
            },
            "npub1" => match PublicKey::parse(text) {
                Ok(key) => (KeyType::Npub, Some(key), None),
                Err(error) => (KeyType::Invalid, None, Some(error.to_string())),
            },
            // Which half of a key it is cannot be seen; that it is a secret of ours can.
            _ if is_hex && is_masked => (KeyType::Hex, None, None),
            // Not every number is the coordinate of a point.
            _ if is_hex => match PublicKey::from_hex(&text.to_lowercase()).ok().filter(|key| key.xonly().is_ok()) {
                Some(key) => (KeyType::Hex, Some(key), None),
                None => (KeyType::Invalid, None, Some("no public key has this number".to_owned())),
            },
            _ => (KeyType::Invalid, None, Some("a key is npub1…, nsec1… or 64 hexadecimal digits".to_owned())),
        };
        // Whoever may not give secrets gets nothing for one.
        let key = key.filter(|_| !is_masked || turn.session.guard.allows_secrets);
        Ok(Output {
            input: shown,
            key_type,
            valid: key_type != KeyType::Invalid,
            error,
            public_key_hex: key.map(|key| key.to_hex()),
            public_key_npub: key.map(|key| npub(&key)),
        })
    }
}
