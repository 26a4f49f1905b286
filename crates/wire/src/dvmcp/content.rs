//! The contents of requests, as a customer writes them. What a host gave as JSON text goes in as it is.

use nostr::prelude::EventId;
use rialto_mcp::json;
use rialto_payment::secret::Secret;
use serde_json::json;
use std::time::Duration;

/// One call of one tool.
#[derive(Debug, Clone, Copy)]
pub struct Execute<'a> {
    pub name: &'a str,
    /// A JSON object.
    pub arguments: &'a [u8],
    pub timeout: Option<Duration>,
    /// Progress should be reported.
    pub progress: bool,
    /// A JSON object for the MCP server.
    pub meta: Option<&'a [u8]>,
}

impl Execute<'_> {
    /// A large result may come in parts: whoever writes with this can put them together.
    pub fn write(&self) -> String {
        let mut members = Vec::new();
        json::push_member(&mut members, b"name", &json::quoted(self.name));
        json::push_member(&mut members, b"parameters", self.arguments);
        if let Some(timeout) = self.timeout {
            json::push_member(&mut members, b"timeout", timeout.as_millis().max(1).to_string().as_bytes());
        }
        let mut metadata = Vec::new();
        json::push_member(&mut metadata, b"parts", b"true");
        if self.progress {
            json::push_member(&mut metadata, b"progress", b"true");
        }
        if let Some(meta) = self.meta {
            json::push_member(&mut metadata, b"_meta", meta);
        }
        json::push_member(&mut members, b"metadata", &object(&metadata));
        text(object(&members))
    }
}

/// The content of `read-resource`.
pub fn read(uri: &str) -> String {
    json!({ "uri": uri }).to_string()
}

/// The content of `execute-prompt`; `arguments` is a JSON object.
pub fn prompt(name: &str, arguments: Option<&[u8]>) -> String {
    let mut members = Vec::new();
    json::push_member(&mut members, b"name", &json::quoted(name));
    json::push_member(&mut members, b"parameters", arguments.unwrap_or(b"{}"));
    text(object(&members))
}

/// The content of `pay-execution`. It is money: only for the one to whose key the token is locked.
pub fn payment(request: EventId, token: &Secret) -> String {
    json!({ "request": request.to_hex(), "token": token.reveal() }).to_string()
}

fn object(members: &[u8]) -> Vec<u8> {
    [b"{", members, b"}"].concat()
}

fn text(bytes: Vec<u8>) -> String {
    // Made of texts that have been checked to be UTF-8.
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}
