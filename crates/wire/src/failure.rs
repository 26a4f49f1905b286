//! The errors that a customer can get: one readable list.

use serde_json::{Value, json};

/// The longest pointer that is told.
const MAX_POINTER: usize = 1024;

/// What went wrong, in one word that never changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Code {
    InvalidRequest,
    TooLarge,
    UnknownCommand,
    InvalidInput,
    UnknownTool,
    UnknownPrompt,
    UnknownResource,
    Unauthorized,
    RateLimited,
    Busy,
    StaleRequest,
    Cancelled,
    Timeout,
    UpstreamUnavailable,
    OutcomeUnknown,
    ResultTooLarge,
    ToolError,
    Unsupported,
    PaymentExpired,
    PaymentRefused,
    InternalError,
}

impl Code {
    pub const ALL: [Code; 21] = [
        Code::InvalidRequest,
        Code::TooLarge,
        Code::UnknownCommand,
        Code::InvalidInput,
        Code::UnknownTool,
        Code::UnknownPrompt,
        Code::UnknownResource,
        Code::Unauthorized,
        Code::RateLimited,
        Code::Busy,
        Code::StaleRequest,
        Code::Cancelled,
        Code::Timeout,
        Code::UpstreamUnavailable,
        Code::OutcomeUnknown,
        Code::ResultTooLarge,
        Code::ToolError,
        Code::Unsupported,
        Code::PaymentExpired,
        Code::PaymentRefused,
        Code::InternalError,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Code::InvalidRequest => "invalid_request",
            Code::TooLarge => "too_large",
            Code::UnknownCommand => "unknown_command",
            Code::InvalidInput => "invalid_input",
            Code::UnknownTool => "unknown_tool",
            Code::UnknownPrompt => "unknown_prompt",
            Code::UnknownResource => "unknown_resource",
            Code::Unauthorized => "unauthorized",
            Code::RateLimited => "rate_limited",
            Code::Busy => "busy",
            Code::StaleRequest => "stale_request",
            Code::Cancelled => "cancelled",
            Code::Timeout => "timeout",
            Code::UpstreamUnavailable => "upstream_unavailable",
            Code::OutcomeUnknown => "outcome_unknown",
            Code::ResultTooLarge => "result_too_large",
            Code::ToolError => "tool_error",
            Code::Unsupported => "unsupported",
            Code::PaymentExpired => "payment_expired",
            Code::PaymentRefused => "payment_refused",
            Code::InternalError => "internal_error",
        }
    }
}

/// An error for the customer. Its words are stable and tell nothing of the provider's inside.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {message}", code.as_str())]
pub struct Failure {
    pub code: Code,
    pub message: String,
    /// Where in the arguments, as a JSON pointer.
    pub pointer: Option<String>,
}

impl Failure {
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), pointer: None }
    }

    pub fn at(mut self, pointer: impl Into<String>) -> Self {
        self.pointer = Some(pointer.into());
        self
    }

    /// The error as JSON. Names in a pointer are the customer's, and as long as they like; one that is longer than any answer
    /// should be is left out.
    pub(crate) fn object(&self) -> Value {
        let mut error = json!({ "code": self.code.as_str(), "message": self.message });
        if let Some(pointer) = self.pointer.as_ref().filter(|pointer| pointer.len() <= MAX_POINTER) {
            error["pointer"] = pointer.as_str().into();
        }
        error
    }
}
