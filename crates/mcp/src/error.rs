//! Every error that Rialto itself can send, in one list, and how each looks in each version of the protocol.
//!
//! The versions disagree about numbers: up to 2025-06-18 a missing resource is -32001, in 2025-11-25 it is -32002, in
//! 2026-07-28 it is -32602. Code inside Rialto names the [`Kind`]; only the edge turns it into a number or, for the
//! faults of a tool that newer versions want the model to read, into a result with `isError`. The symbolic name of the
//! kind travels along as `data.code` in every version, so that programs need not know the numbers.

use crate::json;
use crate::pending::Fault;
use crate::version::Version;
use serde_json::{Map, Value, json};

/// What went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// Not JSON, or not UTF-8.
    ParseError,
    /// JSON, but not a request: wrong envelope, wrong id, too long, or at the wrong time.
    InvalidRequest,
    MethodNotFound,
    InvalidParams,
    Internal,
    ResourceNotFound,
    AccessDenied,
    ToolNotFound,
    /// The tool could not be run: its server died, hung or cannot be reached.
    ToolFailed,
    /// The arguments do not fit the tool's schema.
    InvalidArguments,
    PromptNotFound,
    /// Nobody on the other side can sample.
    SamplingUnsupported,
    /// The server lacks what the request needs.
    CapabilityUnsupported,
    /// The client did not declare what the request needs.
    ClientCapabilityMissing,
    UnsupportedVersion,
    /// A header of an HTTP request is missing, or says something else than its body.
    HeaderMismatch,
    /// A server behind us is not there (for everything but tool calls).
    Unavailable,
    /// No answer within the time allowed (for everything but tool calls).
    Timeout,
    /// More at once than we take.
    Busy,
    /// `shutdown` was asked for; nothing new is begun.
    ShuttingDown,
}

/// How a [`Kind`] is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A JSON-RPC error with this number.
    Error(i32),
    /// A tool result with `isError`.
    ToolResult,
}

impl Kind {
    /// Every kind, for tables and tests.
    pub const ALL: [Kind; 20] = [
        Kind::ParseError,
        Kind::InvalidRequest,
        Kind::MethodNotFound,
        Kind::InvalidParams,
        Kind::Internal,
        Kind::ResourceNotFound,
        Kind::AccessDenied,
        Kind::ToolNotFound,
        Kind::ToolFailed,
        Kind::InvalidArguments,
        Kind::PromptNotFound,
        Kind::SamplingUnsupported,
        Kind::CapabilityUnsupported,
        Kind::ClientCapabilityMissing,
        Kind::UnsupportedVersion,
        Kind::HeaderMismatch,
        Kind::Unavailable,
        Kind::Timeout,
        Kind::Busy,
        Kind::ShuttingDown,
    ];

    /// The stable name that goes into `data.code`.
    pub fn code(self) -> &'static str {
        match self {
            Kind::ParseError => "parse_error",
            Kind::InvalidRequest => "invalid_request",
            Kind::MethodNotFound => "method_not_found",
            Kind::InvalidParams => "invalid_params",
            Kind::Internal => "internal_error",
            Kind::ResourceNotFound => "resource_not_found",
            Kind::AccessDenied => "access_denied",
            Kind::ToolNotFound => "tool_not_found",
            Kind::ToolFailed => "tool_failed",
            Kind::InvalidArguments => "invalid_arguments",
            Kind::PromptNotFound => "prompt_not_found",
            Kind::SamplingUnsupported => "sampling_unsupported",
            Kind::CapabilityUnsupported => "capability_unsupported",
            Kind::ClientCapabilityMissing => "client_capability_missing",
            Kind::UnsupportedVersion => "unsupported_version",
            Kind::HeaderMismatch => "header_mismatch",
            Kind::Unavailable => "upstream_unavailable",
            Kind::Timeout => "timeout",
            Kind::Busy => "busy",
            Kind::ShuttingDown => "shutting_down",
        }
    }

    /// How this kind is sent to a peer that speaks `version`.
    pub fn form(self, version: Version) -> Form {
        let early = version <= Version::V2025_06_18;
        let modern = version.is_modern();
        // The three columns of the table: up to 2025-06-18, 2025-11-25, 2026-07-28.
        let by_age =
            |first, second, third| if early { first } else { Form::Error(if modern { third } else { second }) };
        match self {
            Kind::ParseError => Form::Error(-32700),
            Kind::InvalidRequest | Kind::ShuttingDown => Form::Error(-32600),
            Kind::MethodNotFound => Form::Error(-32601),
            Kind::InvalidParams | Kind::ToolNotFound => Form::Error(-32602),
            Kind::Internal | Kind::Unavailable | Kind::Timeout | Kind::Busy => Form::Error(-32603),
            Kind::ResourceNotFound => by_age(Form::Error(-32001), -32002, -32602),
            Kind::AccessDenied => by_age(Form::Error(-32002), -32602, -32602),
            Kind::ToolFailed if early => Form::Error(-32003),
            Kind::InvalidArguments if early => Form::Error(-32004),
            Kind::ToolFailed | Kind::InvalidArguments => Form::ToolResult,
            Kind::PromptNotFound => by_age(Form::Error(-32005), -32602, -32602),
            Kind::SamplingUnsupported => by_age(Form::Error(-32006), -32601, -32021),
            Kind::CapabilityUnsupported => by_age(Form::Error(-32007), -32601, -32601),
            Kind::ClientCapabilityMissing => by_age(Form::Error(-32007), -32601, -32021),
            Kind::UnsupportedVersion => by_age(Form::Error(-32602), -32602, -32022),
            Kind::HeaderMismatch => by_age(Form::Error(-32600), -32600, -32020),
        }
    }
}

