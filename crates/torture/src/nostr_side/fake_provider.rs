//! A provider played by the test, to see how a customer of ours takes what it and others say.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use nostr::key::Keys;
use nostr::nips::nip19::ToBech32 as _;
use serde_json::{Value, json};

use super::PATIENCE;
use super::customer::{FEEDBACK, REQUEST, RESPONSE};
use super::event::{Draft, Event, hex_key};
use super::fake_relay::FakeRelay;
use super::sealed;

#[derive(Clone)]
pub struct FakeProvider {
    pub keys: Keys,
    relay: FakeRelay,
    /// What it offers.
    pub tools: Value,
    /// Leaves out the tags that the specification does not have.
    pub bare: bool,
    seen: BTreeSet<String>,
}

/// One request, and whether it was sealed.
#[derive(Clone, Debug)]
pub struct Asked {
    pub event: Event,
    pub sealed: bool,
}

pub fn one_tool() -> Value {
    json!([{ "name": "say", "description": "Says it", "inputSchema": {
        "type": "object", "properties": { "text": { "type": "string" } }
    } }])
}

impl FakeProvider {
    /// A provider with one tool, announced on this relay.
    pub fn new(relay: &FakeRelay) -> Self {
        let provider = Self {
            keys: Keys::generate(),
            relay: relay.clone(),
            tools: one_tool(),
            bare: false,
            seen: BTreeSet::new(),
        };
        relay.publish(&provider.announcement().sign(&provider.keys));
        provider
    }

    pub fn announcement(&self) -> Draft {
        let content = json!({ "name": "sayer", "about": "Says things", "tools": self.tools });
        Draft::new(31990, content.to_string())
            .tag(&["d", "sayer"])
            .tag(&["k", "5910"])
            .tag(&["capabilities", "mcp-1.0"])
            .tag(&["t", "mcp"])
            .tag(&["t", "say"])
            .tag(&["encryption", "nip59"])
            .tag(&["relays", &self.relay.url()])
    }

    pub fn npub(&self) -> String {
        self.keys.public_key().to_bech32().unwrap()
    }

    /// Waits for the next request that runs something; lists are answered meanwhile.
    #[track_caller]
    pub fn execute_request(&mut self) -> Asked {
        self.attend(|_| ()).unwrap_or_else(|| panic!("nobody asked; the relay heard {:#?}", self.relay.heard()))
    }

    /// The same with a look at the list of tools before it is given out; ends when nobody asks any more.
    pub fn attend(&mut self, change: impl Fn(&mut Value)) -> Option<Asked> {
        loop {
            let asked = self.request()?;
            change(&mut self.tools);
            let list = match asked.event.tag("c") {
                "list-tools" => json!({ "tools": self.tools }),
                "list-resources" => json!({ "resources": [] }),
                "list-resource-templates" => json!({ "resourceTemplates": [] }),
                "list-prompts" => json!({ "prompts": [] }),
                _ => return Some(asked),
            };
            let response = self.response(&asked, &list);
            self.send(&asked, &response);
        }
    }

    fn request(&mut self) -> Option<Asked> {
        let me = hex_key(&self.keys);
        let event = self.relay.event_within(PATIENCE, |event| {
            let fits = event.kind == sealed::WRAP || event.kind == REQUEST;
            let open = event.kind == REQUEST && event.tags("p").is_empty() && event.has_tag("c", "list-tools");
            fits && (open || event.has_tag("p", &me)) && !self.seen.contains(&event.id)
        })?;
        self.seen.insert(event.id.clone());
        let sealed = event.kind == sealed::WRAP;
        Some(Asked { event: if sealed { sealed::open(&self.keys, &event).rumor } else { event }, sealed })
    }

    /// The response to a request, with all its tags.
    pub fn response(&self, asked: &Asked, body: &Value) -> Draft {
        let command = format!("{}-response", asked.event.tag("c"));
        if self.bare {
            return Draft::new(RESPONSE, body.to_string()).tag(&["c", &command]).tag(&["e", &asked.event.id]);
        }
        Draft::new(RESPONSE, body.to_string())
            .tag(&["c", &command])
            .tag(&["e", &asked.event.id, &self.relay.url()])
            .tag(&["p", &asked.event.pubkey])
            .tag(&["status", if body["isError"] == true { "error" } else { "success" }])
    }

    pub fn feedback(&self, asked: &Asked, status: &[&str]) -> Draft {
        let mut tag = vec!["status"];
        tag.extend_from_slice(status);
        Draft::new(FEEDBACK, "")
            .tag(&tag)
            .tag(&["e", &asked.event.id, &self.relay.url()])
            .tag(&["p", &asked.event.pubkey])
    }

    /// Sends an answer the way the request came.
    pub fn send(&self, asked: &Asked, draft: &Draft) {
        self.send_as(&self.keys, asked, draft);
    }

    /// Somebody else sends an answer the way the request came.
    pub fn send_as(&self, keys: &Keys, asked: &Asked, draft: &Draft) {
        if asked.sealed {
            self.relay.publish(&sealed::send(keys, &asked.event.pubkey, draft).1);
        } else {
            self.relay.publish(&draft.sign(keys));
        }
    }

    /// Answers with a text.
    pub fn say(&self, asked: &Asked, text: &str) {
        self.send(asked, &self.response(asked, &text_result(text)));
    }
}

/// A provider in a thread of its own, until this is dropped.
pub struct Serving {
    tools: Arc<Mutex<Value>>,
    is_over: Arc<AtomicBool>,
}

impl FakeProvider {
    /// Goes on by itself: what is to be run is given to `answer`.
    pub fn serve(mut self, answer: impl Fn(&Self, &Asked) + Send + 'static) -> Serving {
        let serving = Serving { tools: Arc::new(Mutex::new(self.tools.clone())), is_over: Arc::default() };
        let (tools, is_over) = (serving.tools.clone(), serving.is_over.clone());
        std::thread::spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                let current = |own: &mut Value| own.clone_from(&tools.lock().unwrap_or_else(PoisonError::into_inner));
                if let Some(asked) = self.attend(current) {
                    answer(&self, &asked);
                }
            }
        });
        serving
    }
}

impl Serving {
    /// Has other tools from now on.
    pub fn offer(&self, tools: &Value) {
        self.tools.lock().unwrap_or_else(PoisonError::into_inner).clone_from(tools);
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

pub fn text_result(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }], "isError": false })
}
