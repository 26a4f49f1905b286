//! `nostr_zaps_get_sent`: zaps by somebody.

use crate::failure::Failure;
use crate::tool::{self, About, Effect, Status, Turn};
use crate::zap::{Query, Zaps};
use nostr::prelude::{Filter, PublicKey, SingleLetterTag};

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 65,
        name: "nostr_zaps_get_sent",
        title: "List sent zaps",
        status: Status::Experimental,
        nips: &[57],
        summary: "Lists zaps by a key, and checks each receipt against the recipient's Lightning server.",
        effect: Effect::ReadsThere,
        example: r#"{"limit":10}"#,
    };

    type Input = Query;
    type Output = Zaps;

    async fn run(input: Query, turn: &Turn<'_>) -> Result<Zaps, Failure> {
        let sender = SingleLetterTag::UPPERCASE_P;
        let sent = |who: PublicKey| vec![Filter::new().custom_tag(sender, who.to_hex())];
        turn.zaps(&input, sent).await
    }
}
