//! `nostr_events_post_reaction`: a like, a dislike, or an emoji.

use crate::compose::target::Claim;
use crate::compose::{filled, publication, tag};
use crate::failure::Failure;
use crate::result::SendResult;
use crate::tool::{self, About, Effect, Status, Turn};
use nostr::prelude::{Kind, Tag};

publication! {
    struct Input {
        /// Id, nevent1 or naddr1
        event_id: String,
        /// Its author
        event_pubkey: String,
        /// Its kind
        event_kind: Option<u16>,
        /// + (default), -, an emoji, or :name:
        content: Option<String>,
        /// Image of :name:
        emoji_url: Option<String>,
        /// A relay that has it
        relay_hint: Option<String>,
    }
}

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 34,
        name: "nostr_events_post_reaction",
        title: "React to an event",
        status: Status::Stable,
        nips: &[25],
        summary: "Publishes a reaction (kind 7) to an event: a like unless content says otherwise.",
        effect: Effect::Publishes,
        example: r#"{"event_id":"d7dd5eb3ab747e16f8d0212d53032ea2a7cadef53837e5a6c66d42849fcb9027","event_pubkey":"79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798"}"#,
    };

    type Input = Input;
    type Output = SendResult;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<SendResult, Failure> {
        let content = input.content.as_deref().map(str::trim).filter(|content| !content.is_empty()).unwrap_or("+");
        let emoji = emoji(content, input.emoji_url.as_deref())?;
        let wishes = input.wishes();
        let claim = Claim {
            event: ("/event_id", &input.event_id),
            author: ("/event_pubkey", Some(&input.event_pubkey)),
            kind: ("/event_kind", input.event_kind),
            relay: ("/relay_hint", input.relay_hint.as_deref()),
        };
        let target = claim.find(turn, &wishes).await?;
        target.id("/event_id")?;
        let tags =
            [target.event_tag("e"), target.author_tag("p"), target.address_tag("a"), target.kind_tag("k"), emoji];
        turn.publish(Kind::Reaction, tags.into_iter().flatten().collect(), content.to_owned(), wishes).await
    }
}

/// `["emoji", name, url]` for `:name:`.
fn emoji(content: &str, url: Option<&str>) -> Result<Option<Tag>, Failure> {
    let Some(url) = url else { return Ok(None) };
    let url = filled(url, "/emoji_url")?;
    let name = content.strip_prefix(':').and_then(|rest| rest.strip_suffix(':'));
    let is_name = |name: &&str| {
        !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-'))
    };
    let name = name.filter(is_name);
    let wrong = || Failure::invalid("a custom emoji is `:name:`, of letters, digits, _ and -").at("/content");
    Ok(Some(tag("emoji", [name.ok_or_else(wrong)?, url])))
}
