//! `nostr_events_vote_poll`: a vote, where its poll wants it.

use crate::compose::target::Claim;
use crate::compose::{publication, tag};
use crate::failure::Failure;
use crate::publish::Route;
use crate::result::SendResult;
use crate::tool::{self, About, Effect, Status, Turn};
use nostr::prelude::{Event, Kind, RelayUrl, Tag, Timestamp};
use std::collections::HashSet;

const POLL: u16 = 1068;
const VOTE: Kind = Kind::Custom(1018);

/// A poll can name any number of relays, and each costs us a connection.
const MOST_RELAYS: usize = 10;

publication! {
    struct Input {
        /// Id or nevent1
        poll_event_id: String,
        /// Ids of your answers
        option_ids: Vec<String>,
    }
}

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 39,
        name: "nostr_events_vote_poll",
        title: "Vote",
        status: Status::Stable,
        nips: &[88],
        summary: "Publishes a vote (kind 1018) where the poll wants it. A later vote counts instead.",
        effect: Effect::Publishes,
        example: r#"{"poll_event_id":"d7dd5eb3ab747e16f8d0212d53032ea2a7cadef53837e5a6c66d42849fcb9027","option_ids":["a"]}"#,
    };

    type Input = Input;
    type Output = SendResult;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<SendResult, Failure> {
        let pointer = "/poll_event_id";
        let wishes = input.wishes();
        let claim = Claim {
            event: (pointer, &input.poll_event_id),
            author: (pointer, None),
            kind: (pointer, Some(POLL)),
            relay: (pointer, None),
        };
        let found = claim.find(turn, &wishes).await?;
        let poll =
            found.event.as_ref().ok_or_else(|| found.missing("no relay that was asked has this poll", pointer))?;
        check(poll, &input.option_ids, turn.session.clock.now())?;
        let mut tags = vec![tag("e", [&poll.id.to_hex()])];
        tags.extend(input.option_ids.iter().map(|id| tag("response", [id])));
        let relays = values(poll, "relay").filter_map(|relay| RelayUrl::parse(relay).ok());
        let relays: Vec<RelayUrl> = relays.take(MOST_RELAYS).collect();
        let route = if relays.is_empty() { Route::Usual } else { Route::Only(&relays) };
        turn.publish_along(VOTE, tags, String::new(), wishes, route).await
    }
}

/// The first values of all tags of this name.
fn values<'a>(poll: &'a Event, name: &'a str) -> impl Iterator<Item = &'a str> {
    poll.tags.iter().filter(move |tag| tag.kind() == name).filter_map(Tag::content)
}

/// Whether the vote would count.
fn check(poll: &Event, chosen: &[String], now: Timestamp) -> Result<(), Failure> {
    let end = values(poll, "endsAt").next().and_then(|end| end.parse().ok());
    if let Some(end) = end.filter(|end: &u64| *end < now.as_secs()) {
        return Err(Failure::invalid("this poll is over").at("/poll_event_id").with("ends_at", end));
    }
    if chosen.is_empty() {
        return Err(Failure::invalid("choose an answer").at("/option_ids"));
    }
    if chosen.len() > 1 && values(poll, "polltype").next() != Some("multiplechoice") {
        return Err(Failure::invalid("this poll wants one answer").at("/option_ids"));
    }
    let offered: Vec<&str> = values(poll, "option").collect();
    let mut seen = HashSet::new();
    for (index, id) in chosen.iter().enumerate() {
        let pointer = format!("/option_ids/{index}");
        if !offered.contains(&id.as_str()) {
            let words = format!("this poll has no answer `{id}`, but {}", offered.join(", "));
            return Err(Failure::invalid(words).at(pointer));
        }
        if !seen.insert(id) {
            return Err(Failure::invalid(format!("`{id}` is chosen twice")).at(pointer));
        }
    }
    Ok(())
}
