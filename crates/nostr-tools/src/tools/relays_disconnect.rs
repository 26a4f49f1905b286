//! `nostr_relays_disconnect`: relays to leave alone.

use crate::argument;
use crate::failure::Failure;
use crate::relays;
use crate::result::RelayListResult;
use crate::shape::record;
use crate::tool::{self, About, Effect, Status, Turn};

record! {
    struct Input {
        /// Which (default all)
        urls: Option<Vec<String>>,
        /// Forget them as well (default false)
        force_remove: Option<bool>,
    }
}

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 15,
        name: "nostr_relays_disconnect",
        title: "Disconnect from relays",
        status: Status::Stable,
        nips: &[1],
        summary: "Leaves relays alone until nostr_relays_connect; forgets them only with force_remove. Shows those that stay.",
        effect: Effect::ChangesHere,
        example: r#"{"urls":["wss://relay.example.com"]}"#,
    };

    type Input = Input;
    type Output = RelayListResult;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<RelayListResult, Failure> {
        let network = &turn.session.network;
        let urls = match input.urls {
            Some(urls) => argument::relays(&urls, "/urls")?,
            None => network.all_relays()?.into_iter().map(|one| one.url).collect(),
        };
        network.disconnect(&urls);
        if input.force_remove.unwrap_or(false) {
            network.store.change_relays(|chosen| chosen.retain(|one| !urls.contains(&one.url)))?;
        }
        Ok(RelayListResult { relays: relays::rows(turn.session, false)? })
    }
}
