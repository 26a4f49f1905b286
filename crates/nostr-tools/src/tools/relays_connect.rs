//! `nostr_relays_connect`: relays that were disconnected, or are away.

use crate::argument;
use crate::failure::Failure;
use crate::relays;
use crate::result::RelayListResult;
use crate::shape::record;
use crate::tool::{self, About, Effect, Status, Turn};

record! {
    struct Input {
        /// Which of the relays in use (default all)
        urls: Option<Vec<String>>,
    }
}

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 14,
        name: "nostr_relays_connect",
        title: "Connect to relays",
        status: Status::Stable,
        nips: &[1],
        summary: "Connects to relays in use again. Not needed otherwise: connections are made when they are needed.",
        effect: Effect::ChangesHere,
        example: "{}",
    };

    type Input = Input;
    type Output = RelayListResult;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<RelayListResult, Failure> {
        let network = &turn.session.network;
        let all: Vec<_> = network.all_relays()?.into_iter().map(|one| one.url).collect();
        let urls = match input.urls {
            Some(urls) => argument::relays(&urls, "/urls")?,
            None => all.clone(),
        };
        if let Some(index) = urls.iter().position(|url| !all.contains(url)) {
            let words = format!("{} is not in use; add it with nostr_relays_set", urls[index]);
            return Err(Failure::invalid(words).at(format!("/urls/{index}")));
        }
        network.connect(&urls).await;
        relays::some(turn.session, &urls)
    }
}
