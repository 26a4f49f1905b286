//! What the peers share: the surface that every SDK's server offers, and JSON helpers.
//!
//! Values are built from JSON instead of the SDK's builders, so that all servers answer from the same text.

pub mod http;

use std::sync::LazyLock;

use rmcp::ErrorData;
use serde_json::{Value, json};

/// Tools, resources, prompts, questions and replies, common to the peers of all SDKs.
pub static SURFACE: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../surface.json")).expect("surface.json is part of this program")
});

/// The revision without sessions; everything before it starts with `initialize`.
pub const MODERN: &str = "2026-07-28";

/// Converts JSON into a type of the SDK; what does not fit becomes an internal error that names the reason.
pub fn typed<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    serde_json::from_value(value).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

/// A finished result. The SDK takes `resultType` away again for clients of the old era, which has no such member.
pub fn complete<T: serde::de::DeserializeOwned>(mut value: Value) -> Result<T, ErrorData> {
    value["resultType"] = json!("complete");
    typed(value)
}

/// A tool result with one text.
pub fn text(text: impl Into<String>) -> Value {
    json!({ "content": [{ "type": "text", "text": text.into() }] })
}
