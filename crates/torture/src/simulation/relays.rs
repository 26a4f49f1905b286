//! Relays: they keep what they are given, mostly, and say what they did, sometimes.

use super::world::{Shared, World};
use futures_util::{Sink, Stream};
use nostr::prelude::{Event, RelayUrl, UnsignedEvent};
use nostr::types::url::Url;
use rialto_relay::socket::{Dial, Duplex, Later, Message};
use rialto_wire::dvmcp::answer::{self, Answer, Outcome, Status};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::{Bytes, Error};

pub(super) const COUNT: usize = 3;

/// Relays that must have an answer.
pub(super) const QUORUM: usize = 2;

/// The one that refuses for good, where any does: the others are enough.
const HARSH: usize = 2;

pub(super) static URLS: LazyLock<[RelayUrl; COUNT]> =
    LazyLock::new(|| std::array::from_fn(|relay| RelayUrl::parse(&format!("ws://relay{relay}")).unwrap()));

/// What an event of the provider says about which request.
#[derive(Clone, Debug)]
pub(super) enum Said {
    /// A price, and the number of the invoice.
    Price(usize, Option<usize>),
    Response {
        job: usize,
        succeeded: bool,
    },
    Other,
}

struct Line {
    number: u64,
    out: mpsc::UnboundedSender<Message>,
}

#[derive(Default)]
pub(super) struct Relay {
    is_down: bool,
    is_mute: bool,
    line: Option<Line>,
    lines: u64,
    /// It has our subscription, for events from then on.
    subscribed: Option<u64>,
    pub(super) requests: Vec<usize>,
    /// Events of the provider, by their ids.
    pub(super) events: BTreeSet<String>,
}

impl Relay {
    pub(super) fn hang_up(&mut self) {
        (self.line, self.subscribed) = (None, None);
    }
}

impl World {
    /// Goes away for a while, or says nothing for a while.
    pub(super) fn disturb(&mut self, relay: usize, is_outage: bool, wait: u64) {
        let one = &mut self.relays[relay];
        if is_outage {
            one.is_down = true;
            one.hang_up();
        } else {
            one.is_mute = true;
        }
        self.counts.faults += 1;
        self.trace.add(self.now, NAMES[relay], None, if is_outage { "goes away" } else { "falls silent" });
        self.after(wait, move |world| {
            let one = &mut world.relays[relay];
            if is_outage {
                one.is_down = false;
            } else {
                one.is_mute = false;
            }
            world.trace.add(world.now, NAMES[relay], None, "is back");
        });
    }

    /// It is there again, and everybody connects anew.
    pub(super) fn settle_relay(&mut self, relay: usize) {
        let one = &mut self.relays[relay];
        (one.is_down, one.is_mute) = (false, false);
        one.hang_up();
    }

    pub(super) fn travel(&mut self) -> u64 {
        self.between(1, self.faults.delay)
    }

    fn connect(&mut self, relay: usize) -> Option<(u64, mpsc::UnboundedReceiver<Message>)> {
        let one = &mut self.relays[relay];
        if one.is_down {
            return None;
        }
        let (out, incoming) = mpsc::unbounded_channel();
        one.lines += 1;
        one.subscribed = None;
        one.line = Some(Line { number: one.lines, out });
        Some((one.lines, incoming))
    }

    fn is_connected(&self, relay: usize, line: u64) -> bool {
        self.relays[relay].line.as_ref().is_some_and(|own| own.number == line)
    }

    /// Says something to the provider, if it is still there when it arrives.
    fn say(&mut self, relay: usize, line: u64, message: Message) {
        let travel = self.travel();
        self.after(travel, move |world| {
            if world.is_connected(relay, line)
                && let Some(own) = &world.relays[relay].line
            {
                let _ = own.out.send(message);
            }
        });
    }

    /// The provider says something.
    fn told(&mut self, relay: usize, line: u64, message: Message) {
        if self.crashes() || !self.is_connected(relay, line) {
            return;
        }
        let travel = self.travel();
        self.after(travel, move |world| {
            if !world.is_connected(relay, line) || world.relays[relay].is_mute {
                return;
            }
            match message {
                Message::Text(text) => world.read(relay, line, text.as_str()),
                Message::Ping(_) => world.say(relay, line, Message::Pong(Bytes::new())),
                _ => {}
            }
        });
    }

    fn read(&mut self, relay: usize, line: u64, text: &str) {
        if text.starts_with("[\"EVENT\"") {
            return self.published(relay, line, text);
        }
        let Ok(Value::Array(parts)) = serde_json::from_str(text) else { return };
        if parts[0] != "REQ" {
            return;
        }
        let name = parts[1].as_str().unwrap();
        if self.fails(self.faults.refused) {
            return self.say(relay, line, Message::text(format!("[\"CLOSED\",\"{name}\",\"error: not now\"]")));
        }
        let wants_requests =
            |filter: &&Value| filter["kinds"].as_array().is_some_and(|kinds| kinds.contains(&5910.into()));
        let since = parts[2..].iter().filter(wants_requests).filter_map(|filter| filter["since"].as_u64()).min();
        self.relays[relay].subscribed = since;
        for job in self.relays[relay].requests.clone() {
            if since.is_some_and(|since| self.jobs[job].made >= since) {
                self.say(relay, line, request(&self.jobs[job].text));
            }
        }
        // After what is stored, as relays do, however long that takes.
        let travel = self.faults.delay;
        let end = Message::text(format!("[\"EOSE\",\"{name}\"]"));
        self.after(travel, move |world| world.say(relay, line, end));
    }

