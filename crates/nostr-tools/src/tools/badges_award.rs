//! `nostr_badges_award`: a badge for somebody.

use crate::argument;
use crate::compose::address::address_of;
use crate::compose::{Tags, hint, publication, tag, text};
use crate::failure::Failure;
use crate::result::SendResult;
use crate::shape::record;
use crate::tool::{self, About, Effect, Status, Turn};
use nostr::prelude::Kind;

record! {
    struct Recipient {
        /// Who
        pubkey: String,
        /// Their relay
        relay: Option<String>,
    }
}

publication! {
    struct Input {
        /// Own badge: 30009:pubkey:d or naddr1
        badge: String,
        /// Who gets it
        recipients: Vec<Recipient>,
        /// A relay that has it
        badge_relay: Option<String>,
        /// A few words
        content: Option<String>,
    }
}

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 25,
        name: "nostr_badges_award",
        title: "Award a badge",
        status: Status::Stable,
        nips: &[58],
        summary: "Publishes that people get a badge of the active key (kind 8). An award cannot be changed.",
        effect: Effect::Publishes,
        example: r#"{"badge":"30009:79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798:bravery","recipients":[{"pubkey":"c6047f9441ed7d6d3045406e95c07cd85c778e4b8cef3ca7abac09b95c709ee5"}]}"#,
    };

    type Input = Input;
    type Output = SendResult;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<SendResult, Failure> {
        let badge = address_of(Kind::BadgeDefinition, "a badge", &input.badge, "/badge")?;
        let relay = input.badge_relay.as_deref().map(|text| argument::relay(text, "/badge_relay")).transpose()?;
        if input.recipients.is_empty() {
            return Err(Failure::invalid("say who gets the badge").at("/recipients"));
        }
        let mut tags = Tags::default();
        tags.add(tag("a", [&badge.coordinate.to_string(), hint(relay.as_ref().or(badge.relays.first()))]));
        for (index, recipient) in input.recipients.iter().enumerate() {
            let key = argument::public_key(&recipient.pubkey, &format!("/recipients/{index}/pubkey"))?;
            let pointer = format!("/recipients/{index}/relay");
            let relay = recipient.relay.as_deref().map(|text| argument::relay(text, &pointer)).transpose()?;
            tags.add(text::person(&key, relay.as_ref()));
        }
        if turn.session.keyring.signer().await?.public_key() != badge.coordinate.public_key {
            return Err(Failure::invalid("only whoever defined a badge can award it").at("/badge"));
        }
        let wishes = input.wishes();
        turn.publish(Kind::BadgeAward, tags.into_vec(), input.content.unwrap_or_default(), wishes).await
    }
}
