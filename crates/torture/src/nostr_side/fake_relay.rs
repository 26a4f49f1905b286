//! A relay that does what the test says: well-behaved at first, and then as hostile as wanted.
//!
//! It checks nothing, so that forged and stale events reach the provider, and keeps everything that is said to it.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use tokio_tungstenite::accept_async;
use tokio_tungstenite::tungstenite::Message;

use super::event::Event;
use super::filter::fits_any;
use super::{PATIENCE, runtime};

/// What happens to an event that somebody publishes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Stored, delivered and confirmed.
    Accept,
    /// `OK false` with this reason.
    Refuse(&'static str),
    /// Nothing at all is said, and nothing stored.
    Ignore,
    /// Stored and delivered, but called a duplicate.
    Duplicate,
    /// The connection is cut before anything is said; the event is stored.
    HangUp,
}

type Judge = Arc<dyn Fn(&Event, usize) -> Verdict + Send + Sync>;

/// How it behaves. Changes take effect at once.
pub struct Rules {
    /// Decides about each event; the number counts how often this id has come before.
    pub judge: Judge,
    /// How often each event is delivered to each subscription.
    pub copies: usize,
    /// How long each delivery is held back.
    pub delay: Duration,
    /// Subscriptions are closed with this reason.
    pub closes: Option<&'static str>,
    /// Nothing counts before NIP-42 authentication.
    pub wants_auth: bool,
    /// Connections are taken, but nothing is ever answered.
    pub deaf: bool,
    /// What it says about itself (NIP-11).
    pub information: Option<Value>,
}

struct Connection {
    out: UnboundedSender<Out>,
    subscriptions: BTreeMap<String, Vec<Value>>,
    author: Option<String>,
}

enum Out {
    Text(String),
    Later(Duration, String),
    HangUp,
}

/// One message of a client, and which connection said it.
#[derive(Clone, Debug)]
pub struct Heard {
    pub connection: usize,
    pub frame: Value,
}

struct State {
    rules: Rules,
    stored: Vec<Event>,
    heard: Vec<Heard>,
    times: BTreeMap<String, usize>,
    connections: BTreeMap<usize, Connection>,
    connected: usize,
    listener: Option<JoinHandle<()>>,
}

#[derive(Clone)]
pub struct FakeRelay {
    port: u16,
    state: Arc<(Mutex<State>, Condvar)>,
}

impl FakeRelay {
    pub fn start() -> Self {
        let rules = Rules {
            judge: Arc::new(|_, _| Verdict::Accept),
            copies: 1,
            delay: Duration::ZERO,
            closes: None,
            wants_auth: false,
            deaf: false,
            information: None,
        };
        let state = State {
            rules,
            stored: Vec::new(),
            heard: Vec::new(),
            times: BTreeMap::new(),
            connections: BTreeMap::new(),
            connected: 0,
            listener: None,
        };
        let mut relay = Self { port: 0, state: Arc::new((Mutex::new(state), Condvar::new())) };
        let listener = runtime().block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        relay.port = listener.local_addr().unwrap().port();
        relay.listen(listener);
        relay
    }