/// One error on its way to a peer: what, in words, and with which details.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    pub kind: Kind,
    pub message: String,
    /// Goes into `data` beside `code`.
    pub details: Map<String, Value>,
    /// Why there was no answer from elsewhere. For those who run us; it is not sent.
    pub fault: Option<Fault>,
}

impl Error {
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), details: Map::new(), fault: None }
    }

    /// Adds one detail to `data`.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.details.insert(key.to_owned(), value.into());
        self
    }

    #[must_use]
    pub fn because(mut self, fault: &Fault) -> Self {
        self.fault = Some(fault.clone());
        self
    }

    pub fn method_not_found(method: &str) -> Self {
        Self::new(Kind::MethodNotFound, format!("Method not found: {method}")).with("method", method)
    }

    /// For a method that a server does not offer: if the protocol has it, the server lacks the capability.
    pub fn not_offered(method: &str) -> Self {
        const OPTIONAL: [&str; 12] = [
            "tools/list",
            "tools/call",
            "prompts/list",
            "prompts/get",
            "resources/list",
            "resources/templates/list",
            "resources/read",
            "resources/subscribe",
            "resources/unsubscribe",
            "completion/complete",
            "logging/setLevel",
            "subscriptions/listen",
        ];
        if OPTIONAL.contains(&method) {
            Self::new(Kind::CapabilityUnsupported, format!("Not supported here: {method}")).with("method", method)
        } else {
            Self::method_not_found(method)
        }
    }

    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(Kind::InvalidParams, message)
    }

    /// The `error` object of a JSON-RPC response.
    pub fn object(&self, code: i32) -> Vec<u8> {
        let mut data = Map::new();
        data.insert("code".into(), self.kind.code().into());
        data.extend(self.details.clone());
        json!({ "code": code, "message": self.message, "data": data }).to_string().into_bytes()
    }

    /// The tool result that says the same.
    pub fn tool_result(&self) -> Vec<u8> {
        let mut error = Map::new();
        error.insert("code".into(), self.kind.code().into());
        error.insert("message".into(), self.message.clone().into());
        error.extend(self.details.clone());
        let mut out = b"{\"content\":[{\"type\":\"text\",\"text\":".to_vec();
        json::write_string(&mut out, &self.message);
        out.extend_from_slice(b"}],\"structuredContent\":");
        out.extend_from_slice(json!({ "error": error }).to_string().as_bytes());
        out.extend_from_slice(b",\"isError\":true}");
        out
    }
}

#[cfg(test)]
mod tests {
    use super::{Error, Form, Kind};
    use crate::version::Version;
    use serde_json::{Value, json};

    /// One row a kind: up to 2025-06-18, 2025-11-25, 2026-07-28. Zero stands for a tool result.
    const TABLE: &[(Kind, i32, i32, i32)] = &[
        (Kind::ParseError, -32700, -32700, -32700),
        (Kind::InvalidRequest, -32600, -32600, -32600),
        (Kind::MethodNotFound, -32601, -32601, -32601),
        (Kind::InvalidParams, -32602, -32602, -32602),
        (Kind::Internal, -32603, -32603, -32603),
        (Kind::ResourceNotFound, -32001, -32002, -32602),
        (Kind::AccessDenied, -32002, -32602, -32602),
        (Kind::ToolNotFound, -32602, -32602, -32602),
        (Kind::ToolFailed, -32003, 0, 0),
        (Kind::InvalidArguments, -32004, 0, 0),
        (Kind::PromptNotFound, -32005, -32602, -32602),
        (Kind::SamplingUnsupported, -32006, -32601, -32021),
        (Kind::CapabilityUnsupported, -32007, -32601, -32601),
        (Kind::ClientCapabilityMissing, -32007, -32601, -32021),
        (Kind::UnsupportedVersion, -32602, -32602, -32022),
        (Kind::HeaderMismatch, -32600, -32600, -32020),
        (Kind::Unavailable, -32603, -32603, -32603),
        (Kind::Timeout, -32603, -32603, -32603),
        (Kind::Busy, -32603, -32603, -32603),
        (Kind::ShuttingDown, -32600, -32600, -32600),
    ];

    #[test]
    fn every_kind_in_every_version() {
        assert_eq!(TABLE.len(), Kind::ALL.len());
        for (kind, early, november, modern) in TABLE {
            for version in Version::ALL {
                let expected = match version {
                    Version::V2024_11_05 | Version::V2025_03_26 | Version::V2025_06_18 => early,
                    Version::V2025_11_25 => november,
                    Version::V2026_07_28 => modern,
                };
                let got = match kind.form(version) {
                    Form::Error(code) => code,
                    Form::ToolResult => 0,
                };
                assert_eq!(got, *expected, "{kind:?} in {version}");
                if version.is_modern() {
                    assert!(!(-32019..=-32000).contains(&got), "{kind:?} uses a number that 2026-07-28 retired");
                }
            }
        }
    }

    #[test]
    fn codes_are_distinct() {
        let mut codes: Vec<_> = Kind::ALL.iter().map(|kind| kind.code()).collect();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), Kind::ALL.len());
    }

    #[test]
    fn both_forms_say_the_same() {
        let error = Error::new(Kind::ToolFailed, "it \"died\"").with("status", 3);
        assert_eq!(
            serde_json::from_slice::<Value>(&error.object(-32003)).unwrap(),
            json!({"code": -32003, "message": "it \"died\"", "data": {"code": "tool_failed", "status": 3}})
        );
        assert_eq!(
            serde_json::from_slice::<Value>(&error.tool_result()).unwrap(),
            json!({
                "content": [{"type": "text", "text": "it \"died\""}],
                "structuredContent": {"error": {"code": "tool_failed", "message": "it \"died\"", "status": 3}},
                "isError": true
            })
        );
    }
}
