//! `nostr_zaps_get_all`: zaps to and by somebody.

use crate::failure::Failure;
use crate::tool::{self, About, Effect, Status, Turn};
use crate::zap::{Query, Zaps};
use nostr::prelude::{Filter, PublicKey, SingleLetterTag};

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 66,
        name: "nostr_zaps_get_all",
        title: "List all zaps",
        status: Status::Experimental,
        nips: &[57],
        summary: "Lists zaps to and by a key, and checks each receipt against the recipient's Lightning server.",
        effect: Effect::ReadsThere,
        example: r#"{"limit":10}"#,
    };

    type Input = Query;
    type Output = Zaps;

    async fn run(input: Query, turn: &Turn<'_>) -> Result<Zaps, Failure> {
        let sender = SingleLetterTag::UPPERCASE_P;
        let both = |who: PublicKey| vec![Filter::new().pubkey(who), Filter::new().custom_tag(sender, who.to_hex())];
        turn.zaps(&input, both).await
    }
}
