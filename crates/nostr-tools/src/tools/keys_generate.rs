//! `nostr_keys_generate`: a new key.

use crate::failure::Failure;
use crate::keyring::{Activate, Material};
use crate::result::KeyEntry;
use crate::shape::record;
use crate::tool::{self, About, Effect, Status, Turn};

record! {
    struct Input {
        /// Its name
        label: String,
        /// Act as it from now on (default true)
        make_active: Option<bool>,
        /// Must be true
        persist_secret: Option<bool>,
    }
}

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 1,
        name: "nostr_keys_generate",
        title: "Make a key",
        status: Status::Stable,
        nips: &[],
        summary: "Makes a new key and keeps it under a label. The secret is never shown.",
        effect: Effect::ChangesHere,
        example: r#"{"label":"work"}"#,
    };

    type Input = Input;
    type Output = KeyEntry;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<KeyEntry, Failure> {
        if input.persist_secret == Some(false) {
            return Err(Failure::invalid("a key whose secret is not kept could never be used").at("/persist_secret"));
        }
        let activate = Activate::from(input.make_active.unwrap_or(true));
        let session = turn.session;
        let identity = session.keyring.keep(&input.label, &Material::generate(), session.seconds(), activate).await?;
        Ok(KeyEntry::from(&identity))
    }
}
