//! `nostr_config_dir_set`: another folder for identities and settings.

use crate::failure::Failure;
use crate::shape::record;
use crate::tool::{self, About, Effect, Status, Turn};
use std::path::Path;

record! {
    struct Input {
        /// Absolute path; new, empty, or used before
        path: String,
    }
}

record! {
    struct Output {
        /// The folder
        path: String,
    }
}

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 12,
        name: "nostr_config_dir_set",
        title: "Use another folder",
        status: Status::Stable,
        nips: &[],
        summary: "Uses the keys and settings in another folder until the server ends. Nothing is moved or copied.",
        effect: Effect::ChangesHere,
        example: r#"{"path":"/srv/nostr"}"#,
    };

    type Input = Input;
    type Output = Output;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<Output, Failure> {
        let path = turn.session.move_to(Path::new(input.path.trim())).map_err(|failure| failure.at("/path"))?;
        Ok(Output { path: path.display().to_string() })
    }
}
