//! Answers: feedback (kind 7000) and responses (kind 6910). What a provider writes and a customer reads.

use super::{FEEDBACK, REQUEST, RESPONSE};
use crate::charge::Charge;
use crate::failure::Failure;
use crate::request::{Address, Command};
use crate::size::width;
use crate::tags::{mints, tag, value};
use nostr::prelude::{Event, EventId, PublicKey, Tag, Timestamp, UnsignedEvent};
use rialto_mcp::json;
use serde_json::{Value, json};
use std::borrow::Cow;

/// What all answers of one provider have in common.
#[derive(Debug, Clone)]
pub struct Writer {
    pub provider: PublicKey,
    /// Where the request came from.
    pub relay: Option<String>,
    pub now: Timestamp,
}

/// How a job is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress<'a> {
    Begun,
    /// The params of a progress notification, and its words.
    Step {
        params: &'a str,
        words: Cow<'a, str>,
    },
    Succeeded,
    /// Something is to be paid first.
    Charged(&'a Charge),
    Failed {
        code: &'a str,
        message: Cow<'a, str>,
    },
}

impl Writer {
    fn tags(&self, address: &Address) -> [Tag; 2] {
        let id = address.request.to_hex();
        let about = match &self.relay {
            Some(relay) => tag("e", [&id, relay]),
            None => tag("e", [&id]),
        };
        [about, Tag::public_key(address.customer)]
    }

    pub fn feedback(&self, address: &Address, progress: &Progress<'_>) -> UnsignedEvent {
        let (status, content) = match progress {
            Progress::Begun => (tag("status", ["processing"]), ""),
            Progress::Step { params, words } if words.is_empty() => (tag("status", ["processing"]), *params),
            Progress::Step { params, words } => (tag("status", ["processing", words]), *params),
            Progress::Succeeded => (tag("status", ["success"]), ""),
            Progress::Charged(charge) => (tag("status", ["payment-required", &charge.words]), ""),
            Progress::Failed { code, message } => {
                // Tag values beyond a kilobyte are refused by some relays.
                let message: String = message.chars().take(250).collect();
                (tag("status", ["error", &format!("{code}: {message}")]), "")
            }
        };
        let [about, customer] = self.tags(address);
        let charged = if let Progress::Charged(charge) = progress { charge.tags() } else { Vec::new() };
        let tags = [status].into_iter().chain(charged).chain([about, customer]);
        UnsignedEvent::new(self.provider, self.now, FEEDBACK, tags, content)
    }

    /// The response with this content; `status` is `success` or `error`.
    pub fn response(&self, address: &Address, outcome: Outcome, content: impl Into<String>) -> UnsignedEvent {
        let name = address.command.map_or("error", Command::name);
        let [about, customer] = self.tags(address);
        let tags = [tag("c", [&format!("{name}-response")]), about, customer, tag("status", [outcome.as_str()])];
        UnsignedEvent::new(self.provider, self.now, RESPONSE, tags, content)
    }

    /// Both answers to a request that failed.
    pub fn failure(&self, address: &Address, failure: &Failure) -> [UnsignedEvent; 2] {
        let progress = Progress::Failed { code: failure.code.as_str(), message: Cow::Borrowed(&failure.message) };
        [self.feedback(address, &progress), self.response(address, Outcome::Error, failed(failure))]
    }

    /// A response in parts of at most `limit` bytes of JSON each.
    pub fn parts(&self, address: &Address, outcome: Outcome, content: &str, limit: usize) -> Vec<UnsignedEvent> {
        let digest = digest(content);
        let pieces = cut(content, limit);
        let of = pieces.len().to_string();
        let part = |(index, piece): (usize, &&str)| {
            let mut event = self.response(address, outcome, *piece);
            event.tags.push(tag("part", [&(index + 1).to_string(), &of, &digest]));
            event
        };
        pieces.iter().enumerate().map(part).collect()
    }
}

/// The content of the response to a request that failed.
pub fn failed(failure: &Failure) -> String {
    let content = [json!({ "type": "text", "text": failure.message })];
    json!({ "content": content, "isError": true, "metadata": { "error": failure.object() } }).to_string()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Success,
    Error,
}

impl Outcome {
    fn as_str(self) -> &'static str {
        match self {
            Outcome::Success => "success",
            Outcome::Error => "error",
        }
    }
}

