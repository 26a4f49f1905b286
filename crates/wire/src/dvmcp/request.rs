//! Requests (kind 5910): what a customer writes and a provider reads.

use super::REQUEST;
use crate::failure::{Code, Failure};
use crate::request::{self, Address, Body, Command, Execution, Reading, Request};
use crate::strict;
use crate::tags::{tag, value};
use nostr::prelude::{EventId, PublicKey, Tag, Timestamp, UnsignedEvent};
use rialto_mcp::json;
use serde_json::Value;
use std::time::Duration;

/// The longest content that is read.
pub const MAX_CONTENT: usize = 128 * 1024;

/// The most calls in one `batch-execute`.
pub const MAX_BATCH: usize = 32;

/// Whether requests to nobody in particular are taken, beyond `list-tools`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenJobs {
    Taken,
    Ignored,
}

/// Reads an event that has passed the gate. Its id must be set.
pub fn read(event: &UnsignedEvent, me: &PublicKey, open_jobs: OpenJobs) -> Reading {
    let Some(id) = event.id.filter(|_| event.kind == REQUEST) else { return Reading::NotOurs };
    let name = value(&event.tags, "c");
    let command = name.and_then(Command::parse);
    let mut addressed = event.tags.iter().filter(|tag| tag.kind() == "p").filter_map(Tag::content).peekable();
    let is_ours = match addressed.peek() {
        Some(_) => addressed.any(|key| PublicKey::from_hex(key).is_ok_and(|key| key == *me)),
        // Money is never for anybody who hears of it.
        None if matches!(command, Some(Command::PayExecution | Command::Refund)) => false,
        None => command == Some(Command::ListTools) || (open_jobs == OpenJobs::Taken && name.is_some()),
    };
    // Answers of others that have the kind of requests, and our own requests, are none.
    if !is_ours || event.pubkey == *me || name.is_some_and(|name| name.ends_with("-response")) {
        return Reading::NotOurs;
    }
    let address = Address { request: id, customer: event.pubkey, command };
    let read = match (command, name) {
        (Some(command), _) => body(event, command),
        (None, Some(name)) => {
            let name: String = name.chars().take(64).collect();
            Err(Failure::new(Code::UnknownCommand, format!("there is no command `{name}`")))
        }
        (None, None) => Err(Failure::new(Code::InvalidRequest, "the `c` tag is missing")),
    };
    match read {
        Ok((body, progress, parts)) => {
            // Whatever else stands there is no money, and the price is asked for.
            let token = value(&event.tags, "cashu").and_then(request::token);
            Reading::Request(Box::new(Request { address, body, progress, parts, token }))
        }
        Err(failure) => Reading::Refused { address, failure },
    }
}

/// Whether a request names a provider, rather than anybody who hears it.
pub fn is_addressed(event: &UnsignedEvent) -> bool {
    value(&event.tags, "p").is_some()
}

fn body(event: &UnsignedEvent, command: Command) -> Result<(Body, bool, bool), Failure> {
    if event.content.len() > MAX_CONTENT {
        return Err(Failure::new(Code::TooLarge, format!("the content is longer than {MAX_CONTENT} bytes")));
    }
    if command == Command::CancelExecution {
        let target = value(&event.tags, "e").and_then(|id| EventId::from_hex(id).ok());
        let target = target.ok_or_else(|| missing("the tag `e` must name the request to cancel"))?;
        return Ok((Body::Cancel { target }, false, false));
    }
    let content = Content::read(&event.content, command)?;
    let metadata = content.value.get("metadata");
    let flag = |name: &str| metadata.and_then(|metadata| metadata.get(name)) == Some(&Value::Bool(true));
    let body = match command {
        Command::ListTools | Command::ListResources | Command::ListResourceTemplates | Command::ListPrompts => {
            let cursor = match content.value.get("cursor") {
                None | Some(Value::Null) => None,
                Some(Value::String(cursor)) => Some(cursor.clone()),
                Some(_) => return Err(missing("`cursor` must be a string")),
            };
            Body::List { cursor }
        }
        Command::ExecuteTool => Body::Execute(content.execution("")?),
        Command::BatchExecute => Body::Batch(content.batch()?),
        Command::PayExecution => content.payment()?,
        Command::Refund => Body::Refund {
            mint: match content.value.get("mint") {
                None | Some(Value::Null) => None,
                Some(_) => Some(content.string("mint")?),
            },
        },
        Command::ReadResource => Body::Read { uri: content.string("uri")? },
        Command::ExecutePrompt => {
            let arguments = content.object("parameters")?.or(content.object("arguments")?).map(|(text, _)| text);
            Body::Prompt { name: content.string("name")?, arguments }
        }
        Command::Complete => {
            // Nothing else is passed on: a `_meta` could claim the progress of somebody else's call.
            let mut params = Vec::new();
            for key in ["ref", "argument", "context"] {
                match content.object(key)? {
                    Some((text, _)) => json::push_member(&mut params, key.as_bytes(), text.as_bytes()),
                    None if key == "context" => {}
                    None => return Err(missing(format!("`{key}` is missing"))),
                }
            }
            Body::Complete { params: format!("{{{}}}", String::from_utf8_lossy(&params)) }
        }
        // It has no content, and was read above.
        Command::CancelExecution => return Err(missing("the tag `e` must name the request to cancel")),
    };
    Ok((body, flag("progress"), flag("parts")))
}

