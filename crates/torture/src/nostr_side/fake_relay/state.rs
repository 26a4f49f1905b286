//! What a relay knows, and what it says.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::JoinHandle;

use super::rules::{Rules, Verdict};
use crate::nostr_side::event::Event;
use crate::nostr_side::filter::fits_any;
use crate::nostr_side::random::Random;

pub(super) struct Connection {
    out: UnboundedSender<Out>,
    /// What was said and is not written yet.
    pub(super) unwritten: Arc<AtomicUsize>,
    pub(super) subscriptions: BTreeMap<String, Vec<Value>>,
    author: Option<String>,
    /// Deliveries that wait for others, to be shuffled.
    gathered: Vec<String>,
}

pub(super) enum Out {
    Text(String),
    Later(Duration, String),
    HangUp,
}

/// One message of a client, and which connection said it.
#[derive(Clone, Debug)]
pub struct Heard {
    pub at: Instant,
    /// Since 1970.
    pub at_ms: u64,
    pub connection: usize,
    pub frame: Value,
}

pub(super) struct State {
    pub(super) rules: Rules,
    pub(super) stored: Vec<Event>,
    pub(super) heard: Vec<Heard>,
    /// The events among what was heard.
    pub(super) published: Vec<Event>,
    times: BTreeMap<String, usize>,
    pub(super) connections: BTreeMap<usize, Connection>,
    pub(super) connected: usize,
    pub(super) listener: Option<JoinHandle<()>>,
    random: Random,
}

impl Connection {
    pub(super) fn new(out: UnboundedSender<Out>, unwritten: Arc<AtomicUsize>) -> Self {
        Self { out, unwritten, subscriptions: BTreeMap::new(), author: None, gathered: Vec::new() }
    }

    pub(super) fn say(&self, text: String) {
        self.send(Out::Text(text));
    }

    fn send(&self, out: Out) {
        self.unwritten.fetch_add(1, Ordering::Relaxed);
        let _ = self.out.send(out);
    }

    pub(super) fn hang_up(&self) {
        self.send(Out::HangUp);
    }

    pub(super) fn has(&self, part: &str) -> bool {
        self.subscriptions.values().any(|filters| Value::from(filters.as_slice()).to_string().contains(part))
    }
}

impl State {
    pub(super) fn new() -> Self {
        Self {
            rules: Rules::default(),
            stored: Vec::new(),
            heard: Vec::new(),
            published: Vec::new(),
            times: BTreeMap::new(),
            connections: BTreeMap::new(),
            connected: 0,
            listener: None,
            random: Random::new(1),
        }
    }

    /// Keeps what a client said, and answers it.
    pub(super) fn hear(&mut self, number: usize, text: &str) {
        let Ok(frame) = serde_json::from_str::<Value>(text) else { return };
        let at_ms = u64::try_from(std::time::UNIX_EPOCH.elapsed().unwrap().as_millis()).unwrap();
        self.heard.push(Heard { at: Instant::now(), at_ms, connection: number, frame: frame.clone() });
        if frame[0] == "EVENT" {
            self.published.push(Event::parse(&frame[1]));
        }
        if !self.rules.deaf {
            self.answer(number, &frame, text.len());
        }
    }

    fn say(&self, number: usize, frame: &Value) {
        if let Some(connection) = self.connections.get(&number) {
            connection.say(frame.to_string());
        }
    }

    fn answer(&mut self, number: usize, frame: &Value, length: usize) {
        let authenticated = self.connections.get(&number).is_some_and(|connection| connection.author.is_some());
        let barred = self.rules.wants_auth && !authenticated;
        match frame[0].as_str().unwrap_or_default() {
            "REQ" => {
                let name = frame[1].as_str().unwrap_or_default().to_owned();
                let closes = self.rules.closes.or(barred.then_some("auth-required: who are you?"));
                if let Some(reason) = closes {
                    return self.say(number, &json!(["CLOSED", name, reason]));
                }
                self.open(number, name, frame.as_array().map_or_else(Vec::new, |frame| frame[2..].to_vec()));
            }
            "CLOSE" => {
                if let (Some(connection), Some(name)) = (self.connections.get_mut(&number), frame[1].as_str()) {
                    connection.subscriptions.remove(name);
                }
            }
            "EVENT" if self.rules.longest.is_some_and(|longest| length > longest) => {
                self.say(number, &json!(["OK", frame[1]["id"], false, "invalid: too large"]));
            }
            "EVENT" => self.take(number, &Event::parse(&frame[1]), barred),
            "AUTH" => {
                let event = Event::parse(&frame[1]);
                let right = event.kind == 22242 && event.problem().is_none() && event.tag("challenge") == "prove it";
                if let Some(connection) = self.connections.get_mut(&number).filter(|_| right) {
                    connection.author = Some(event.pubkey);
                }
                self.say(number, &json!(["OK", event.id, right, if right { "" } else { "invalid: not so" }]));
            }
            _ => {}
        }
    }

