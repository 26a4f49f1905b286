//! `nostr_keys_remove`: a key that is no longer needed.

use crate::failure::Failure;
use crate::keyring::Fate;
use crate::shape::record;
use crate::tool::{self, About, Effect, Status, Turn};

record! {
    struct Input {
        /// The label of the key
        label: String,
    }
}

record! {
    struct Output {
        /// Whether there was such a key
        removed: bool,
    }
}

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 3,
        name: "nostr_keys_remove",
        title: "Forget a key",
        status: Status::Stable,
        nips: &[],
        summary: "Forgets a key. Its secret is set aside; only the operator can bring it back.",
        effect: Effect::ReplacesHere,
        example: r#"{"label":"old"}"#,
    };

    type Input = Input;
    type Output = Output;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<Output, Failure> {
        let removed = turn.session.keyring.remove(&input.label, Fate::SetAside).await?;
        Ok(Output { removed: removed.is_some() })
    }
}
