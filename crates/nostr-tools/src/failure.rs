//! Why a tool did not do what it was asked for: the fault of whoever asked, or not.

use rialto_mcp::error::{Error, Kind};
use rialto_mcp::reply::Answer;
use rialto_mcp::version::Version;
use serde_json::{Map, Value, json};

/// Whose fault it is, as the standard counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The arguments are wrong.
    Params,
    /// Anything else.
    Internal,
}

impl Fault {
    fn number(self) -> i32 {
        match self {
            Fault::Params => -32602,
            Fault::Internal => -32603,
        }
    }
}

/// An error of a tool. It never holds a secret.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    pub fault: Fault,
    /// One word for programs.
    pub reason: &'static str,
    pub message: String,
    data: Map<String, Value>,
}

impl Failure {
    fn new(fault: Fault, reason: &'static str, message: impl Into<String>) -> Self {
        Self { fault, reason, message: message.into(), data: Map::new() }
    }

    /// An argument is missing, or is not what it must be.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(Fault::Params, "invalid_input", message)
    }

    /// Something went wrong that the caller could not know.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(Fault::Internal, "internal", message)
    }

    /// The operator does not allow it.
    pub fn denied(message: impl Into<String>) -> Self {
        Self::new(Fault::Params, "not_allowed", message)
    }

    /// There is no key to sign with.
    pub fn no_signer(message: impl Into<String>) -> Self {
        Self::new(Fault::Params, "no_signer", message)
    }

    /// The keyring of the system does not help.
    pub fn no_keyring(message: impl Into<String>) -> Self {
        Self::new(Fault::Internal, "no_keyring", message)
    }

    /// No relay could be asked, or none took it.
    pub fn relays(message: impl Into<String>) -> Self {
        Self::new(Fault::Internal, "relays", message)
    }

    /// No server on the web did what it was asked for.
    pub fn servers(message: impl Into<String>) -> Self {
        Self::new(Fault::Internal, "servers", message)
    }

    /// What was asked for is not there.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(Fault::Params, "not_found", message)
    }

    /// Too much in too short a time.
    pub fn limited(message: impl Into<String>) -> Self {
        Self::new(Fault::Internal, "rate_limited", message)
    }

    /// It took too long.
    pub fn timeout(message: impl Into<String>) -> Self {
        Self::new(Fault::Internal, "timeout", message)
    }

    /// Where in the arguments, as a JSON pointer.
    #[must_use]
    pub fn at(self, pointer: impl Into<String>) -> Self {
        self.with("pointer", pointer.into())
    }

    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.data.insert(key.to_owned(), value.into());
        self
    }

    /// How a client that speaks `version` is told.
    pub(crate) fn answer(self, version: Version) -> Answer {
        if version <= Version::V2025_06_18 {
            let kind = if self.fault == Fault::Params { Kind::InvalidParams } else { Kind::Internal };
            let error = Error::new(kind, self.message).with("reason", self.reason);
            return Answer::Error(self.data.into_iter().fold(error, |error, (key, value)| error.with(&key, value)));
        }
        let mut data = self.data;
        data.insert("reason".into(), self.reason.into());
        let error = json!({ "code": self.fault.number(), "message": self.message, "data": data });
        let content = [json!({ "type": "text", "text": self.message })];
        let result = json!({ "content": content, "isError": true, "structuredContent": { "error": error } });
        Answer::Result(result.to_string().into_bytes())
    }
}

impl From<rialto_store::Error> for Failure {
    fn from(error: rialto_store::Error) -> Self {
        Failure::internal(error.to_string())
    }
}
