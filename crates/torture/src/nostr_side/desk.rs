//! The usual scene for messages: a relay that lets everything through, a provider in front of the actor, a customer.

use nostr::key::Keys;
use serde_json::{Value, json};

use super::customer::Customer;
use super::event::Event;
use super::fake_relay::FakeRelay;
use super::message::MESSAGE;
use super::messenger::Messenger;
use super::sealed::WRAP;
use super::world::{Provider, World};

pub struct Desk {
    pub customer: Messenger,
    pub provider: Provider,
    pub relay: FakeRelay,
    pub world: World,
}

/// Nothing is refused for being too much.
pub const UNLIMITED: [&str; 6] = ["--rate-per-key", "0", "--max-running", "200", "--max-running-per-key", "200"];

impl Desk {
    #[track_caller]
    pub fn new(flags: &[&str]) -> Self {
        Self::with_actor(flags, &["weather"])
    }

    #[track_caller]
    pub fn unlimited() -> Self {
        Self::new(&UNLIMITED)
    }

    #[track_caller]
    pub fn with_actor(flags: &[&str], options: &[&str]) -> Self {
        let (relay, world) = (FakeRelay::start(), World::new());
        let provider = world.serve_actor(&[&relay.url()], flags, options);
        let customer = Messenger::new(&relay.url(), &provider.pubkey);
        Self { customer, provider, relay, world }
    }

    pub fn another_customer(&self) -> Messenger {
        Messenger::new(&self.relay.url(), &self.provider.pubkey)
    }

    /// A customer of the other wire.
    pub fn dvmcp_customer(&self) -> Customer {
        Customer::new(&self.relay.url(), &self.provider.pubkey)
    }

    /// Ends the provider as a power cut would, and starts it again.
    #[track_caller]
    pub fn kill_and_restart(&mut self, flags: &[&str]) {
        self.provider.process.kill();
        let before = self.provider.pubkey.clone();
        self.provider = self.world.serve_actor(&[&self.relay.url()], flags, &["weather"]);
        assert_eq!(self.provider.pubkey, before);
    }

    /// Waits for a manifest that fits.
    #[track_caller]
    pub fn manifest(&self, what: &str, fits: impl Fn(&Event) -> bool) -> Event {
        let me = &self.provider.pubkey;
        self.relay.wait_for_event(what, |event| event.kind == MANIFEST && event.pubkey == *me && fits(event))
    }

    /// Gives an event to the provider whatever it has subscribed to.
    #[track_caller]
    pub fn inject(&self, event: &Event) {
        let mine = format!("\"#p\":[\"{}\"]", self.provider.pubkey);
        assert!(self.relay.inject(&mine, &event.json()) > 0, "nobody listens");
    }

    /// Every message that the provider has sent until now, of whatever form.
    pub fn sent(&self) -> Vec<Event> {
        let me = &self.provider.pubkey;
        let is_message = |event: &Event| match event.kind {
            // Nobody else publishes wraps for others than the provider.
            WRAP => !event.has_tag("p", me),
            MESSAGE | 14 | 5910 | 6910 | 7000 => event.pubkey == *me,
            _ => false,
        };
        self.relay.published().into_iter().filter(is_message).collect()
    }

    /// Gives these to the provider and checks that nothing comes of them.
    #[track_caller]
    pub fn is_silent_about(&self, events: &[(&str, Event)]) {
        self.customer.barrier();
        let (sent, effects) = (self.sent().len(), self.world.effects());
        for (_, event) in events {
            self.inject(event);
        }
        self.customer.barrier();
        let more: Vec<Event> = self.sent().into_iter().skip(sent).collect();
        let names: Vec<&str> = events.iter().map(|(what, _)| *what).collect();
        assert_eq!(more.len(), 2, "nothing but the answers to two later questions; after {names:?}: {more:#?}");
        assert_eq!(self.world.effects(), effects, "something was run; after {names:?}");
    }
}

pub const MANIFEST: u32 = 30200;

/// The key of a service, from its files.
pub fn key_of(world: &World, who: &str, pubkey: &str) -> Keys {
    let mut directories = vec![world.home(who)];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap().flatten() {
            if entry.path().is_dir() {
                directories.push(entry.path());
            } else if let Ok(text) = std::fs::read_to_string(entry.path())
                && let Ok(keys) = Keys::parse(text.trim())
                && keys.public_key().to_hex() == pubkey
            {
                return keys;
            }
        }
    }
    panic!("no key of {who}")
}

/// A tool of a manifest.
#[track_caller]
pub fn tool_of(manifest: &Event, name: &str) -> Value {
    let body = manifest.body();
    let tools = body["tools"].as_array().unwrap_or_else(|| panic!("no tools: {body}"));
    tools.iter().find(|tool| tool["tool_name"] == name).unwrap_or_else(|| panic!("no {name}: {body}")).clone()
}

/// The output schema of tools that have none of their own.
pub fn content_schema() -> Value {
    json!({
        "type": "object",
        "properties": { "content": { "type": "array", "items": {
            "type": "object", "properties": { "type": { "type": "string" } }, "required": ["type"]
        } } },
        "required": ["content"]
    })
}
