//! `nostr_messages_set_inbox`: where private messages should go.

use crate::argument;
use crate::failure::Failure;
use crate::message::INBOX;
use crate::profile;
use crate::replace::{Draft, Target};
use crate::result::PublishResult;
use crate::shape::record;
use crate::tool::{self, About, Effect, Status, Turn};
use nostr::prelude::{Kind, Tag};

record! {
    struct Input {
        /// One to four relays (wss://…)
        relays: Vec<String>,
        /// Publish even if the present list cannot be read first (default false)
        force: Option<bool>,
    }
}

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 103,
        name: "nostr_messages_set_inbox",
        title: "Set the inbox for private messages",
        status: Status::Experimental,
        nips: &[17],
        summary: "Publishes on which relays the active key wants private messages (kind 10050). Without it nobody can send any.",
        effect: Effect::Replaces,
        example: r#"{"relays":["wss://relay.example.com"]}"#,
    };

    type Input = Input;
    type Output = PublishResult;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<PublishResult, Failure> {
        let relays = argument::relays(&input.relays, "/relays")?;
        if relays.is_empty() || relays.len() > 4 {
            return Err(Failure::invalid("an inbox has one to four relays").at("/relays"));
        }
        let target = Target::kind(Kind::from(INBOX), input.force);
        let edit = |base: Option<&nostr::prelude::Event>| {
            let mut draft = Draft::of(base);
            draft.tags.retain(|tag| tag.kind() != "relay");
            draft.tags.extend(relays.iter().map(|relay| Tag::custom("relay", [relay.as_str_without_trailing_slash()])));
            Ok(draft)
        };
        Ok(profile::published(turn.replace(target, edit).await?))
    }
}
