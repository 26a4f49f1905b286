//! DVMCP: MCP as jobs of data vending machines (`mcp:2024-11-05`, revision 1, and its extension commands).
//!
//! [`request`] and [`answer`] each know both directions, so that what one end writes and the other reads stands in one file.
//! `docs/dvmcp.md` describes the whole.

pub mod announcement;
pub mod answer;
pub mod content;
pub mod failure;
pub mod request;
#[cfg(test)]
mod tests;

use self::request::OpenJobs;
use nostr::prelude::{Filter, Kind, PublicKey, SingleLetterTag, Tag, Tags};

const ANNOUNCEMENT: Kind = Kind::Custom(31990);
const REQUEST: Kind = Kind::Custom(5910);
const RESPONSE: Kind = Kind::Custom(6910);
const FEEDBACK: Kind = Kind::Custom(7000);

/// What every announcement and nobody else has as a `t` tag.
const TOPIC: &str = "mcp";

/// What can be asked of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Command {
    ListTools,
    ExecuteTool,
    ListResources,
    ListResourceTemplates,
    ReadResource,
    ListPrompts,
    ExecutePrompt,
    Complete,
    CancelExecution,
    BatchExecute,
}

impl Command {
    pub const ALL: [Command; 10] = [
        Command::ListTools,
        Command::ExecuteTool,
        Command::ListResources,
        Command::ListResourceTemplates,
        Command::ReadResource,
        Command::ListPrompts,
        Command::ExecutePrompt,
        Command::Complete,
        Command::CancelExecution,
        Command::BatchExecute,
    ];

    /// The `c` tag of the request.
    pub fn name(self) -> &'static str {
        match self {
            Command::ListTools => "list-tools",
            Command::ExecuteTool => "execute-tool",
            Command::ListResources => "list-resources",
            Command::ListResourceTemplates => "list-resource-templates",
            Command::ReadResource => "read-resource",
            Command::ListPrompts => "list-prompts",
            Command::ExecutePrompt => "execute-prompt",
            Command::Complete => "complete",
            Command::CancelExecution => "cancel-execution",
            Command::BatchExecute => "batch-execute",
        }
    }

    /// Whether the customer is told when the work begins and when it has succeeded.
    pub fn has_feedback(self) -> bool {
        matches!(self, Command::ExecuteTool | Command::BatchExecute)
    }

    fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|command| command.name() == name)
    }
}

/// The first value of the first tag with this name.
fn value<'a>(tags: &'a Tags, name: &str) -> Option<&'a str> {
    tags.iter().find(|tag| tag.kind() == name).and_then(Tag::content)
}

fn tag<const N: usize>(name: &str, values: [&str; N]) -> Tag {
    Tag::custom(name, values)
}

/// What a provider wants to hear of, but for wraps: requests to it, and requests to nobody in particular.
pub fn provider_filters(me: PublicKey, open_jobs: OpenJobs) -> [Filter; 2] {
    let commands: Vec<&str> = match open_jobs {
        OpenJobs::Taken => Command::ALL.iter().map(|command| command.name()).collect(),
        OpenJobs::Ignored => vec![Command::ListTools.name()],
    };
    let to_anyone = Filter::new().kind(REQUEST).custom_tags(SingleLetterTag::LOWERCASE_C, commands);
    [Filter::new().kind(REQUEST).pubkey(me), to_anyone]
}

/// What a customer wants to hear of, but for wraps.
pub fn customer_filter(me: PublicKey) -> Filter {
    Filter::new().kinds([RESPONSE, FEEDBACK]).pubkey(me)
}

/// Answers to certain requests, from providers that do not name the customer.
pub fn answers_filter(requests: impl IntoIterator<Item = nostr::prelude::EventId>) -> Filter {
    Filter::new().kinds([RESPONSE, FEEDBACK]).events(requests)
}

/// Announcements of all services.
pub fn announcements_filter() -> Filter {
    Filter::new().kind(ANNOUNCEMENT).hashtag(TOPIC)
}

/// Announcements of one provider.
pub fn announcements_of(provider: PublicKey) -> Filter {
    Filter::new().kind(ANNOUNCEMENT).author(provider)
}

/// Answers to requests to nobody in particular. The literal form of an old text, with the kind of requests, is read too.
pub fn tool_lists_filter() -> Filter {
    Filter::new().kinds([RESPONSE, REQUEST]).custom_tag(SingleLetterTag::LOWERCASE_C, "list-tools-response")
}

/// The addressed coordinate of a service, for links.
pub fn announcement_kind() -> Kind {
    ANNOUNCEMENT
}
