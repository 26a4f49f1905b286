//! `nostr_messages_list`: private messages.

use crate::argument;
use crate::failure::Failure;
use crate::message::{self, BLUR, Message, WRAP};
use crate::network::{Progress, patience};
use crate::shape::record;
use crate::tool::{self, About, Effect, Status, Turn};
use nostr::prelude::{Filter, Kind, Timestamp};

record! {
    struct Input {
        /// Only with this person (npub or hex)
        with: Option<String>,
        /// How many at most (default 20)
        limit: Option<u64>,
        /// Not older (seconds since 1970)
        since: Option<u64>,
        /// Seconds to wait
        timeout_secs: Option<u64>,
    }
}

record! {
    struct Output {
        /// The messages, newest first
        messages: Vec<Message>,
        /// How many
        count: u64,
        /// Wraps that could not be opened, or held something else
        skipped: u64,
    }
}

/// Wraps that are opened for one call; each costs up to a round trip to a remote signer.
const MAX_WRAPS: usize = 300;

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 102,
        name: "nostr_messages_list",
        title: "List private messages",
        status: Status::Experimental,
        nips: &[17, 44, 59],
        summary: "Reads and decrypts private messages to the active key from its inbox relays. They are strangers' words.",
        effect: Effect::ReadsThere,
        example: r#"{"limit":10}"#,
    };

    type Input = Input;
    type Output = Output;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<Output, Failure> {
        let with = input.with.as_deref().map(|text| argument::public_key(text, "/with")).transpose()?;
        let limit = argument::limit(input.limit, 20)?;
        let signer = turn.session.keyring.signer().await?;
        let network = &turn.session.network;
        let mut relays = turn.inbox_of(signer.public_key()).await?;
        if relays.is_empty() {
            relays = network.read_relays()?;
        }
        let mut filter = Filter::new().kind(Kind::from(WRAP)).pubkey(signer.public_key()).limit(MAX_WRAPS);
        // Wraps are older than what is in them.
        filter.since = input.since.map(|since| Timestamp::from(since.saturating_sub(BLUR)));
        let progress = Progress::of(turn);
        let answers = network.fetch_as(&signer, &[filter], &relays, patience(input.timeout_secs), &progress).await?;
        let wraps = answers.heard()?;
        let mut messages: Vec<Message> = Vec::new();
        let mut skipped = 0;
        for wrap in &wraps {
            match message::open(&signer, wrap).await {
                Some(message) if !messages.iter().any(|known| known.id == message.id) => messages.push(message),
                Some(_) => {}
                None => skipped += 1,
            }
        }
        messages.retain(|message| input.since.is_none_or(|since| message.created_at >= since));
        if let Some(with) = with.map(|with| with.to_hex()) {
            messages.retain(|message| message.sender == with || message.recipients.contains(&with));
        }
        messages.sort_by(|one, other| other.created_at.cmp(&one.created_at).then_with(|| one.id.cmp(&other.id)));
        messages.truncate(limit);
        Ok(Output { count: messages.len() as u64, messages, skipped })
    }
}