    fn open(&mut self, number: usize, name: String, filters: Vec<Value>) {
        // Whoever wants nothing of what is stored says so with a limit of 0; other limits are not kept to.
        let asked = filters.iter().filter(|filter| filter["limit"] != 0).cloned();
        let wanted: Vec<Value> = if self.rules.replays { asked.map(without_since).collect() } else { asked.collect() };
        let mut fitting: Vec<Event> = self.stored.iter().filter(|event| fits_any(&wanted, event)).cloned().collect();
        if self.rules.replays {
            self.random.shuffle(&mut fitting);
        }
        for event in fitting {
            for event in self.given(&event, number) {
                for _ in 0..self.rules.copies {
                    self.say(number, &json!(["EVENT", name, event]));
                }
            }
        }
        self.say(number, &json!(["EOSE", name]));
        if let Some(connection) = self.connections.get_mut(&number) {
            connection.subscriptions.insert(name, filters);
        }
    }

    fn take(&mut self, number: usize, event: &Event, barred: bool) {
        let times = self.times.entry(event.id.clone()).or_default();
        let verdict =
            if barred { Verdict::Refuse("auth-required: who are you?") } else { (self.rules.judge)(event, *times) };
        *times += 1;
        if !matches!(verdict, Verdict::Refuse(_) | Verdict::Ignore) && !self.stored.iter().any(|old| old.id == event.id)
        {
            self.stored.push(event.clone());
            self.deliver(event);
        }
        let (taken, words) = match verdict {
            Verdict::Accept => (true, ""),
            Verdict::Duplicate => (true, "duplicate: have it"),
            Verdict::Refuse(reason) => (false, reason),
            Verdict::Ignore => return,
            Verdict::HangUp => {
                if let Some(connection) = self.connections.remove(&number) {
                    connection.hang_up();
                }
                return;
            }
        };
        let Some(connection) = self.connections.get(&number) else { return };
        let text = json!(["OK", event.id, taken, words]).to_string();
        connection.send(match self.rules.thought {
            Duration::ZERO => Out::Text(text),
            thought => Out::Later(thought, text),
        });
    }

    /// What this connection gets for an event.
    fn given(&self, event: &Event, number: usize) -> Vec<Event> {
        match &self.rules.tamper {
            Some(tamper) => tamper(event, number),
            None => vec![event.clone()],
        }
    }

    pub(super) fn deliver(&mut self, event: &Event) {
        let mut said = Vec::new();
        for (number, connection) in &self.connections {
            for (name, filters) in &connection.subscriptions {
                if fits_any(filters, event) {
                    for event in self.given(event, *number) {
                        let text = json!(["EVENT", name, event]).to_string();
                        said.extend(std::iter::repeat_n((*number, text), self.rules.copies));
                    }
                }
            }
        }
        for (number, text) in said {
            self.bring(number, text);
        }
    }

    /// Delivers a frame, at the time and in the order of the rules.
    fn bring(&mut self, number: usize, text: String) {
        let Some(connection) = self.connections.get_mut(&number) else { return };
        if self.rules.shuffled > 1 {
            connection.gathered.push(text);
            if connection.gathered.len() >= self.rules.shuffled {
                self.let_go();
            }
            return;
        }
        connection.send(match self.rules.delay {
            Duration::ZERO => Out::Text(text),
            delay => Out::Later(delay, text),
        });
    }

    /// Sends what was gathered, shuffled.
    pub(super) fn let_go(&mut self) {
        for connection in self.connections.values_mut() {
            let mut gathered = std::mem::take(&mut connection.gathered);
            self.random.shuffle(&mut gathered);
            gathered.into_iter().for_each(|text| connection.say(text));
        }
    }

    /// Sends any text as an event to the chosen subscriptions; gives how many got it.
    pub(super) fn inject(&mut self, event: &str, chosen: impl Fn(&Value) -> bool) -> usize {
        let mut said = Vec::new();
        for (number, connection) in &self.connections {
            for (name, filters) in &connection.subscriptions {
                if filters.iter().any(&chosen) {
                    said.push((*number, format!("[\"EVENT\",{},{event}]", json!(name))));
                }
            }
        }
        let count = said.len();
        for (number, text) in said {
            self.bring(number, text);
        }
        count
    }
}

fn without_since(mut filter: Value) -> Value {
    if let Some(filter) = filter.as_object_mut() {
        filter.remove("since");
    }
    filter
}
