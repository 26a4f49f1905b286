//! Requests: what a customer writes and a provider reads.

use super::{is_for, kind, to};
use crate::failure::{Code, Failure};
use crate::request::{self, Address, Body, Command, Execution, Reading, Request};
use crate::strict;
use crate::tags::value;
use nostr::prelude::{EventId, PublicKey, Timestamp, UnsignedEvent};
use rialto_mcp::json;
use rialto_payment::secret::Secret;
use serde_json::{Map, Value, json};

/// The longest text that is read.
pub const MAX_TEXT: usize = 128 * 1024;

/// The text of a request; `arguments` is a JSON object.
pub fn text(tool: &str, arguments: &[u8]) -> String {
    let mut members = Vec::new();
    json::push_member(&mut members, b"tool_name", &json::quoted(tool));
    json::push_member(&mut members, b"arguments", arguments);
    format!("{{{}}}", String::from_utf8_lossy(&members))
}

/// The text that pays for a request. It is money: only for the one to whose key the token is locked.
pub fn payment(request: EventId, token: &Secret) -> String {
    json!({ "payment": { "request": request.to_hex(), "token": token.reveal() } }).to_string()
}

/// Writes a request; its text is encrypted, or the whole sealed, when it is sent.
pub fn write(provider: PublicKey, text: String, sealed: bool, me: PublicKey, now: Timestamp) -> UnsignedEvent {
    UnsignedEvent::new(me, now, kind(sealed), [to(provider)], text)
}

/// Reads a message that has passed the gate, with its text in the clear. Its id must be set.
pub fn read(event: &UnsignedEvent, me: &PublicKey) -> Reading {
    // A message that answers another is no request, or two providers could talk to each other for ever.
    let is_answer = value(&event.tags, "e").is_some();
    let Some(id) = event.id.filter(|_| is_for(event, me) && !is_answer) else { return Reading::NotOurs };
    let text = event.content.trim_start_matches([' ', '\t', '\r', '\n']);
    if !text.starts_with(['{', '[']) {
        return Reading::NotOurs;
    }
    let mut address = Address { request: id, customer: event.pubkey, command: Some(Command::ExecuteTool) };
    match body(text) {
        Ok(Some(body)) => {
            if let Body::Pay { .. } = body {
                address.command = Some(Command::PayExecution);
            }
            // One that pays for another request has no request of its own to pay for.
            let token = if let Body::Execute(_) = body { attached(text) } else { None };
            Reading::Request(Box::new(Request { address, body, progress: false, parts: false, token }))
        }
        Ok(None) => Reading::NotOurs,
        Err(failure) => Reading::Refused { address, failure },
    }
}

/// `None` if it is the answer of somebody who does not say what they answer.
fn body(text: &str) -> Result<Option<Body>, Failure> {
    if text.len() > MAX_TEXT {
        return Err(Failure::new(Code::TooLarge, format!("the request is longer than {MAX_TEXT} bytes")));
    }
    let invalid = |why: &dyn std::fmt::Display| {
        Failure::new(Code::InvalidRequest, format!("the request is not an acceptable JSON object: {why}"))
    };
    let value = strict::parse(text).map_err(|error| invalid(&error))?;
    let Value::Object(members) = value else { return Err(invalid(&"it is no object")) };
    let wrong = |words: &str| Failure::new(Code::InvalidInput, words);
    let name = match members.get("tool_name") {
        Some(Value::String(name)) => name.clone(),
        Some(_) => return Err(wrong("`tool_name` must be a string")),
        None if members.contains_key("payment") => return payment_body(&members).map(Some),
        None if members.contains_key("error") || members.contains_key("content") => return Ok(None),
        None => return Err(wrong("`tool_name` is missing")),
    };
    let value = match members.get("arguments") {
        Some(arguments @ Value::Object(_)) => arguments.clone(),
        Some(_) => return Err(wrong("`arguments` must be an object")),
        None => return Err(wrong("`arguments` is missing")),
    };
    // What was just read is there.
    let arguments = json::get(text.as_bytes(), "arguments").unwrap_or(b"{}");
    let arguments = String::from_utf8_lossy(arguments).into_owned();
    Ok(Some(Body::Execute(Execution { name, arguments, value, timeout: None, meta: None })))
}

/// Ecash that comes with a request.
fn attached(text: &str) -> Option<Secret> {
    let payment = json::get(text.as_bytes(), "payment")?;
    request::token(&json::get_string(payment, "token")?)
}

fn payment_body(members: &Map<String, Value>) -> Result<Body, Failure> {
    let wrong = |words: &str| Failure::new(Code::InvalidInput, words);
    let text = |key: &str| members.get("payment").and_then(|payment| payment.get(key)).and_then(Value::as_str);
    let target = text("request").and_then(|id| EventId::from_hex(id).ok());
    let token = text("token").and_then(request::token);
    Ok(Body::Pay {
        target: target.ok_or_else(|| wrong("`payment.request` must be the id of the request that is paid"))?,
        token: token.ok_or_else(|| wrong("`payment.token` must be a Cashu token"))?,
    })
}
