//! What customers ask for, whichever way it came.

use crate::failure::Failure;
use crate::tags::tag;
use nostr::prelude::{EventId, PublicKey, Tag, Timestamp, UnsignedEvent};
use rialto_payment::secret::Secret;
use serde_json::Value;
use std::time::Duration;

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
    PayExecution,
    Refund,
}

impl Command {
    pub const ALL: [Command; 12] = [
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
        Command::PayExecution,
        Command::Refund,
    ];

    /// Its word on the wire and in logs.
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
            Command::PayExecution => "pay-execution",
            Command::Refund => "refund",
        }
    }

    /// Whether the customer is told when the work begins and when it has succeeded.
    pub fn has_feedback(self) -> bool {
        matches!(self, Command::ExecuteTool | Command::BatchExecute)
    }

    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|command| command.name() == name)
    }
}

/// Whom an answer is for, and what it answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    pub request: EventId,
    pub customer: PublicKey,
    /// `None` if the request's command is not known.
    pub command: Option<Command>,
}

/// A request that was understood.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    pub address: Address,
    pub body: Body,
    /// Progress should be reported.
    pub progress: bool,
    /// A large result may come in parts.
    pub parts: bool,
    /// Ecash that came with it.
    pub token: Option<Secret>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    List {
        cursor: Option<String>,
    },
    Execute(Execution),
    Batch(Vec<Execution>),
    Read {
        uri: String,
    },
    /// `arguments` is a JSON object.
    Prompt {
        name: String,
        arguments: Option<String>,
    },
    /// The params of `completion/complete`.
    Complete {
        params: String,
    },
    Cancel {
        target: EventId,
    },
    /// Ecash for a request that has to be paid. What the token is worth, only its mint knows.
    Pay {
        target: EventId,
        token: Secret,
    },
    /// What the provider owes the customer, as ecash of this mint if it is one of the provider's.
    Refund {
        mint: Option<String>,
    },
}

/// One call of one tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Execution {
    pub name: String,
    /// A JSON object, as the customer wrote it.
    pub arguments: String,
    /// The same, read.
    pub value: Value,
    pub timeout: Option<Duration>,
    /// A JSON object for the MCP server.
    pub meta: Option<String>,
}

/// The longest token that is read: some hundred coins.
pub const MAX_TOKEN: usize = 64 * 1024;

/// A text that may be a token.
pub(crate) fn token(text: &str) -> Option<Secret> {
    let is_likely = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'=' | b'+' | b'/');
    let fits = text.starts_with("cashu") && text.len() <= MAX_TOKEN && text.bytes().all(is_likely);
    fits.then(|| Secret::new(text))
}

/// What a provider makes of an event.
#[derive(Debug, Clone, PartialEq)]
pub enum Reading {
    Request(Box<Request>),
    /// Meant for us, but not acceptable: to be answered.
    Refused {
        address: Address,
        failure: Failure,
    },
    /// Not to be answered.
    NotOurs,
}

/// When a request is over (NIP-40).
pub fn expiration(event: &UnsignedEvent) -> Option<Timestamp> {
    event.tags.expiration()
}

/// Says until when a request should be taken.
pub fn expire(request: &mut UnsignedEvent, at: Timestamp) {
    request.tags.push(Tag::expiration(at));
}

/// Makes a request one of its kind: two equal requests of one second would have the same id, and only one would run.
pub fn distinguish(request: &mut UnsignedEvent, salt: &str) {
    request.tags.push(tag("salt", [salt]));
}
