//! A provider of the manifest wire played by the test, to see what a customer of ours sends and how it takes answers.

use std::collections::BTreeSet;
use std::time::Duration;

use nostr::key::Keys;
use nostr::nips::nip19::ToBech32 as _;
use serde_json::{Value, json};

use super::PATIENCE;
use super::event::{Draft, Event, hex_key, now};
use super::fake_relay::FakeRelay;
use super::message::{self, CHAT, MESSAGE};
use super::sealed::{self, WRAP};

/// How a request came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    SealedDvmcp,
    SealedMessage,
    Message,
    PlainDvmcp,
}

/// A request, and its text.
#[derive(Clone, Debug)]
pub struct Order {
    pub event: Event,
    pub route: Route,
    pub text: String,
}

pub struct Shop {
    pub keys: Keys,
    pub relay: FakeRelay,
    /// What it offers, as a manifest has it.
    pub tools: Value,
    seen: BTreeSet<String>,
}

/// One tool with both schemas.
pub fn forecast_tool() -> Value {
    json!({
        "tool_name": "forecast",
        "description": "The weather in a city.",
        "input_schema": {
            "type": "object",
            "properties": { "city": { "type": "string" }, "days": { "type": "integer" } },
            "required": ["city"]
        },
        "output_schema": { "type": "object", "properties": { "forecast": { "type": "string" } }, "required": ["forecast"] }
    })
}

/// One tool that answers with words.
pub fn say_tool() -> Value {
    json!({
        "tool_name": "say", "description": "Says it",
        "input_schema": { "type": "object", "properties": { "text": { "type": "string" } } },
        "output_schema": super::desk::content_schema()
    })
}

impl Shop {
    /// A shop that nobody knows of yet.
    pub fn closed(relay: &FakeRelay) -> Self {
        let tools = json!([forecast_tool(), say_tool()]);
        Self { keys: Keys::generate(), relay: relay.clone(), tools, seen: BTreeSet::new() }
    }

    /// A shop with a manifest that says it reads this (`"nip04 nip59"`); nothing for no such tag.
    pub fn new(relay: &FakeRelay, encryption: &str) -> Self {
        let shop = Self::closed(relay);
        shop.publish(&shop.manifest(encryption));
        shop
    }

    pub fn pubkey(&self) -> String {
        hex_key(&self.keys)
    }

    pub fn npub(&self) -> String {
        self.keys.public_key().to_bech32().unwrap()
    }

    pub fn publish(&self, draft: &Draft) {
        self.relay.publish(&draft.sign(&self.keys));
    }

    pub fn manifest(&self, encryption: &str) -> Draft {
        let content =
            json!({ "mcp_version": "0.1", "name": "weather", "description": "Forecasts", "tools": self.tools });
        let draft = Draft::new(30200, content.to_string()).tag(&["d", "weather"]).tag(&["t", "mcp"]);
        let draft = draft.tag(&["relays", &self.relay.url()]);
        if encryption.is_empty() { draft } else { draft.tag(&["encryption", encryption]) }
    }

    /// The same service as DVMCP announces it.
    pub fn announcement(&self, sealed: bool) -> Draft {
        let content = json!({ "name": "weather", "about": "Forecasts", "tools": self.dvmcp_tools() });
        let draft = Draft::new(31990, content.to_string())
            .tag(&["d", "weather"])
            .tag(&["k", "5910"])
            .tag(&["capabilities", "mcp-1.0"])
            .tag(&["t", "mcp"])
            .tag(&["relays", &self.relay.url()]);
        if sealed { draft.tag(&["encryption", "nip59"]) } else { draft }
    }

    fn dvmcp_tools(&self) -> Value {
        let tool = |tool: &Value| {
            let mut tool = tool.clone();
            for (old, new) in
                [("tool_name", "name"), ("input_schema", "inputSchema"), ("output_schema", "outputSchema")]
            {
                if let Some(value) = tool.as_object_mut().unwrap().remove(old) {
                    tool[new] = value;
                }
            }
            if tool["outputSchema"] == super::desk::content_schema() {
                tool.as_object_mut().unwrap().remove("outputSchema");
            }
            tool
        };
        self.tools.as_array().unwrap().iter().map(tool).collect()
    }

