//! `nostr_events_repost`: somebody's event, for one's own followers.

use crate::argument;
use crate::compose::target::Target;
use crate::compose::{has_address, publication};
use crate::failure::Failure;
use crate::result::SendResult;
use crate::tool::{self, About, Effect, Status, Turn};
use nostr::prelude::{Event, Kind, RelayUrl};

publication! {
    struct Input {
        /// Signed event, as JSON text
        event_json: String,
        /// A relay that has it
        relay_hint: Option<String>,
    }
}

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 73,
        name: "nostr_events_repost",
        title: "Repost an event",
        status: Status::Stable,
        nips: &[18],
        summary: "Publishes a repost: kind 6 of a note, kind 16 of anything else.",
        effect: Effect::Publishes,
        example: r#"{"event_json":"{\"id\":\"879591f74393559901841d62e2ec1c722f32221183e999de06d71b066c36baff\",\"pubkey\":\"79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798\",\"created_at\":1700000000,\"kind\":1,\"tags\":[],\"content\":\"Hello\",\"sig\":\"84d28646338130779b68c0d423dca4a2dc74f1a885b149d369bcd0a0693bf511cc12ddeb8457c931051a8a668f6041332c2ceaa6ee9a4e861dd17ed409aa9468\"}","relay_hint":"wss://relay.example.com"}"#,
    };

    type Input = Input;
    type Output = SendResult;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<SendResult, Failure> {
        let event = argument::signed_event(&input.event_json, "/event_json")?;
        let relay = match &input.relay_hint {
            Some(text) => argument::relay(text, "/relay_hint")?,
            None => place(&event, turn).await?,
        };
        let wishes = input.wishes();
        let is_note = event.kind == Kind::TextNote;
        // Whoever protects an event (NIP-70) does not want it passed on by others.
        let content = if event.is_protected() { Ok(String::new()) } else { serde_json::to_string(&event) };
        let content = content.map_err(|error| Failure::internal(error.to_string()))?;
        let target = target(event, relay);
        let mut tags: Vec<_> = [target.event_tag("e"), target.author_tag("p")].into_iter().flatten().collect();
        if !is_note {
            tags.extend(target.address_tag("a"));
            tags.extend(target.kind_tag("k"));
        }
        let kind = if is_note { Kind::Repost } else { Kind::GenericRepost };
        turn.publish(kind, tags, content, wishes).await
    }
}

/// Where the event can be fetched, which a repost has to say.
async fn place(event: &Event, turn: &Turn<'_>) -> Result<RelayUrl, Failure> {
    // Whoever cannot sign need not look anything up.
    turn.session.keyring.signer().await?;
    let home = turn.home(Some(event.pubkey)).await;
    let place = if home.is_some() { home } else { turn.holder(event.id).await? };
    let words = "no relay that was asked has this event; say which one does, or publish it first with \
                 nostr_events_publish_signed";
    place.ok_or_else(|| Failure::not_found(words).at("/relay_hint"))
}

fn target(event: Event, relay: RelayUrl) -> Target {
    let address = event.coordinate().filter(|address| has_address(address.kind));
    let (id, author, kind) = (Some(event.id), Some(event.pubkey), Some(event.kind));
    Target { id, author, kind, address, relay: Some(relay), event: Some(event), silence: None }
}
