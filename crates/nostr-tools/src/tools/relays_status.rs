//! `nostr_relays_status`: how the relays are.

use crate::failure::Failure;
use crate::relays;
use crate::result::RelayStatusRow;
use crate::shape::record;
use crate::tool::{self, About, Effect, Status, Turn};
use std::collections::BTreeMap;

record! {
    struct Input {}
}

record! {
    struct Output {
        /// How many relays there are, and how many of them are connected
        summary: BTreeMap<String, String>,
        /// The relays
        relays: Vec<RelayStatusRow>,
    }
}

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 16,
        name: "nostr_relays_status",
        title: "Show relays",
        status: Status::Stable,
        nips: &[1],
        summary: "Shows the relays in use, and others that are connected because people whom we read write there.",
        effect: Effect::ReadsHere,
        example: "{}",
    };

    type Input = Input;
    type Output = Output;

    async fn run(_input: Input, turn: &Turn<'_>) -> Result<Output, Failure> {
        let relays = relays::rows(turn.session, true)?;
        let connected = relays.iter().filter(|row| row.status == "connected").count();
        let summary = BTreeMap::from([
            ("relay_count".to_owned(), relays.len().to_string()),
            ("connected".to_owned(), connected.to_string()),
        ]);
        Ok(Output { summary, relays })
    }
}
