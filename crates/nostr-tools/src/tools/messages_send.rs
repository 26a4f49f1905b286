//! `nostr_messages_send`: a private message.

use crate::argument;
use crate::failure::Failure;
use crate::message::{self, MESSAGE};
use crate::network::Progress;
use crate::shape::record;
use crate::tool::{self, About, Effect, Status, Turn};
use nostr::prelude::{Kind, PublicKey, Tag, UnsignedEvent};
use std::collections::BTreeMap;

record! {
    struct Input {
        /// To whom (npub or hex), up to 10
        to: Vec<String>,
        /// The text
        content: String,
        /// The conversation's subject
        subject: Option<String>,
        /// The id of the message that this answers
        reply_to: Option<String>,
    }
}

record! {
    struct Delivery {
        /// To whom, in hex
        pubkey: String,
        /// Relays that have it
        success: Vec<String>,
        /// Relays that do not, and why
        failed: BTreeMap<String, String>,
    }
}

record! {
    struct Output {
        /// The id of the message, in hex
        id: String,
        /// How it went for each recipient
        deliveries: Vec<Delivery>,
        /// Whether a copy for the sender is kept on relays
        copied: bool,
    }
}

const MAX_RECIPIENTS: usize = 10;

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 101,
        name: "nostr_messages_send",
        title: "Send a private message",
        status: Status::Experimental,
        nips: &[17, 44, 59],
        summary: "Sends an encrypted message to the inbox relays of its recipients. Relays learn neither who sent it nor when.",
        effect: Effect::Publishes,
        example: r#"{"to":["npub10xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqpkge6d"],"content":"Hello"}"#,
    };

    type Input = Input;
    type Output = Output;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<Output, Failure> {
        let mut to = argument::public_keys(&input.to, "/to")?;
        to.sort_unstable();
        to.dedup();
        if to.is_empty() || to.len() > MAX_RECIPIENTS {
            return Err(Failure::invalid(format!("a message has 1 to {MAX_RECIPIENTS} recipients")).at("/to"));
        }
        let signer = turn.session.keyring.signer().await?;
        let mut tags: Vec<Tag> = to.iter().copied().map(Tag::public_key).collect();
        if let Some(id) = &input.reply_to {
            tags.push(Tag::event(argument::event_id(id, "/reply_to")?));
        }
        tags.extend(input.subject.map(|subject| Tag::custom("subject", [subject])));
        let now = turn.session.clock.now();
        let mut rumor = UnsignedEvent::new(signer.public_key(), now, Kind::from(MESSAGE), tags, input.content);
        rumor.ensure_id();
        // Everybody must be reachable before anybody gets it.
        let mut inboxes = Vec::new();
        for who in &to {
            let inbox = turn.inbox_of(*who).await?;
            if inbox.is_empty() {
                let words =
                    format!("{} has no inbox for private messages (kind 10050), so nothing was sent", who.to_hex());
                return Err(Failure::not_found(words).at("/to"));
            }
            turn.session.guard.admit_event(Kind::from(MESSAGE), &inbox)?;
            inboxes.push((*who, inbox));
        }
        let mut deliveries = Vec::new();
        for (who, inbox) in inboxes {
            deliveries.push(deliver(turn, &rumor, who, &inbox).await?);
        }
        if deliveries.iter().all(|delivery| delivery.success.is_empty()) {
            let failed: BTreeMap<_, _> = deliveries.iter().flat_map(|delivery| &delivery.failed).collect();
            let failed = serde_json::to_value(failed).unwrap_or_default();
            return Err(Failure::relays("no relay took the message").with("failed", failed));
        }
        let own = turn.inbox_of(signer.public_key()).await.unwrap_or_default();
        let copied = match own.is_empty() {
            true => false,
            false => !deliver(turn, &rumor, signer.public_key(), &own).await?.success.is_empty(),
        };
        let id = rumor.compute_id().to_hex();
        Ok(Output { id, deliveries, copied })
    }
}

async fn deliver(
    turn: &Turn<'_>,
    rumor: &UnsignedEvent,
    who: PublicKey,
    inbox: &[nostr::prelude::RelayUrl],
) -> Result<Delivery, Failure> {
    let signer = turn.session.keyring.signer().await?;
    let (wrap, keys) = message::wrap(&signer, &who, rumor, turn.session.clock.now()).await?;
    // Over connections of their own: the relay must not see who else it is that writes.
    let sent = turn.session.network.publish_apart(&wrap, inbox, &keys, &Progress::of(turn)).await?;
    Ok(Delivery { pubkey: who.to_hex(), success: sent.success, failed: sent.failed })
}