/// The SHA-256 of a content, in hex: by it a customer knows that the parts make the whole.
pub fn digest(content: &str) -> String {
    let hash = ring::digest::digest(&ring::digest::SHA256, content.as_bytes());
    hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Cuts text into pieces whose JSON string form has at most `limit` bytes.
fn cut(text: &str, limit: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let (mut start, mut size) = (0, 2);
    for (at, character) in text.char_indices() {
        let cost = width(character);
        if size + cost > limit && at > start {
            pieces.push(&text[start..at]);
            (start, size) = (at, 2);
        }
        size += cost;
    }
    pieces.push(&text[start..]);
    pieces
}

/// A tool's result as the content of a response: what the server gave, completed by what the protocol asks for.
pub fn completed(result: &[u8], seconds: f64) -> String {
    let [is_error, metadata] = json::find(result, ["isError", "metadata"]).unwrap_or([None, None]);
    let time = format!("\"processing_time\":{seconds}");
    let mut members = Vec::new();
    if is_error.is_none() {
        json::push_member(&mut members, b"isError", b"false");
    }
    let mut whole = result.to_vec();
    match metadata {
        None => json::push_member(&mut members, b"metadata", format!("{{{time}}}").as_bytes()),
        // The server has metadata of its own: the time goes in, unless it is there, or there is no place for it.
        Some(place)
            if result[place.start] == b'{' && json::get(&result[place.clone()], "processing_time").is_none() =>
        {
            let timed = json::with_members(&result[place.clone()], time.as_bytes());
            whole.clear();
            json::splice(&mut whole, result, &[(place, &timed)]);
        }
        Some(_) => {}
    }
    if !members.is_empty() {
        whole = json::with_members(&whole, &members);
    }
    // A server's answer that is not UTF-8 does not come this far.
    String::from_utf8(whole).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// If a tool's result says that it failed: its first words.
pub fn complaint(result: &[u8]) -> Option<String> {
    if json::get(result, "isError") != Some(b"true") {
        return None;
    }
    let value: Value = serde_json::from_slice(json::get(result, "content").unwrap_or_default()).unwrap_or_default();
    let text = value.as_array().and_then(|items| items.iter().find_map(|item| item.get("text")?.as_str()));
    Some(text.unwrap_or("the tool failed").chars().take(200).collect())
}

/// What a provider said about a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    Feedback(Feedback),
    /// A whole response; `None` if it does not say how it went.
    Response {
        content: String,
        outcome: Option<Outcome>,
    },
    Part {
        number: usize,
        of: usize,
        digest: String,
        content: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Feedback {
    pub status: Status,
    /// What stands behind the status.
    pub words: String,
    pub content: String,
    /// What is asked for, as it was written. Only the amount inside the invoice counts.
    pub amount: Option<String>,
    /// The invoice to pay, if one is asked for.
    pub invoice: Option<String>,
    /// The mints whose tokens are taken instead.
    pub mints: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    PaymentRequired,
    Processing,
    Error,
    Success,
    Partial,
    /// A word that the protocol does not have.
    Other,
}

/// The most parts of one response that a customer takes.
pub const MAX_PARTS: usize = 256;

/// Reads an event by a provider: which request it is about, and what it says.
pub fn read(event: &UnsignedEvent) -> Option<(EventId, Answer)> {
    let request = EventId::from_hex(value(&event.tags, "e")?).ok()?;
    if event.kind == FEEDBACK {
        let status = event.tags.iter().find(|tag| tag.kind() == "status")?.as_slice();
        let amount = event.tags.iter().find(|tag| tag.kind() == "amount").map(Tag::as_slice).unwrap_or_default();
        let invoice = value(&event.tags, "invoice").or(amount.get(2).map(String::as_str));
        let feedback = Feedback {
            status: match status.get(1)?.as_str() {
                "payment-required" => Status::PaymentRequired,
                "processing" => Status::Processing,
                "error" => Status::Error,
                "success" => Status::Success,
                "partial" => Status::Partial,
                _ => Status::Other,
            },
            words: status.get(2).cloned().unwrap_or_default(),
            content: event.content.clone(),
            amount: amount.get(1).cloned(),
            mints: mints(event.tags.iter().filter(|tag| tag.kind() == "mint").filter_map(Tag::content)),
            invoice: invoice.filter(|text| text.starts_with("ln")).map(ToOwned::to_owned),
        };
        return Some((request, Answer::Feedback(feedback)));
    }
    // An old text gives responses the kind of requests; such a one says itself that it is a response.
    let is_response = || value(&event.tags, "c").is_some_and(|name| name.ends_with("-response"));
    if event.kind != RESPONSE && !(event.kind == REQUEST && is_response()) {
        return None;
    }
    let content = event.content.clone();
    if let Some(part) = event.tags.iter().find(|tag| tag.kind() == "part").map(Tag::as_slice) {
        let number = |index: usize| part.get(index).and_then(|text| text.parse::<usize>().ok());
        let (number, of) = (number(1)?, number(2)?);
        let digest = part.get(3)?.clone();
        let is_possible = (1..=of).contains(&number) && of <= MAX_PARTS;
        return is_possible.then_some((request, Answer::Part { number, of, digest, content }));
    }
    let outcome = match value(&event.tags, "status") {
        Some("success") => Some(Outcome::Success),
        Some("error") => Some(Outcome::Error),
        _ => None,
    };
    Some((request, Answer::Response { content, outcome }))
}

/// The content of a list of tools that somebody else asked for. The kind of requests is taken as well, as an old text has it.
pub fn overheard(event: &Event) -> Option<&str> {
    let is_list = value(&event.tags, "c") == Some("list-tools-response");
    (is_list && [RESPONSE, REQUEST].contains(&event.kind)).then_some(event.content.as_str())
}

/// The error inside a response's content, if it is one of ours.
pub fn read_failure(content: &Value) -> Option<(String, String)> {
    let error = content.get("metadata")?.get("error")?;
    Some((error.get("code")?.as_str()?.to_owned(), error.get("message")?.as_str()?.to_owned()))
}

/// A response whose items have types that MCP does not know, put right: such items become embedded text resources.
pub fn repaired(mut content: Value) -> Value {
    let Some(items) = content.get_mut("content").and_then(Value::as_array_mut) else { return content };
    for (index, item) in items.iter_mut().enumerate() {
        let kind = item.get("type").and_then(Value::as_str).unwrap_or_default();
        // A media type stands where MCP has a word of its own.
        if kind.contains('/') {
            let text = item.get("text").and_then(Value::as_str).unwrap_or_default();
            let resource = json!({ "uri": format!("nostr:result/{index}"), "mimeType": kind, "text": text });
            *item = json!({ "type": "resource", "resource": resource });
        }
    }
    content
}