fn missing(message: impl Into<String>) -> Failure {
    Failure::new(Code::InvalidInput, message)
}

/// An object that a stranger wrote: its text and what it says.
struct Content {
    text: String,
    value: Value,
}

impl Content {
    fn read(text: &str, command: Command) -> Result<Self, Failure> {
        let invalid = |why: &dyn std::fmt::Display| {
            Failure::new(Code::InvalidRequest, format!("the content is not an acceptable JSON object: {why}"))
        };
        // Only what needs no argument may be empty.
        let may_be_empty = matches!(
            command,
            Command::ListTools
                | Command::ListResources
                | Command::ListResourceTemplates
                | Command::ListPrompts
                | Command::Refund
        );
        if may_be_empty && text.trim().is_empty() {
            return Ok(Self { text: "{}".to_owned(), value: Value::Object(serde_json::Map::new()) });
        }
        let mut text = text.to_owned();
        let mut value = strict::parse(&text).map_err(|error| invalid(&error))?;
        if let Value::String(inner) = value {
            // Some wrap the object in a string once more.
            value = strict::parse(&inner).map_err(|error| invalid(&error))?;
            text = inner;
        }
        if !value.is_object() {
            return Err(invalid(&"it is no object"));
        }
        Ok(Self { text, value })
    }

    fn string(&self, key: &str) -> Result<String, Failure> {
        match self.value.get(key) {
            Some(Value::String(text)) => Ok(text.clone()),
            Some(_) => Err(missing(format!("`{key}` must be a string"))),
            None => Err(missing(format!("`{key}` is missing"))),
        }
    }

    /// An object member: as written, and read.
    fn object(&self, key: &str) -> Result<Option<(String, Value)>, Failure> {
        match self.value.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(value @ Value::Object(_)) => {
                // What was just read is there; its text has been checked to be UTF-8.
                let text = json::get(self.text.as_bytes(), key).unwrap_or(b"{}");
                Ok(Some((String::from_utf8_lossy(text).into_owned(), value.clone())))
            }
            Some(_) => Err(missing(format!("`{key}` must be an object"))),
        }
    }

    fn execution(&self, place: &str) -> Result<Execution, Failure> {
        let name = self.string("name")?;
        let found = self.object("parameters")?.or(self.object("arguments")?);
        let (arguments, value) = found.ok_or_else(|| missing("`parameters` is missing"))?;
        let timeout = match self.value.get("timeout") {
            None => None,
            Some(value) => {
                let milliseconds = value.as_u64().filter(|milliseconds| *milliseconds > 0);
                let words = "`timeout` must be a whole number of milliseconds above 0";
                Some(Duration::from_millis(milliseconds.ok_or_else(|| missing(words).at(format!("{place}/timeout")))?))
            }
        };
        let meta = match self.object("metadata")? {
            Some((text, value)) => match value.get("_meta") {
                None | Some(Value::Null) => None,
                Some(Value::Object(_)) => {
                    json::get(text.as_bytes(), "_meta").map(|meta| String::from_utf8_lossy(meta).into_owned())
                }
                Some(_) => return Err(missing("`metadata._meta` must be an object")),
            },
            None => None,
        };
        Ok(Execution { name, arguments, value, timeout, meta })
    }

    fn payment(&self) -> Result<Body, Failure> {
        let target = EventId::from_hex(&self.string("request")?);
        let target = target.map_err(|_| missing("`request` must be the id of the request that is paid"))?;
        let token = request::token(&self.string("token")?);
        Ok(Body::Pay { target, token: token.ok_or_else(|| missing("`token` must be a Cashu token"))? })
    }

    fn batch(&self) -> Result<Vec<Execution>, Failure> {
        let calls = json::get(self.text.as_bytes(), "calls").filter(|calls| calls.first() == Some(&b'['));
        let calls = calls.ok_or_else(|| missing("`calls` must be an array"))?;
        let places = json::elements(calls).unwrap_or_default();
        if places.is_empty() || places.len() > MAX_BATCH {
            return Err(missing(format!("`calls` must have 1 to {MAX_BATCH} elements")));
        }
        let call = |(index, place): (usize, std::ops::Range<usize>)| {
            let text = String::from_utf8_lossy(&calls[place]).into_owned();
            let value = self.value["calls"][index].clone();
            let at = |failure: Failure| Failure { message: format!("call {index}: {}", failure.message), ..failure };
            if !value.is_object() {
                return Err(at(missing("it must be an object")));
            }
            Self { text, value }.execution(&format!("/calls/{index}")).map_err(at)
        };
        places.into_iter().enumerate().map(call).collect()
    }
}

/// Writes a request; the author is set when it is signed or sealed.
pub fn write(
    command: Command,
    provider: Option<PublicKey>,
    content: String,
    me: PublicKey,
    now: Timestamp,
) -> UnsignedEvent {
    let mut tags = vec![tag("c", [command.name()])];
    if let Some(provider) = provider {
        tags.push(Tag::public_key(provider));
    }
    tags.push(tag("output", ["application/json"]));
    UnsignedEvent::new(me, now, REQUEST, tags, content)
}

/// Writes the request to cancel another.
pub fn write_cancel(target: EventId, provider: PublicKey, me: PublicKey, now: Timestamp) -> UnsignedEvent {
    let mut request = write(Command::CancelExecution, Some(provider), String::new(), me, now);
    request.tags.push(Tag::event(target));
    request
}
