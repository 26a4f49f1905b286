//! A relay on loopback and a provider that does what a test tells it.

#![allow(dead_code, reason = "not every test file uses all of it")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should panic")]

pub(crate) mod wallet;

use nostr::prelude::{EventId, Filter, Keys, Kind, PublicKey, RelayUrl, Tags, Timestamp, UnsignedEvent};
use rialto_consumer::announcements::Announcements;
use rialto_consumer::customer::Customer;
use rialto_consumer::reference::Target;
use rialto_consumer::remote::{Remote, Terms};
use rialto_relay::embedded::{Options, Relay};
use rialto_relay::pool::{self, Arrival, Pool, Watch};
use rialto_relay::seal;
use rialto_relay::sign::sign;
use rialto_relay::status::State;
use rialto_wire::dvmcp;
use rialto_wire::dvmcp::announcement::{self, Offer};
use rialto_wire::dvmcp::answer::{Outcome, Progress, Writer};
use rialto_wire::dvmcp::request::{self, OpenJobs};
use rialto_wire::request::Command;
use rialto_wire::request::{Body, Reading, Request};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc;

/// Long enough for a machine under load; nothing that works takes this long.
pub(crate) const SOON: Duration = Duration::from_secs(20);

pub(crate) async fn relay() -> Relay {
    Relay::start(Options::default()).await.unwrap()
}

pub(crate) fn url(relay: &Relay) -> RelayUrl {
    RelayUrl::parse(&relay.url()).unwrap()
}

/// A customer with a key of its own.
pub(crate) fn customer(relays: &[&Relay]) -> Customer {
    let urls: Vec<_> = relays.iter().map(|relay| url(relay)).collect();
    Customer::start(Keys::generate(), &urls, Announcements::in_memory())
}

pub(crate) fn target(provider: &Provider) -> Target {
    Target { provider: provider.key(), id: None, relays: Vec::new() }
}

pub(crate) async fn open(customer: &Customer, provider: &Provider, terms: Terms) -> Remote {
    Remote::open(customer, &target(provider), terms).await.unwrap()
}

/// Waits for something that must come.
pub(crate) async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(SOON, what).await.expect("it did not come")
}

pub(crate) fn tool(name: &str, description: &str) -> Value {
    let schema = json!({ "type": "object", "properties": { "text": { "type": "string" } } });
    json!({ "name": name, "description": description, "inputSchema": schema })
}

/// A request that has come in.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) request: Request,
    pub(crate) sealed: bool,
    pub(crate) event: UnsignedEvent,
}

impl Asked {
    pub(crate) fn id(&self) -> EventId {
        self.request.address.request
    }

    pub(crate) fn command(&self) -> Command {
        self.request.address.command.unwrap()
    }
}

/// A provider. It lists its tools by itself; every other request waits for the test.
pub(crate) struct Provider {
    pub(crate) keys: Keys,
    pub(crate) pool: Pool,
    pub(crate) tools: Arc<Mutex<Vec<Value>>>,
    asked: tokio::sync::Mutex<mpsc::UnboundedReceiver<Asked>>,
}

impl Provider {
    pub(crate) async fn start(relay: &Relay, tools: Vec<Value>) -> Self {
        Self::with_keys(Keys::generate(), relay, tools).await
    }

    pub(crate) async fn with_keys(keys: Keys, relay: &Relay, tools: Vec<Value>) -> Self {
        let me = keys.public_key();
        let spread = Duration::from_secs(120);
        let mut watches: Vec<Watch> =
            dvmcp::provider_filters(me, OpenJobs::Ignored).into_iter().map(|filter| Watch { filter, spread }).collect();
        let wraps = Filter::new().kind(Kind::GiftWrap).pubkey(me);
        watches.push(Watch { filter: wraps, spread: Duration::from_secs(seal::SPREAD_SECS) });
        let (pool, arrivals) = Pool::start(&[url(relay)], watches, pool::Options::default());
        assert!(pool.wait(SOON, |all| all.iter().all(|one| one.state == State::Subscribed)).await);
        let (send, asked) = mpsc::unbounded_channel();
        let tools = Arc::new(Mutex::new(tools));
        tokio::spawn(listen(keys.clone(), pool.clone(), tools.clone(), arrivals, send));
        Self { keys, pool, tools, asked: tokio::sync::Mutex::new(asked) }
    }

    pub(crate) fn key(&self) -> PublicKey {
        self.keys.public_key()
    }

