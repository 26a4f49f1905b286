//! DVMCP: MCP as jobs of data vending machines (`mcp:2024-11-05`, revision 1, and its extension commands).
//!
//! [`request`] and [`answer`] each know both directions, so that what one end writes and the other reads stands in one file.
//! `docs/dvmcp.md` describes the whole.

pub mod announcement;
pub mod answer;
pub mod content;
pub mod request;
#[cfg(test)]
mod tests;

use self::request::OpenJobs;
use crate::request::Command;
use nostr::prelude::{Filter, Kind, PublicKey, SingleLetterTag};

pub(crate) const ANNOUNCEMENT: Kind = Kind::Custom(31990);
const REQUEST: Kind = Kind::Custom(5910);
const RESPONSE: Kind = Kind::Custom(6910);
const FEEDBACK: Kind = Kind::Custom(7000);

/// What a provider wants to hear of, but for wraps: requests to it, and requests to nobody in particular.
pub fn provider_filters(me: PublicKey, open_jobs: OpenJobs) -> [Filter; 2] {
    let commands: Vec<&str> = match open_jobs {
        OpenJobs::Taken => {
            let for_anyone =
                Command::ALL.iter().filter(|command| !matches!(command, Command::PayExecution | Command::Refund));
            for_anyone.map(|command| command.name()).collect()
        }
        OpenJobs::Ignored => vec![Command::ListTools.name()],
    };
    let to_anyone = Filter::new().kind(REQUEST).custom_tags(SingleLetterTag::LOWERCASE_C, commands);
    [Filter::new().kind(REQUEST).pubkey(me), to_anyone]
}

/// What a customer wants to hear of, but for wraps.
pub fn customer_filter(me: PublicKey) -> Filter {
    Filter::new().kinds([RESPONSE, FEEDBACK]).pubkey(me)
}

/// Whether events of this kind answer requests.
pub fn is_answer(kind: Kind) -> bool {
    [RESPONSE, FEEDBACK].contains(&kind)
}

/// Whether they are only feedback.
pub fn is_feedback(kind: Kind) -> bool {
    kind == FEEDBACK
}

/// What is said with a provider's key.
pub fn said_filter(provider: PublicKey) -> Filter {
    Filter::new().kinds([RESPONSE, FEEDBACK]).author(provider)
}

/// Answers to certain requests, from providers that do not name the customer.
pub fn answers_filter(requests: impl IntoIterator<Item = nostr::prelude::EventId>) -> Filter {
    Filter::new().kinds([RESPONSE, FEEDBACK]).events(requests)
}

/// Answers to requests to nobody in particular. The literal form of an old text, with the kind of requests, is read too.
pub fn tool_lists_filter() -> Filter {
    Filter::new().kinds([RESPONSE, REQUEST]).custom_tag(SingleLetterTag::LOWERCASE_C, "list-tools-response")
}
