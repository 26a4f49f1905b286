//! `nostr_events_get_poll_results`: how a poll stands.

use crate::argument;
use crate::failure::Failure;
use crate::network::{Route, patience};
use crate::shape::record;
use crate::tool::{self, About, Effect, Status, Turn};
use nostr::prelude::{Event, Filter, Kind, PublicKey, RelayUrl, Timestamp};
use std::collections::{HashMap, HashSet};

record! {
    struct Input {
        /// The poll (note1…, nevent1… or hex)
        poll_event_id: String,
        /// Seconds to wait
        timeout_secs: Option<u64>,
    }
}

record! {
    struct PollResultOption {
        /// The option's id
        option_id: String,
        /// What it says
        label: String,
        /// How many chose it
        votes: u64,
    }
}

record! {
    struct Output {
        /// The poll's id, in hex
        poll_id: String,
        /// The question
        question: String,
        /// singlechoice or multiplechoice
        poll_type: String,
        /// How many people voted
        total_votes: u64,
        /// The options
        options: Vec<PollResultOption>,
        /// When it ends (seconds since 1970)
        ends_at: Option<u64>,
        /// Whether it has ended
        ended: bool,
    }
}

const POLL: u16 = 1068;
const VOTE: u16 = 1018;

/// More than any poll shows.
const MAX_OPTIONS: usize = 100;
const MAX_RELAYS: usize = 8;
const MAX_VOTES: usize = 5_000;

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 40,
        name: "nostr_events_get_poll_results",
        title: "Count a poll",
        status: Status::Stable,
        nips: &[88],
        summary: "Counts the votes of a poll on the relays that it names: of each voter the last one in time.",
        effect: Effect::ReadsThere,
        example: r#"{"poll_event_id":"0000000000000000000000000000000000000000000000000000000000000001"}"#,
    };

    type Input = Input;
    type Output = Output;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<Output, Failure> {
        let id = argument::event_id(&input.poll_event_id, "/poll_event_id")?;
        let patience = patience(input.timeout_secs);
        let hints = argument::hints(&input.poll_event_id);
        let filter = Filter::new().id(id).kind(Kind::from(POLL)).limit(1);
        let found = turn.fetch(&[filter], Route::Also(&hints), patience).await?;
        let Some(poll) = found.first() else {
            return Err(Failure::not_found("no relay that was asked has this poll").at("/poll_event_id"));
        };
        let ends_at = first(poll, "endsAt").and_then(|text| text.parse::<u64>().ok());
        let mut votes = Filter::new().kind(Kind::from(VOTE)).event(id).limit(MAX_VOTES);
        votes.until = ends_at.map(Timestamp::from);
        let named: Vec<RelayUrl> =
            values(poll, "relay").filter_map(|url| RelayUrl::parse(url).ok()).take(MAX_RELAYS).collect();
        let votes = turn.fetch(&[votes], Route::Also(&named), patience).await?;
        let now = turn.session.clock.now().as_secs();
        Ok(count(poll, &votes, ends_at, now))
    }
}

fn values<'a>(event: &'a Event, name: &'a str) -> impl Iterator<Item = &'a str> {
    event.tags.iter().filter(move |tag| tag.kind() == name).filter_map(|tag| tag.content())
}

fn first<'a>(event: &'a Event, name: &'a str) -> Option<&'a str> {
    values(event, name).next()
}

fn count(poll: &Event, votes: &[Event], ends_at: Option<u64>, now: u64) -> Output {
    let poll_type = match first(poll, "polltype") {
        Some("multiplechoice") => "multiplechoice",
        _ => "singlechoice",
    };
    let mut options: Vec<PollResultOption> = Vec::new();
    for tag in poll.tags.iter().filter(|tag| tag.kind() == "option").take(MAX_OPTIONS) {
        let [_, id, rest @ ..] = tag.as_slice() else { continue };
        if !options.iter().any(|option| option.option_id == *id) {
            let label = rest.first().cloned().unwrap_or_default();
            options.push(PollResultOption { option_id: id.clone(), label, votes: 0 });
        }
    }
    // The newest come first, so the first of each voter counts.
    let mut last: HashMap<PublicKey, &Event> = HashMap::new();
    for vote in votes.iter().filter(|vote| ends_at.is_none_or(|end| vote.created_at.as_secs() <= end)) {
        last.entry(vote.pubkey).or_insert(vote);
    }
    let mut total_votes = 0;
    for vote in last.values() {
        let chosen: HashSet<&str> = match poll_type {
            "multiplechoice" => values(vote, "response").collect(),
            _ => first(vote, "response").into_iter().collect(),
        };
        let mut is_counted = false;
        for option in options.iter_mut().filter(|option| chosen.contains(option.option_id.as_str())) {
            option.votes += 1;
            is_counted = true;
        }
        total_votes += u64::from(is_counted);
    }
    Output {
        poll_id: poll.id.to_hex(),
        question: poll.content.clone(),
        poll_type: poll_type.to_owned(),
        total_votes,
        options,
        ends_at,
        ended: ends_at.is_some_and(|end| end < now),
    }
}
