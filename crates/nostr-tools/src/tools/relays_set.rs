//! `nostr_relays_set`: relays to use.

use crate::argument;
use crate::failure::Failure;
use crate::relays;
use crate::result::RelayListResult;
use crate::shape::{choice, record};
use crate::store::Chosen;
use crate::tool::{self, About, Effect, Status, Turn};

choice! {
    enum Flags { Both = "both", Read = "read", Write = "write", }
}

record! {
    struct Input {
        /// Addresses (wss://…)
        urls: Vec<String>,
        /// What for (default both)
        read_write: Option<Flags>,
        /// Connect now (default true)
        autoconnect: Option<bool>,
    }
}

/// More than anybody uses; each is a connection.
const MAX_RELAYS: usize = 32;

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 13,
        name: "nostr_relays_set",
        title: "Add relays",
        status: Status::Stable,
        nips: &[1],
        summary: "Adds relays to those in use, or changes what they are used for. Remembered. Publishes nothing.",
        effect: Effect::ChangesHere,
        example: r#"{"urls":["wss://relay.example.com"],"read_write":"both"}"#,
    };

    type Input = Input;
    type Output = RelayListResult;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<RelayListResult, Failure> {
        let urls = argument::relays(&input.urls, "/urls")?;
        if urls.is_empty() {
            return Err(Failure::invalid("`urls` is empty").at("/urls"));
        }
        urls.iter().try_for_each(|url| turn.session.guard.admit_relay(url))?;
        let flags = input.read_write.unwrap_or(Flags::Both);
        let (read, write) = (flags != Flags::Write, flags != Flags::Read);
        let network = &turn.session.network;
        network.store.change_relays(|chosen| {
            let new = urls.iter().filter(|url| !chosen.iter().any(|one| one.url == **url)).count();
            if chosen.len() + new > MAX_RELAYS {
                return Err(Failure::invalid(format!("more than {MAX_RELAYS} relays are not used")).at("/urls"));
            }
            for url in &urls {
                match chosen.iter_mut().find(|one| one.url == *url) {
                    Some(known) => (known.read, known.write) = (read, write),
                    None => chosen.push(Chosen { url: url.clone(), read, write }),
                }
            }
            Ok(())
        })??;
        if input.autoconnect.unwrap_or(true) {
            network.connect(&urls).await;
        }
        relays::some(turn.session, &urls)
    }
}
