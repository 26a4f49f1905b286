//! `nostr_keys_set_active`: whom to act as.

use crate::failure::Failure;
use crate::result::KeyEntry;
use crate::shape::record;
use crate::tool::{self, About, Effect, Status, Turn};

record! {
    struct Input {
        /// The label of the key
        label: String,
    }
}

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 5,
        name: "nostr_keys_set_active",
        title: "Choose the active key",
        status: Status::Stable,
        nips: &[],
        summary: "Chooses the key that every other tool acts as.",
        effect: Effect::ChangesHere,
        example: r#"{"label":"work"}"#,
    };

    type Input = Input;
    type Output = KeyEntry;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<KeyEntry, Failure> {
        let identity = turn.session.keyring.activate(&input.label)?;
        Ok(KeyEntry::from(&identity))
    }
}
