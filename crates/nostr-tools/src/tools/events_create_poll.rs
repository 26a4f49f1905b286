//! `nostr_events_create_poll`: a question with answers to choose from.

use crate::argument;
use crate::compose::{filled, hint, publication, tag};
use crate::failure::Failure;
use crate::result::SendResult;
use crate::shape::{choice, record};
use crate::tool::{self, About, Effect, Status, Turn};
use nostr::prelude::{Kind, Tag};
use std::collections::HashSet;

const POLL: Kind = Kind::Custom(1068);

record! {
    struct PollOption {
        /// Letters and digits
        option_id: String,
        /// The answer
        label: String,
    }
}

choice! {
    enum PollType {
        One = "singlechoice",
        Many = "multiplechoice",
    }
}

publication! {
    struct Input {
        /// The question
        question: String,
        /// Answers, two or more
        options: Vec<PollOption>,
        /// Where votes go
        relay_urls: Vec<String>,
        /// Default singlechoice
        poll_type: Option<PollType>,
        /// End, in Unix seconds
        ends_at: Option<u64>,
    }
}

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 38,
        name: "nostr_events_create_poll",
        title: "Ask for votes",
        status: Status::Stable,
        nips: &[88],
        summary: "Publishes a poll (kind 1068). Votes go to the relays in relay_urls.",
        effect: Effect::Publishes,
        example: r#"{"question":"Tabs or spaces?","options":[{"option_id":"a","label":"Tabs"},{"option_id":"b","label":"Spaces"}],"relay_urls":["wss://relay.example.com"]}"#,
    };

    type Input = Input;
    type Output = SendResult;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<SendResult, Failure> {
        filled(&input.question, "/question")?;
        let mut tags = options(&input.options)?;
        let relays = argument::relays(&input.relay_urls, "/relay_urls")?;
        if relays.is_empty() {
            return Err(Failure::invalid("votes need a relay to go to").at("/relay_urls"));
        }
        tags.extend(relays.iter().map(|relay| tag("relay", [hint(Some(relay))])));
        let kind = match input.poll_type.unwrap_or(PollType::One) {
            PollType::One => "singlechoice",
            PollType::Many => "multiplechoice",
        };
        tags.push(tag("polltype", [kind]));
        if let Some(end) = input.ends_at {
            if end <= turn.session.clock.now().as_secs() {
                return Err(Failure::invalid("the poll would be over already").at("/ends_at"));
            }
            tags.push(tag("endsAt", [&end.to_string()]));
        }
        let wishes = input.wishes();
        turn.publish(POLL, tags, input.question, wishes).await
    }
}

fn options(options: &[PollOption]) -> Result<Vec<Tag>, Failure> {
    if options.len() < 2 {
        return Err(Failure::invalid("there must be at least two answers to choose from").at("/options"));
    }
    let mut seen = HashSet::new();
    let parse = |(index, option): (usize, &PollOption)| {
        let pointer = format!("/options/{index}/option_id");
        let id = option.option_id.as_str();
        if id.is_empty() || !id.chars().all(|letter| letter.is_ascii_alphanumeric()) {
            return Err(Failure::invalid("an `option_id` has letters and digits only").at(pointer));
        }
        if !seen.insert(id.to_owned()) {
            return Err(Failure::invalid(format!("`{id}` stands for two answers")).at(pointer));
        }
        Ok(tag("option", [id, filled(&option.label, &format!("/options/{index}/label"))?]))
    };
    options.iter().enumerate().map(parse).collect()
}