    /// Waits for the next call.
    #[track_caller]
    pub fn order(&mut self) -> Order {
        let order = self.order_within(PATIENCE);
        order.unwrap_or_else(|| panic!("nobody asked; the relay heard {:#?}", self.relay.heard()))
    }

    /// The next call, if there is one by then; lists of DVMCP are answered meanwhile.
    pub fn order_within(&mut self, patience: Duration) -> Option<Order> {
        loop {
            let order = self.next(patience)?;
            let dvmcp = [Route::SealedDvmcp, Route::PlainDvmcp].contains(&order.route);
            let list = match dvmcp.then(|| order.event.tag("c")) {
                Some("list-tools") => json!({ "tools": self.dvmcp_tools() }),
                Some("list-resources") => json!({ "resources": [] }),
                Some("list-resource-templates") => json!({ "resourceTemplates": [] }),
                Some("list-prompts") => json!({ "prompts": [] }),
                _ => return Some(order),
            };
            self.say(&order, &list);
        }
    }

    fn next(&mut self, patience: Duration) -> Option<Order> {
        let me = self.pubkey();
        let event = self.relay.event_within(patience, |event| {
            [MESSAGE, WRAP, 5910].contains(&event.kind) && event.has_tag("p", &me) && !self.seen.contains(&event.id)
        })?;
        self.seen.insert(event.id.clone());
        assert_eq!(event.problem(), None, "{event:?}");
        Some(match event.kind {
            WRAP => {
                let event = sealed::open(&self.keys, &event).rumor;
                let route = if event.kind == CHAT { Route::SealedMessage } else { Route::SealedDvmcp };
                Order { text: event.content.clone(), event, route }
            }
            MESSAGE => {
                let text = message::decrypt(&self.keys, &event.pubkey, &event.content);
                let text = text.unwrap_or_else(|| panic!("cannot be decrypted: {event:?}"));
                Order { event, route: Route::Message, text }
            }
            _ => Order { text: event.content.clone(), event, route: Route::PlainDvmcp },
        })
    }

    /// An answer in kind by anybody, with any tags, from any time.
    pub fn letter(&self, from: &Keys, order: &Order, text: &str, tags: &[&[&str]], at: i64) -> Event {
        let customer = &order.event.pubkey;
        let tagged = |draft: Draft| tags.iter().fold(draft.at(at), |draft, tag| draft.tag(tag));
        match order.route {
            Route::Message => tagged(Draft::new(MESSAGE, message::encrypt(from, customer, text))).sign(from),
            Route::SealedMessage => sealed::send(from, customer, &tagged(Draft::new(CHAT, text))).1,
            Route::PlainDvmcp => tagged(Draft::new(6910, text)).sign(from),
            Route::SealedDvmcp => sealed::send(from, customer, &tagged(Draft::new(6910, text))).1,
        }
    }

    /// Answers with any text, as it should be.
    pub fn say_text(&self, order: &Order, text: &str) {
        let mut tags = vec![vec!["p", &order.event.pubkey], vec!["e", &order.event.id]];
        let command = order.event.tags("c").first().map(|tag| format!("{}-response", tag[0]));
        if let Some(command) = &command {
            tags.push(vec!["c", command]);
            tags.push(vec!["status", "success"]);
        }
        let tags: Vec<&[&str]> = tags.iter().map(Vec::as_slice).collect();
        self.relay.publish(&self.letter(&self.keys, order, text, &tags, now()));
    }

    pub fn say(&self, order: &Order, body: &Value) {
        self.say_text(order, &body.to_string());
    }

    /// Answers as those do who do not use `e`.
    pub fn say_untagged(&self, order: &Order, body: &Value, at: i64) {
        let tags: [&[&str]; 1] = [&["p", &order.event.pubkey]];
        self.relay.publish(&self.letter(&self.keys, order, &body.to_string(), &tags, at));
    }
}

impl Order {
    #[track_caller]
    pub fn body(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("no JSON ({error}): {self:?}"))
    }
}
