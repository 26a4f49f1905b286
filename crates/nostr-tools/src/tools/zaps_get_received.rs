//! `nostr_zaps_get_received`: zaps to somebody.

use crate::failure::Failure;
use crate::tool::{self, About, Effect, Status, Turn};
use crate::zap::{Query, Zaps};
use nostr::prelude::Filter;

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 64,
        name: "nostr_zaps_get_received",
        title: "List received zaps",
        status: Status::Experimental,
        nips: &[57],
        summary: "Lists zaps to a key, and checks each receipt against the recipient's Lightning server.",
        effect: Effect::ReadsThere,
        example: r#"{"limit":10}"#,
    };

    type Input = Query;
    type Output = Zaps;

    async fn run(input: Query, turn: &Turn<'_>) -> Result<Zaps, Failure> {
        turn.zaps(&input, |who| vec![Filter::new().pubkey(who)]).await
    }
}
