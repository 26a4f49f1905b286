//! A customer who knows only manifests and direct messages, and keeps everything that is sent to it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use nostr::key::Keys;
use serde_json::{Value, json};

use super::PATIENCE;
use super::client::Client;
use super::event::{Draft, Event, hex_key};
use super::log::Log;
use super::message::{self, CHAT, MESSAGE};
use super::sealed::{self, WRAP};

/// How a message travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Kind 4.
    Message,
    /// Kind 14 in a seal in a wrap.
    Sealed,
}

pub const BOTH: [Way; 2] = [Way::Message, Way::Sealed];

/// One answer: the kind 4 or 14, how it came, and what it says.
#[derive(Clone, Debug)]
pub struct Answer {
    pub event: Event,
    pub way: Way,
    pub text: String,
}

pub struct Messenger {
    pub keys: Keys,
    pub provider: String,
    pub link: Client,
    received: Log<Answer>,
}

/// The text of a request.
pub fn request(tool: &str, arguments: &Value) -> String {
    json!({ "tool_name": tool, "arguments": arguments }).to_string()
}

/// A tag that makes an id different from that of the same text in the same second.
pub fn salt() -> String {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    format!("test {}", COUNT.fetch_add(1, Ordering::Relaxed))
}

impl Messenger {
    pub fn new(relay: &str, provider: &str) -> Self {
        Self::with_keys(relay, provider, Keys::generate())
    }

    pub fn with_keys(relay: &str, provider: &str, keys: Keys) -> Self {
        let received: Log<Answer> = Log::default();
        let (kept, reader, me) = (received.clone(), keys.clone(), hex_key(&keys));
        let link = Client::connect(relay, move |_, event| {
            assert_eq!(event.problem(), None, "{event:?}");
            if event.kind == WRAP {
                let event = sealed::open(&reader, &event).rumor;
                let text = event.content.clone();
                kept.push(Answer { event, way: Way::Sealed, text });
            } else if event.has_tag("p", &hex_key(&reader)) {
                let text = message::decrypt(&reader, &event.pubkey, &event.content);
                let text = text.unwrap_or_else(|| panic!("cannot be decrypted: {event:?}"));
                kept.push(Answer { event, way: Way::Message, text });
            }
        });
        let plain = json!({ "kinds": [MESSAGE], "authors": [provider] });
        link.subscribe("answers", &[plain, json!({ "kinds": [WRAP], "#p": [me] })]);
        Self { keys, provider: provider.to_owned(), link, received }
    }

    pub fn pubkey(&self) -> String {
        hex_key(&self.keys)
    }

    /// A kind 4 or 14 with this text.
    pub fn draft(&self, way: Way, text: &str) -> Draft {
        match way {
            Way::Message => message::draft(&self.keys, &self.provider, text),
            Way::Sealed => Draft::new(CHAT, text).tag(&["p", &self.provider]).tag(&["salt", &salt()]),
        }
    }

    /// What is published for a draft, and the id that an answer to it names.
    pub fn finish(&self, way: Way, draft: &Draft) -> (String, Event) {
        match way {
            Way::Message => {
                let event = draft.sign(&self.keys);
                (event.id.clone(), event)
            }
            Way::Sealed => {
                let (rumor, wrap) = sealed::send(&self.keys, &self.provider, draft);
                (rumor.id, wrap)
            }
        }
    }

    /// Publishes a draft, which the relay must take.
    #[track_caller]
    pub fn post_draft(&self, way: Way, draft: &Draft) -> String {
        let (id, event) = self.finish(way, draft);
        let (taken, why) = self.link.publish(&event);
        assert!(taken, "the relay refused a request: {why}");
        id
    }

    #[track_caller]
    pub fn post(&self, way: Way, text: &str) -> String {
        self.post_draft(way, &self.draft(way, text))
    }

    #[track_caller]
    pub fn ask(&self, way: Way, text: &str) -> Answer {
        let id = self.post(way, text);
        self.answer(way, &id)
    }

    #[track_caller]
    pub fn call(&self, way: Way, tool: &str, arguments: &Value) -> Answer {
        self.ask(way, &request(tool, arguments))
    }

    /// Waits for the answer to a request, which must have come the same way and with exactly the tags of the contract.
    #[track_caller]
    pub fn answer(&self, way: Way, id: &str) -> Answer {
        self.answer_within(PATIENCE, way, id)
    }

    #[track_caller]
    pub fn answer_within(&self, patience: Duration, way: Way, id: &str) -> Answer {
        let find = |all: &[Answer]| all.iter().find(|answer| answer.event.has_tag("e", id)).cloned();
        let answer = self.received.wait(patience, find);
        let answer = answer.unwrap_or_else(|| panic!("no answer to {id}, but {:#?}", self.everything()));
        assert_eq!(answer.way, way, "{answer:?}");
        assert_eq!(answer.event.kind, if way == Way::Message { MESSAGE } else { CHAT }, "{answer:?}");
        assert_eq!(answer.event.pubkey, self.provider);
        let mut tags = answer.event.tags.clone();
        tags.sort();
        let tag = |name: &str, value: &str| vec![name.to_owned(), value.to_owned()];
        assert_eq!(tags, [tag("e", id), tag("p", &self.pubkey())], "{answer:?}");
        answer
    }

    /// All answers to a request until now.
    pub fn answers(&self, id: &str) -> Vec<Answer> {
        self.everything().into_iter().filter(|answer| answer.event.has_tag("e", id)).collect()
    }

    pub fn everything(&self) -> Vec<Answer> {
        self.received.look(<[Answer]>::to_vec)
    }

    /// Waits until everything that was sent before has been dealt with, whichever way it went.
    #[track_caller]
    pub fn barrier(&self) {
        for way in BOTH {
            assert_eq!(self.call(way, "no such tool", &json!({})).error(), "unknown_tool");
        }
    }
}

impl Answer {
    #[track_caller]
    pub fn body(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("no JSON ({error}): {self:?}"))
    }

    /// The error, which must be of the right form.
    #[track_caller]
    pub fn failure(&self) -> Value {
        let body = self.body();
        let members: Vec<&String> = body.as_object().unwrap_or_else(|| panic!("{self:?}")).keys().collect();
        assert_eq!(members, ["error"], "nothing beside the error: {body}");
        let error = body["error"].clone();
        for member in ["code", "message"] {
            assert!(error[member].as_str().is_some_and(|text| !text.is_empty()), "{member}: {body}");
        }
        for member in error.as_object().unwrap().keys() {
            assert!(["code", "message", "pointer", "content"].contains(&member.as_str()), "{member}: {body}");
        }
        error
    }

    /// Its code.
    #[track_caller]
    pub fn error(&self) -> String {
        self.failure()["code"].as_str().unwrap().to_owned()
    }

    /// The text of the only item of a result in the form of MCP.
    #[track_caller]
    pub fn said(&self) -> String {
        let body = self.body();
        assert!(body.get("error").is_none(), "{body}");
        body["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text in {body}")).to_owned()
    }
}
