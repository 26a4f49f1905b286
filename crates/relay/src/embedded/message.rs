//! The messages of NIP-01, NIP-42 and NIP-45 on the wire: arrays of JSON that begin with a word.

use serde::Serialize;
use serde_json::value::RawValue;

/// Longest name of a subscription, from NIP-01.
const MAX_NAME: usize = 64;

/// What a client asks for.
#[derive(Debug)]
pub(super) enum Request<'a> {
    Event(&'a str),
    Subscribe { name: String, filters: Vec<&'a str> },
    Count { name: String, filters: Vec<&'a str> },
    Close { name: String },
    Authenticate(&'a str),
}

impl<'a> Request<'a> {
    /// Reads a message; the error is the text of a NOTICE.
    pub(super) fn parse(text: &'a str) -> Result<Self, String> {
        let parts: Vec<&RawValue> =
            serde_json::from_str(text).map_err(|error| format!("invalid: not a JSON array: {error}"))?;
        let (label, rest) = parts.split_first().ok_or("invalid: the message is empty")?;
        let label: String = serde_json::from_str(label.get()).map_err(|_| "invalid: the message has no type")?;
        match (label.as_str(), rest) {
            ("EVENT", [event]) => Ok(Request::Event(event.get())),
            ("AUTH", [event]) => Ok(Request::Authenticate(event.get())),
            ("CLOSE", [name]) => Ok(Request::Close { name: parse_name(name)? }),
            ("REQ", [name, filters @ ..]) if !filters.is_empty() => {
                Ok(Request::Subscribe { name: parse_name(name)?, filters: texts(filters) })
            }
            ("COUNT", [name, filters @ ..]) if !filters.is_empty() => {
                Ok(Request::Count { name: parse_name(name)?, filters: texts(filters) })
            }
            ("EVENT" | "AUTH" | "CLOSE" | "REQ" | "COUNT", _) => Err(format!("invalid: {label} has the wrong parts")),
            _ => Err("unsupported: unknown message type".to_owned()),
        }
    }
}

fn parse_name(name: &RawValue) -> Result<String, &'static str> {
    let name: String = serde_json::from_str(name.get()).map_err(|_| "invalid: the subscription id is not a text")?;
    if name.is_empty() || name.chars().count() > MAX_NAME {
        return Err("invalid: a subscription id has 1 to 64 characters");
    }
    Ok(name)
}

fn texts<'a>(values: &[&'a RawValue]) -> Vec<&'a str> {
    values.iter().map(|value| value.get()).collect()
}

pub(super) fn ok(id: &str, accepted: bool, why: &str) -> String {
    write(&("OK", id, accepted, why))
}

pub(super) fn end_of_stored(name: &str) -> String {
    write(&("EOSE", name))
}

pub(super) fn closed(name: &str, why: &str) -> String {
    write(&("CLOSED", name, why))
}

pub(super) fn notice(why: &str) -> String {
    write(&("NOTICE", why))
}

pub(super) fn challenge(challenge: &str) -> String {
    write(&("AUTH", challenge))
}

pub(super) fn count(name: &str, count: usize) -> String {
    write(&("COUNT", name, serde_json::json!({ "count": count })))
}

/// What every event of a subscription is sent after.
pub(super) fn event_opening(name: &str) -> String {
    let mut text = write(&("EVENT", name));
    text.pop();
    text.push(',');
    text
}

fn write(message: &impl Serialize) -> String {
    // Texts and numbers can always be written.
    serde_json::to_string(message).unwrap_or_default()
}
