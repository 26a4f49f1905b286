//! `nostr_relays_set_list`: where we read and write, for everybody to know.

use crate::argument;
use crate::failure::Failure;
use crate::profile;
use crate::relay_list::{Change, RelayEntry};
use crate::replace::Target;
use crate::result::PublishResult;
use crate::shape::record;
use crate::tool::{self, About, Effect, Status, Turn};
use nostr::prelude::Kind;

record! {
    struct Input {
        /// The relays, and no others
        relays: Vec<RelayEntry>,
        /// Publish even if the present list cannot be read, and lose it (default false)
        force: Option<bool>,
    }
}

/// The NIP asks for two to four of each; lists that nobody can follow help nobody.
const MAX_RELAYS: usize = 20;

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 105,
        name: "nostr_relays_set_list",
        title: "Publish the relay list",
        status: Status::Experimental,
        nips: &[65],
        summary: "Publishes where the active key reads and writes (kind 10002), so that others find it. Read before it is replaced.",
        effect: Effect::Replaces,
        example: r#"{"relays":[{"url":"wss://relay.example.com","read":true,"write":true}]}"#,
    };

    type Input = Input;
    type Output = PublishResult;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<PublishResult, Failure> {
        if input.relays.is_empty() || input.relays.len() > MAX_RELAYS {
            return Err(Failure::invalid(format!("a list has 1 to {MAX_RELAYS} relays")).at("/relays"));
        }
        let mut wanted = Vec::new();
        for (index, entry) in input.relays.iter().enumerate() {
            let pointer = format!("/relays/{index}");
            let url = argument::relay(&entry.url, &format!("{pointer}/url"))?;
            if !entry.read && !entry.write {
                return Err(Failure::invalid("a relay is for reading, for writing, or both").at(pointer));
            }
            wanted.push((url, entry.read, entry.write));
        }
        let mut change = None;
        let target = Target::kind(Kind::RelayList, input.force);
        let edit = |base: Option<&nostr::prelude::Event>| {
            // What goes is settled by the first version; what another client adds meanwhile stays.
            let change = change.get_or_insert_with(|| Change::new(&wanted, base));
            Ok(change.make(base))
        };
        Ok(profile::published(turn.replace(target, edit).await?))
    }
}