    /// The provider publishes an event.
    fn published(&mut self, relay: usize, line: u64, text: &str) {
        let at = text.find("\"id\":\"").unwrap() + 6;
        let id = text[at..at + 64].to_owned();
        if !self.said.contains_key(&id) {
            let said = self.understood(&text[9..text.len() - 1]);
            self.said.insert(id.clone(), said.clone());
            if let Said::Response { job, succeeded } = said {
                super::rules::answered(self, job, succeeded);
            }
        }
        if self.fails(self.faults.lost) {
            return;
        }
        let verdict = |accepted: bool, words: &str| Message::text(format!("[\"OK\",\"{id}\",{accepted},\"{words}\"]"));
        if self.fails(self.faults.refused) {
            let words = match self.chance.below(4) {
                0 if relay == HARSH => "blocked: no",
                1 if relay == HARSH => "invalid: no",
                0 | 1 => "rate-limited: slow down",
                _ => "error: try again",
            };
            return self.say(relay, line, verdict(false, words));
        }
        let is_new = self.relays[relay].events.insert(id.clone());
        if is_new
            && let Some(Said::Price(job, Some(bill))) = self.said.get(&id).cloned()
            && !self.fails(self.faults.lost)
        {
            let travel = self.travel();
            self.after(travel, move |world| world.charged(job, bill));
        }
        if self.fails(self.faults.silent) {
            return;
        }
        let words = if is_new { "" } else { "duplicate: have it" };
        self.say(relay, line, verdict(true, words));
        if self.fails(self.faults.doubled) {
            self.say(relay, line, verdict(true, words));
        }
    }

    fn understood(&mut self, text: &str) -> Said {
        let Event { id, pubkey, created_at, kind, tags, content, .. } = Event::from_json(text).unwrap();
        let event = UnsignedEvent { id: Some(id), pubkey, created_at, kind, tags, content };
        let Some((request, read)) = answer::read(&event) else { return Said::Other };
        let Some(job) = self.number(request.as_bytes()) else { return Said::Other };
        match read {
            Answer::Feedback(feedback) if feedback.status == Status::PaymentRequired => {
                let bill = feedback.invoice.and_then(|text| text.strip_prefix("lnsim")?.parse().ok());
                Said::Price(job, bill)
            }
            Answer::Response { outcome, .. } => Said::Response { job, succeeded: outcome == Some(Outcome::Success) },
            _ => Said::Other,
        }
    }

    /// A customer publishes a request.
    pub(super) fn requested(&mut self, job: usize, relay: usize) {
        let one = &mut self.relays[relay];
        if one.is_down || one.is_mute || self.fails(self.faults.lost) {
            return;
        }
        self.trace.add(self.now, "comes to", Some(job), NAMES[relay]);
        let one = &mut self.relays[relay];
        if !one.requests.contains(&job) {
            one.requests.push(job);
        }
        let Some(line) = one.line.as_ref().map(|line| line.number).filter(|_| one.subscribed.is_some()) else { return };
        if self.fails(self.faults.withheld) {
            return;
        }
        let copies = if self.fails(self.faults.doubled) { 2 } else { 1 };
        for _ in 0..copies {
            self.say(relay, line, request(&self.jobs[job].text));
        }
    }
}

const NAMES: [&str; COUNT] = ["relay 0", "relay 1", "relay 2"];

fn request(text: &str) -> Message {
    Message::text(format!("[\"EVENT\",\"rialto\",{text}]"))
}

#[derive(Debug)]
pub(super) struct Dialler(pub(super) Arc<Shared>);

impl Dial for Dialler {
    fn dial<'a>(&'a self, url: &'a RelayUrl) -> Later<'a, io::Result<Box<dyn Duplex>>> {
        let relay = URLS.iter().position(|own| own == url).unwrap();
        Box::pin(async move {
            let wait = {
                let mut world = self.0.enter();
                (!world.crashes()).then(|| world.travel())
            };
            self.0.answer(wait.map(|wait| (wait, ()))).await;
            let connected = self.0.enter().connect(relay);
            let Some((line, incoming)) = connected else {
                return Err(io::Error::from(io::ErrorKind::ConnectionRefused));
            };
            Ok(Box::new(Socket { shared: self.0.clone(), relay, line, incoming }) as Box<dyn Duplex>)
        })
    }

    fn addresses<'a>(&'a self, _url: &'a Url) -> Later<'a, io::Result<Option<Vec<SocketAddr>>>> {
        Box::pin(async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            Err(io::Error::other("nobody says what they are"))
        })
    }
}

struct Socket {
    shared: Arc<Shared>,
    relay: usize,
    line: u64,
    incoming: mpsc::UnboundedReceiver<Message>,
}

impl Stream for Socket {
    type Item = Result<Message, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.incoming.poll_recv(context).map(|message| message.map(Ok))
    }
}

impl Sink<Message> for Socket {
    type Error = Error;

    fn poll_ready(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn start_send(self: Pin<&mut Self>, message: Message) -> Result<(), Error> {
        self.shared.enter().told(self.relay, self.line, message);
        Ok(())
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }
}
