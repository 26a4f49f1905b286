//! `nostr_config_dir_get`: where identities and settings are.

use crate::failure::Failure;
use crate::shape::{Nothing, record};
use crate::tool::{self, About, Effect, Status, Turn};

record! {
    struct Output {
        /// The folder
        path: String,
    }
}

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 11,
        name: "nostr_config_dir_get",
        title: "Show the folder",
        status: Status::Stable,
        nips: &[],
        summary: "Shows the folder in which identities and settings are kept.",
        effect: Effect::ReadsHere,
        example: r#"{}"#,
    };

    type Input = Nothing;
    type Output = Output;

    async fn run(_input: Nothing, turn: &Turn<'_>) -> Result<Output, Failure> {
        Ok(Output { path: turn.session.directory().display().to_string() })
    }
}
