//! `nostr_keys_rename_label`: another label for a key.

use crate::failure::Failure;
use crate::result::KeyEntry;
use crate::shape::record;
use crate::tool::{self, About, Effect, Status, Turn};

record! {
    struct Input {
        /// The new label
        to: String,
        /// The label as it is; the active key's if absent
        from: Option<String>,
    }
}

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 7,
        name: "nostr_keys_rename_label",
        title: "Rename a key",
        status: Status::Stable,
        nips: &[],
        summary: "Gives a key another label. Without `from`, the active key is renamed.",
        effect: Effect::ChangesHere,
        example: r#"{"from":"work","to":"office"}"#,
    };

    type Input = Input;
    type Output = KeyEntry;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<KeyEntry, Failure> {
        let identity = turn.session.keyring.rename(input.from.as_deref(), &input.to)?;
        Ok(KeyEntry::from(&identity))
    }
}
