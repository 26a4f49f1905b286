//! `nostr_keys_get_active`: whom we act as.

use crate::failure::Failure;
use crate::result::KeyEntry;
use crate::shape::{Nothing, record};
use crate::tool::{self, About, Effect, Status, Turn};

record! {
    /// A key, or nothing: a result must be an object, so that it cannot be null.
    struct Output {
        /// The name under which the key is kept
        label: Option<String>,
        /// The public key (npub)
        public_key: Option<String>,
        /// When it was stored, in seconds since 1970
        created_at: Option<i64>,
    }
}

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 6,
        name: "nostr_keys_get_active",
        title: "Show the active key",
        status: Status::Stable,
        nips: &[],
        summary: "Shows the key that every other tool acts as; empty if there is none.",
        effect: Effect::ReadsHere,
        example: r#"{}"#,
    };

    type Input = Nothing;
    type Output = Output;

    async fn run(_input: Nothing, turn: &Turn<'_>) -> Result<Output, Failure> {
        let entry = turn.session.keyring.active()?.as_ref().map(KeyEntry::from);
        Ok(match entry {
            Some(KeyEntry { label, public_key, created_at }) => {
                Output { label: Some(label), public_key: Some(public_key), created_at: Some(created_at) }
            }
            None => Output { label: None, public_key: None, created_at: None },
        })
    }
}
