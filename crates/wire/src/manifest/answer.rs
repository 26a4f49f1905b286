//! Answers: what a provider writes and a customer reads.

use super::{is_for, kind, to};
use crate::charge::Charge;
use crate::failure::{Code, Failure};
use crate::request::Address;
use crate::strict;
use crate::tags::{mints, tag, value};
use nostr::prelude::{EventId, PublicKey, Timestamp, UnsignedEvent};
use rialto_mcp::json;
use serde_json::{Value, json};

/// Writes an answer; its text is encrypted, or the whole sealed, when it is sent.
pub fn write(address: &Address, text: String, sealed: bool, me: PublicKey, now: Timestamp) -> UnsignedEvent {
    let tags = [to(address.customer), tag("e", [&address.request.to_hex()])];
    UnsignedEvent::new(me, now, kind(sealed), tags, text)
}

/// The text for a tool's result: the structured part if the tool has promised one, else all of it.
pub fn given(result: &[u8], is_structured: bool) -> Result<String, Failure> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let structured = json::get(result, "structuredContent").filter(|value| value.first() == Some(&b'{'));
    match (is_structured, structured) {
        (true, Some(structured)) => Ok(text(structured)),
        // Some servers give only the text of it.
        (true, None) => only_text(result)
            .filter(|words| strict::parse(words).is_ok_and(|value| value.is_object()))
            .ok_or_else(|| Failure::new(Code::InternalError, "the tool gave no structured result, which it promises")),
        (false, Some(structured)) if json::get(result, "content").is_none() => {
            let content = json!([{ "type": "text", "text": text(structured) }]).to_string();
            Ok(text(&json::with_members(result, format!("\"content\":{content}").as_bytes())))
        }
        (false, _) => Ok(text(result)),
    }
}

/// The text of a result that has nothing else.
fn only_text(result: &[u8]) -> Option<String> {
    let content: Value = serde_json::from_slice(json::get(result, "content")?).ok()?;
    match content.as_array()?.as_slice() {
        [only] => Some(only.get("text")?.as_str()?.to_owned()),
        _ => None,
    }
}

/// The text for a request that failed.
pub fn failed(failure: &Failure) -> String {
    json!({ "error": failure.object() }).to_string()
}

/// The text that asks for money first.
pub fn charged(charge: &Charge) -> String {
    json!({ "error": charge.object() }).to_string()
}

/// The text for a tool that says itself that it failed: its words, and its answer.
pub fn complained(words: &str, result: &[u8]) -> String {
    let mut error = Vec::new();
    json::push_member(&mut error, b"code", &json::quoted(Code::ToolError.as_str()));
    json::push_member(&mut error, b"message", &json::quoted(words));
    if let Some(content) = json::get(result, "content") {
        json::push_member(&mut error, b"content", content);
    }
    format!("{{\"error\":{{{}}}}}", String::from_utf8_lossy(&error))
}

/// A message to a customer: which request it answers, if it says so, and its text.
pub fn read<'a>(event: &'a UnsignedEvent, me: &PublicKey) -> Option<(Option<EventId>, &'a str)> {
    if !is_for(event, me) {
        return None;
    }
    let about = match value(&event.tags, "e") {
        // One that names something that is no event answers nothing.
        Some(id) => Some(EventId::from_hex(id).ok()?),
        None => None,
    };
    Some((about, &event.content))
}

/// Whether a text looks like an answer, rather than like a chat.
pub fn is_likely(text: &str) -> bool {
    text.trim_start().starts_with('{') || invoice(text).is_some()
}

/// A text that is an invoice and nothing else.
fn invoice(text: &str) -> Option<&str> {
    let text = text.trim();
    let is_invoice = text.starts_with("ln") && text.len() > 40 && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_invoice.then_some(text)
}

/// What an answer says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// An MCP result.
    Result(String),
    Failed {
        code: String,
        message: String,
        pointer: Option<String>,
    },
    /// Something is to be paid first.
    Payment {
        amount: Option<String>,
        invoice: Option<String>,
        /// The mints whose tokens are taken instead.
        mints: Vec<String>,
        words: String,
    },
    Unusable(String),
}

impl Answer {
    /// Reads the text of an answer. `is_structured` says that the tool has promised a structured result.
    pub fn read(text: &str, is_structured: bool) -> Self {
        if let Some(invoice) = invoice(text) {
            let invoice = Some(invoice.to_owned());
            return Answer::Payment { amount: None, invoice, mints: Vec::new(), words: String::new() };
        }
        let trimmed = text.trim();
        let value = match strict::parse(trimmed) {
            Ok(value @ Value::Object(_)) => value,
            Err(error) if trimmed.starts_with('{') => return Answer::Unusable(error.to_string()),
            _ if is_structured => return Answer::Unusable("it is no JSON object".to_owned()),
            _ => return Answer::Result(json!({ "content": [{ "type": "text", "text": trimmed }] }).to_string()),
        };
        let is_failure = |error: &&Value| if is_structured { is_error(error) } else { !error.is_null() };
        if let Some(error) = value.get("error").filter(is_failure) {
            return Self::failure(error);
        }
        let has_items = |value: &Value| {
            let items = value.get("content").and_then(Value::as_array);
            items.is_some_and(|items| items.iter().all(|item| item.get("type").is_some_and(Value::is_string)))
        };
        if !is_structured && has_items(&value) {
            return Answer::Result(trimmed.to_owned());
        }
        let mut members = Vec::new();
        let content = json!([{ "type": "text", "text": trimmed }]).to_string();
        json::push_member(&mut members, b"content", content.as_bytes());
        json::push_member(&mut members, b"structuredContent", trimmed.as_bytes());
        Answer::Result(format!("{{{}}}", String::from_utf8_lossy(&members)))
    }

    fn failure(error: &Value) -> Self {
        // Some give only words.
        let text = |key: &str| error.get(key).and_then(Value::as_str).map(ToOwned::to_owned);
        let code = text("code").unwrap_or_default();
        let message = text("message").or_else(|| error.as_str().map(ToOwned::to_owned)).unwrap_or_default();
        match code.as_str() {
            "payment_required" => {
                let amount = error.get("amount_sat").map(|amount| match amount {
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                });
                let named = error.get("mints").and_then(Value::as_array).into_iter().flatten();
                let mints = mints(named.filter_map(Value::as_str));
                Answer::Payment { amount, invoice: text("invoice"), mints, words: message }
            }
            "tool_error" => {
                let plain = json!([{ "type": "text", "text": message }]);
                let content = error.get("content").filter(|content| content.is_array()).unwrap_or(&plain);
                Answer::Result(json!({ "content": content, "isError": true }).to_string())
            }
            _ => Answer::Failed { code, message, pointer: text("pointer") },
        }
    }
}

/// Whether this is what an error looks like, rather than a tool's own member of that name.
fn is_error(error: &Value) -> bool {
    error.get("code").is_some_and(Value::is_string) && error.get("message").is_some_and(Value::is_string)
}