    pub fn url(&self) -> String {
        format!("ws://127.0.0.1:{}", self.port)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes its behaviour.
    pub fn rules(&self, change: impl FnOnce(&mut Rules)) {
        change(&mut self.lock().rules);
    }

    pub fn judge(&self, judge: impl Fn(&Event, usize) -> Verdict + Send + Sync + 'static) {
        self.rules(|rules| rules.judge = Arc::new(judge));
    }

    fn listen(&self, listener: TcpListener) {
        let relay = self.clone();
        let task = runtime().spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                runtime().spawn(relay.clone().attend(stream));
            }
        });
        self.lock().listener = Some(task);
    }

    /// Cuts all connections; new ones are taken.
    pub fn hang_up(&self) {
        self.hang_up_on("");
    }

    /// Cuts the connections that have a subscription with this text in its filters.
    pub fn hang_up_on(&self, part: &str) {
        self.lock().connections.retain(|_, connection| {
            let mut all = connection.subscriptions.values();
            let stays =
                !part.is_empty() && !all.any(|filters| Value::from(filters.as_slice()).to_string().contains(part));
            if !stays {
                let _ = connection.out.send(Out::HangUp);
            }
            stays
        });
    }

    /// Cuts all connections and refuses new ones.
    pub fn stop(&self) {
        let listener = self.lock().listener.take();
        if let Some(task) = listener {
            task.abort();
            let _ = runtime().block_on(task);
        }
        self.hang_up();
    }

    /// Comes back at the same address.
    pub fn come_back(&self) {
        let address = format!("127.0.0.1:{}", self.port);
        let mut listener = None;
        super::log::until("the port is free again", PATIENCE, || {
            listener = runtime().block_on(TcpListener::bind(&address)).ok();
            listener.is_some()
        });
        self.listen(listener.unwrap());
    }

    /// Loses everything it had stored.
    pub fn forget(&self) {
        self.lock().stored.clear();
    }

    pub fn stored(&self) -> Vec<Event> {
        self.lock().stored.clone()
    }

    pub fn heard(&self) -> Vec<Heard> {
        self.lock().heard.clone()
    }

    /// How many connections were ever made.
    pub fn connected(&self) -> usize {
        self.lock().connected
    }

    /// The names of all open subscriptions whose filters hold this text.
    pub fn subscriptions(&self, part: &str) -> Vec<String> {
        let state = self.lock();
        let all = state.connections.values().flat_map(|connection| &connection.subscriptions);
        let fitting = all.filter(|(_, filters)| Value::from(filters.as_slice()).to_string().contains(part));
        fitting.map(|(name, _)| name.clone()).collect()
    }

    /// Waits until what it knows fits.
    #[track_caller]
    fn wait<R>(&self, what: &str, patience: Duration, find: impl Fn(&State) -> Option<R>) -> R {
        self.try_wait(patience, find).unwrap_or_else(|| {
            let heard: Vec<String> = self.heard().iter().rev().take(30).map(|heard| heard.frame.to_string()).collect();
            panic!("the relay never had {what}; it heard last, newest first: {heard:#?}")
        })
    }

    fn try_wait<R>(&self, patience: Duration, find: impl Fn(&State) -> Option<R>) -> Option<R> {
        let deadline = Instant::now() + patience;
        let mut state = self.lock();
        loop {
            if let Some(found) = find(&state) {
                return Some(found);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            state = self.state.1.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// A published event, if there is one by then.
    pub fn event_within(&self, patience: Duration, fits: impl Fn(&Event) -> bool) -> Option<Event> {
        self.try_wait(patience, |state| published(&state.heard).map(|(_, event)| event).find(|event| fits(event)))
    }

    /// Waits for a published event, accepted or not.
    #[track_caller]
    pub fn wait_for_event(&self, what: &str, fits: impl Fn(&Event) -> bool) -> Event {
        self.wait(what, PATIENCE, |state| published(&state.heard).map(|(_, event)| event).find(|event| fits(event)))
    }

    /// Waits until this many published events fit.
    #[track_caller]
    pub fn wait_for_events(&self, what: &str, count: usize, fits: impl Fn(&Event) -> bool) -> Vec<Event> {
        self.wait(what, PATIENCE, |state| {
            let found: Vec<Event> =
                published(&state.heard).map(|(_, event)| event).filter(|event| fits(event)).collect();
            (found.len() >= count).then_some(found)
        })
    }

    /// Waits for a message of any kind.
    #[track_caller]
    pub fn wait_for_frame(&self, what: &str, fits: impl Fn(&Heard) -> bool) -> Heard {
        self.wait(what, PATIENCE, |state| state.heard.iter().find(|heard| fits(heard)).cloned())
    }

    /// Waits until some open subscription has this text in its filters.
    #[track_caller]
    pub fn wait_for_subscription(&self, part: &str) {
        self.wait_for_subscription_within(part, PATIENCE);
    }

    #[track_caller]
    pub fn wait_for_subscription_within(&self, part: &str, patience: Duration) {
        self.wait(&format!("a subscription with {part}"), patience, |state| {
            let mut all = state.connections.values().flat_map(|connection| connection.subscriptions.values());
            all.any(|filters| Value::from(filters.as_slice()).to_string().contains(part)).then_some(())
        });
    }

    /// Waits until this many connections have been made since it was started.
    #[track_caller]
    pub fn wait_for_connections(&self, count: usize) {
        self.wait(&format!("{count} connections"), PATIENCE, |state| (state.connected >= count).then_some(()));
    }

    /// All published events, accepted or not.
    pub fn published(&self) -> Vec<Event> {
        published(&self.lock().heard).map(|(_, event)| event).collect()
    }

    /// Stores an event as if somebody had published it, and delivers it.
    pub fn publish(&self, event: &Event) {
        let mut state = self.lock();
        state.stored.push(event.clone());
        state.deliver(event);
    }

    /// Sends any text as an event to every subscription that names this key in its filters, whether it fits them or not.
    /// Gives how many got it.
    pub fn inject(&self, part: &str, event: &str) -> usize {
        assert!(part.len() >= 64, "a shorter text may be part of somebody's key: {part}");
        self.inject_where(event, |filter| filter.to_string().contains(part))
    }

    /// The same, to every subscription that asks for this kind.
    pub fn inject_by_kind(&self, kind: u32, event: &str) -> usize {
        let asks = |filter: &Value| filter["kinds"].as_array().is_some_and(|kinds| kinds.contains(&json!(kind)));
        self.inject_where(event, asks)
    }

    /// The same, to everybody.
    pub fn inject_to_all(&self, event: &str) -> usize {
        self.inject_where(event, |_| true)
    }

    fn inject_where(&self, event: &str, chosen: impl Fn(&Value) -> bool) -> usize {
        let state = self.lock();
        let mut count = 0;
        for connection in state.connections.values() {
            for (name, filters) in &connection.subscriptions {
                if filters.iter().any(&chosen) {
                    let _ = connection.out.send(Out::Text(format!("[\"EVENT\",{},{event}]", json!(name))));
                    count += 1;
                }
            }
        }
        count
    }

    async fn attend(self, stream: TcpStream) {
        let _ = stream.set_nodelay(true);
        let mut head = [0; 4096];
        loop {
            let Ok(length) = stream.peek(&mut head).await else { return };
            if length == 0 {
                return;
            }
            let text = String::from_utf8_lossy(&head[..length]).to_lowercase();
            if !text.contains("\r\n\r\n") {
                tokio::time::sleep(Duration::from_millis(1)).await;
                continue;
            }
            if text.contains("upgrade: websocket") {
                break;
            }
            return self.introduce(stream).await;
        }
        let Ok(socket) = accept_async(stream).await else { return };
        let (out, to_send) = unbounded_channel();
        let number = {
            let mut state = self.lock();
            state.connected += 1;
            if state.rules.wants_auth {
                let _ = out.send(Out::Text(json!(["AUTH", "prove it"]).to_string()));
            }
            let number = state.connected;
            let connection = Connection { out, subscriptions: BTreeMap::new(), author: None };
            state.connections.insert(number, connection);
            number
        };
        self.state.1.notify_all();
        let (sink, mut source) = socket.split();
        let writer = runtime().spawn(write(sink, to_send));
        let reading = async {
            while let Some(Ok(message)) = source.next().await {
                if let Message::Text(text) = message {
                    self.hear(number, &text);
                }
            }
        };
        // Whichever side ends first ends both, so that a cut connection is really cut.
        tokio::select! {
            () = reading => {}
            _ = writer => {}
        }
        self.lock().connections.remove(&number);
        self.state.1.notify_all();
    }

    /// Answers a plain HTTP request: who the relay is.
    async fn introduce(self, mut stream: TcpStream) {
        let information = self.lock().rules.information.clone();
        let answer = match information {
            Some(value) => {
                let body = value.to_string();
                format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: application/nostr+json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
                    body.len()
                )
            }
            None => "HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".to_owned(),
        };
        let _ = stream.write_all(answer.as_bytes()).await;
        let _ = stream.shutdown().await;
    }

    fn hear(&self, number: usize, text: &str) {
        let Ok(frame) = serde_json::from_str::<Value>(text) else { return };
        let mut state = self.lock();
        state.heard.push(Heard { connection: number, frame: frame.clone() });
        if !state.rules.deaf {
            state.answer(number, &frame);
        }
        drop(state);
        self.state.1.notify_all();
    }
}

/// All events among these messages.
fn published(heard: &[Heard]) -> impl Iterator<Item = (usize, Event)> {
    let events = heard.iter().filter(|heard| heard.frame[0] == "EVENT");
    events.map(|heard| (heard.connection, Event::parse(&heard.frame[1])))
}

async fn write(mut sink: impl futures_util::Sink<Message> + Unpin, mut to_send: UnboundedReceiver<Out>) {
    while let Some(out) = to_send.recv().await {
        let text = match out {
            Out::Text(text) => text,
            Out::Later(delay, text) => {
                tokio::time::sleep(delay).await;
                text
            }
            Out::HangUp => return,
        };
        if sink.send(Message::text(text)).await.is_err() {
            return;
        }
    }
}

impl State {
    fn say(&self, number: usize, frame: &Value) {
        if let Some(connection) = self.connections.get(&number) {
            let _ = connection.out.send(Out::Text(frame.to_string()));
        }
    }

    fn answer(&mut self, number: usize, frame: &Value) {
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
        let asked: Vec<Value> = filters.iter().filter(|filter| filter["limit"] != 0).cloned().collect();
        let fitting: Vec<Event> = self.stored.iter().filter(|event| fits_any(&asked, event)).cloned().collect();
        for event in fitting {
            for _ in 0..self.rules.copies {
                self.say(number, &json!(["EVENT", name, event]));
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
        match verdict {
            Verdict::Accept => self.say(number, &json!(["OK", event.id, true, ""])),
            Verdict::Duplicate => self.say(number, &json!(["OK", event.id, true, "duplicate: have it"])),
            Verdict::Refuse(reason) => self.say(number, &json!(["OK", event.id, false, reason])),
            Verdict::Ignore => {}
            Verdict::HangUp => {
                if let Some(connection) = self.connections.remove(&number) {
                    let _ = connection.out.send(Out::HangUp);
                }
            }
        }
    }

    fn deliver(&self, event: &Event) {
        for connection in self.connections.values() {
            for (name, filters) in &connection.subscriptions {
                if fits_any(filters, event) {
                    let text = json!(["EVENT", name, event]).to_string();
                    for _ in 0..self.rules.copies {
                        let _ = connection.out.send(match self.rules.delay {
                            Duration::ZERO => Out::Text(text.clone()),
                            delay => Out::Later(delay, text.clone()),
                        });
                    }
                }
            }
        }
    }
}