    /// Announces itself, and waits until the relay has it.
    pub(crate) async fn announce(&self, name: &str, sealed: bool, at: u64) {
        let tools: Vec<Vec<u8>> = self.tools.lock().unwrap().iter().map(|tool| tool.to_string().into_bytes()).collect();
        let offer = Offer {
            id: "main",
            name,
            about: "for tests",
            tools: &tools,
            resources: &[],
            templates: &[],
            prompts: &[],
            relays: &[],
            mints: &[],
        };
        let mut event = offer.write(self.key(), Timestamp::from(at));
        if !sealed {
            event.tags =
                Tags::from_list(event.tags.to_vec().into_iter().filter(|tag| tag.kind() != "encryption").collect());
        }
        self.publish(event).await;
    }

    /// Publishes an event of its own, and waits until the relay has it.
    pub(crate) async fn publish(&self, event: UnsignedEvent) {
        let report = soon(self.pool.publish(&sign(&self.keys, event)).finished()).await;
        assert_eq!(report.accepted, 1, "{report:?}");
    }

    /// The next request that is not answered by itself.
    pub(crate) async fn next(&self) -> Asked {
        soon(async { self.asked.lock().await.recv().await }).await.unwrap()
    }

    pub(crate) fn writer(&self) -> Writer {
        Writer { provider: self.key(), relay: None, now: Timestamp::now() }
    }

    /// Sends an answer in the way that the request came.
    pub(crate) fn send(&self, asked: &Asked, event: UnsignedEvent) {
        send(&self.keys, &self.pool, asked.request.address.customer, asked.sealed, event);
    }

    pub(crate) fn progress(&self, asked: &Asked, progress: &Progress<'_>) {
        self.send(asked, self.writer().feedback(&asked.request.address, progress));
    }

    pub(crate) fn respond(&self, asked: &Asked, content: &str) {
        self.send(asked, self.writer().response(&asked.request.address, Outcome::Success, content));
    }

    pub(crate) fn text(&self, asked: &Asked, text: &str) {
        self.respond(asked, &json!({ "content": [{ "type": "text", "text": text }] }).to_string());
    }
}

fn send(keys: &Keys, pool: &Pool, customer: PublicKey, sealed: bool, event: UnsignedEvent) {
    let event = if sealed { seal::close(keys, &customer, event, Timestamp::now()).unwrap() } else { sign(keys, event) };
    pool.publish(&event);
}

async fn listen(
    keys: Keys,
    pool: Pool,
    tools: Arc<Mutex<Vec<Value>>>,
    mut arrivals: mpsc::Receiver<Arrival>,
    asked: mpsc::UnboundedSender<Asked>,
) {
    while let Some(arrival) = arrivals.recv().await {
        let Arrival::Event { event, .. } = arrival else { continue };
        let sealed = seal::is_wrap(&event);
        let event: UnsignedEvent = if sealed {
            let Ok(inner) = seal::open(&keys, &event) else { continue };
            inner
        } else {
            (*event).into()
        };
        let Reading::Request(request) = request::read(&event, &keys.public_key(), OpenJobs::Ignored) else { continue };
        let writer = Writer { provider: keys.public_key(), relay: None, now: Timestamp::now() };
        let list = match (&request.body, request.address.command) {
            (Body::List { cursor }, Some(Command::ListTools)) => {
                let tools: Vec<Vec<u8>> =
                    tools.lock().unwrap().iter().map(|tool| tool.to_string().into_bytes()).collect();
                let start = cursor.as_ref().map_or(0, |cursor| cursor.parse().unwrap());
                // Small pages, so that paging is needed.
                announcement::page("tools", &tools, start, 2000)
            }
            (Body::List { .. }, Some(Command::ListResources)) => {
                "{\"resources\":[{\"uri\":\"test://a\",\"name\":\"a\"}]}".into()
            }
            (Body::List { .. }, Some(Command::ListResourceTemplates)) => "{\"resourceTemplates\":[]}".into(),
            (Body::List { .. }, Some(Command::ListPrompts)) => "{\"prompts\":[{\"name\":\"greet\"}]}".into(),
            _ => {
                let _ = asked.send(Asked { request: *request, sealed, event });
                continue;
            }
        };
        let response = writer.response(&request.address, Outcome::Success, list);
        send(&keys, &pool, request.address.customer, sealed, response);
    }
}
