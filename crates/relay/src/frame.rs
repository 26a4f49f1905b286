//! What a relay says, and what we say to it: the JSON arrays of NIP-01, NIP-42 and NIP-45.

use nostr::prelude::{Event, EventId, Filter};
use serde_json::value::RawValue;
use std::fmt::Write;

/// One message of a relay.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Said<'a> {
    Event { subscription: String, text: &'a str },
    Verdict { id: EventId, accepted: bool, message: String },
    EndOfStored { subscription: String },
    Closed { subscription: String, message: String },
    Notice(String),
    Challenge(String),
}

/// Reads one message; `None` for what we have no use for.
pub(crate) fn read(text: &str) -> Option<Said<'_>> {
    let parts: Vec<&RawValue> = serde_json::from_str(text).ok()?;
    let word = |index: usize| parts.get(index).and_then(|part| serde_json::from_str::<String>(part.get()).ok());
    match parts.first()?.get() {
        "\"EVENT\"" => Some(Said::Event { subscription: word(1)?, text: parts.get(2)?.get() }),
        "\"OK\"" => Some(Said::Verdict {
            // What is longer would be read as far as an id goes.
            id: word(1).filter(|id| id.len() == 64).and_then(|id| EventId::from_hex(&id).ok())?,
            accepted: parts.get(2)?.get() == "true",
            message: word(3).unwrap_or_default(),
        }),
        "\"EOSE\"" => Some(Said::EndOfStored { subscription: word(1)? }),
        "\"CLOSED\"" => Some(Said::Closed { subscription: word(1)?, message: word(2).unwrap_or_default() }),
        "\"NOTICE\"" => Some(Said::Notice(word(1)?)),
        "\"AUTH\"" => Some(Said::Challenge(word(1)?)),
        _ => None,
    }
}

pub(crate) fn publish(event: &Event) -> String {
    format!("[\"EVENT\",{}]", event.as_json())
}

/// The event in a frame that publishes it.
pub(crate) fn published(frame: &str) -> &str {
    frame.strip_prefix("[\"EVENT\",").and_then(|rest| rest.strip_suffix(']')).unwrap_or_default()
}

pub(crate) fn authenticate(event: &Event) -> String {
    format!("[\"AUTH\",{}]", event.as_json())
}

pub(crate) fn subscribe(subscription: &str, filters: &[Filter]) -> String {
    let mut out = format!("[\"REQ\",\"{subscription}\"");
    for filter in filters {
        // Writing to a String cannot fail.
        let _ = write!(out, ",{}", filter.as_json());
    }
    out.push(']');
    out
}

pub(crate) fn unsubscribe(subscription: &str) -> String {
    format!("[\"CLOSE\",\"{subscription}\"]")
}

#[cfg(test)]
mod tests {
    use super::{Said, read};
    use nostr::prelude::EventId;

    #[test]
    fn every_message_is_understood() {
        let id = "11".repeat(32);
        let cases = [
            (r#"["EVENT","r",{"a":1}]"#.to_owned(), Some(Said::Event { subscription: "r".into(), text: "{\"a\":1}" })),
            (
                format!(r#"["OK","{id}",false,"pow: 20"]"#),
                Some(Said::Verdict { id: EventId::from_hex(&id).unwrap(), accepted: false, message: "pow: 20".into() }),
            ),
            (r#"[ "EOSE" , "r" ]"#.to_owned(), Some(Said::EndOfStored { subscription: "r".into() })),
            (r#"["CLOSED","r"]"#.to_owned(), Some(Said::Closed { subscription: "r".into(), message: String::new() })),
            (r#"["NOTICE","hi"]"#.to_owned(), Some(Said::Notice("hi".into()))),
            (r#"["AUTH","x"]"#.to_owned(), Some(Said::Challenge("x".into()))),
            ("[]".to_owned(), None),
            ("{}".to_owned(), None),
            (r#"["OK","zz",true]"#.to_owned(), None),
            (format!(r#"["OK","{id}11",true]"#), None),
            (r#"["EVENT","r"]"#.to_owned(), None),
            (r#"["COUNT","r",{"count":1}]"#.to_owned(), None),
            ("[".repeat(100_000), None),
        ];
        for (text, expected) in cases {
            assert_eq!(read(&text), expected, "{}", &text[..text.len().min(80)]);
        }
    }
}
