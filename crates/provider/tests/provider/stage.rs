//! Relays, a provider with a service that counts its calls, and a customer.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use nostr::prelude::{Event, EventId, Keys, Kind, RelayUrl, Tag, Timestamp, UnsignedEvent};
use rialto_ledger::sqlite::Sqlite;
use rialto_mcp::call::Call;
use rialto_mcp::error::Error;
use rialto_mcp::json;
use rialto_mcp::peer::{Peer, Profile};
use rialto_mcp::reply::Answer as Reply;
use rialto_mcp::server::{Description, Service};
use rialto_payment::price::Prices;
use rialto_provider::event::{Event as Told, Observer};
use rialto_provider::limits::Limits;
use rialto_provider::plan::{Access, DEFAULT_QUOTE, DEFAULT_WINDOW, Ending, Plan};
use rialto_provider::provider::{Books, run, watches};
use rialto_relay::clock::SystemClock;
use rialto_relay::embedded::{self, Relay};
use rialto_relay::pool::{Arrival, Options, Pool, Watch};
use rialto_relay::seal;
use rialto_relay::sign::sign;
use rialto_wire::dvmcp::answer::{self, Answer, Feedback, Status};
use rialto_wire::dvmcp::request::OpenJobs;
use rialto_wire::dvmcp::{customer_filter, request};
use rialto_wire::request::Command;
use rialto_wire::service::Wire;
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinHandle;

/// Far longer than anything takes; only a test that fails waits for it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, work).await.expect("nothing happened")
}

/// A service with a few tools, and how often each was called.
#[derive(Default)]
pub(crate) struct Counter {
    pub(crate) calls: Mutex<HashMap<String, usize>>,
    /// `wait` returns when this is told.
    pub(crate) go: Notify,
    /// The definition of `large` is this long.
    pub(crate) padding: usize,
    /// There is a tool `odd`, whose output schema is not safe to run.
    pub(crate) is_odd: bool,
    /// The lists never come.
    pub(crate) is_stuck: AtomicBool,
}

impl Counter {
    pub(crate) fn count(&self, name: &str) -> usize {
        self.calls.lock().unwrap().get(name).copied().unwrap_or(0)
    }

    /// Waits until a tool has been called this often.
    pub(crate) async fn reached(&self, name: &str, count: usize) {
        within(async {
            while self.count(name) < count {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        })
        .await;
    }
}

impl Service for Counter {
    fn info(&self) -> Bytes {
        Bytes::from_static(b"{\"name\":\"counter\",\"version\":\"0\"}")
    }

    async fn describe(&self, _peer: &Arc<Peer>, _profile: &Arc<Profile>) -> Description {
        Description { capabilities: b"{}".to_vec(), info: self.info(), instructions: None, more: Vec::new() }
    }

    async fn request(&self, call: &Call) -> Reply {
        if self.is_stuck.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        match call.method() {
            "tools/list" => {
                let tool = |name: &str| json!({ "name": name, "description": "", "inputSchema": { "type": "object" } });
                let mut tools = Vec::from(["echo", "wait", "panic", "changes", "chatter"].map(tool));
                if self.padding > 0 {
                    tools.push(json!({ "name": "large", "description": "d".repeat(self.padding), "inputSchema": {} }));
                }
                if self.is_odd {
                    let schema = json!({ "type": "object", "properties": { "a": { "pattern": "(?=a)b" } } });
                    tools.push(json!({ "name": "odd", "inputSchema": { "type": "object" }, "outputSchema": schema }));
                }
                Reply::Result(json!({ "tools": tools }).to_string().into_bytes())
            }
            "tools/call" => {
                let name = json::get_string(call.params(), "name").unwrap().into_owned();
                *self.calls.lock().unwrap().entry(name.clone()).or_default() += 1;
                match name.as_str() {
                    "wait" => self.go.notified().await,
                    "panic" => panic!("a tool that panics"),
                    "changes" => {
                        for _ in 0..500 {
                            call.notify("notifications/tools/list_changed", b"{}").await;
                        }
                    }
                    "chatter" => {
                        let words = "x".repeat(100_000);
                        call.progress(1.0, None, Some(&words)).await;
                    }
                    _ => {}
                }
                Reply::Result(json!({ "content": [{ "type": "text", "text": name }] }).to_string().into_bytes())
            }
            method => Reply::Error(Error::not_offered(method)),
        }
    }
}

pub(crate) fn plan(keys: &Keys, folder: &Path) -> Plan {
    Plan {
        keys: keys.clone(),
        id: "counter".into(),
        name: "counter".into(),
        about: String::new(),
        wires: Wire::ALL.into(),
        access: Access::default(),
        limits: Limits { rate_per_key: 0, ..Limits::default() },
        window: DEFAULT_WINDOW,
        timeout: Duration::from_secs(60),
        open_jobs: OpenJobs::Ignored,
        ending: Ending::Withdraw,
        relays: Vec::new(),
        record: folder.to_owned(),
        prices: Prices::default(),
        idempotent: BTreeSet::new(),
        quote: DEFAULT_QUOTE,
    }
}

/// The ledger in a folder. One that was just given up may be held for a moment longer.
async fn ledger(folder: &Path) -> Sqlite {
    loop {
        match Sqlite::open(folder) {
            Err(rialto_ledger::ledger::Error::InUse) => tokio::time::sleep(Duration::from_millis(5)).await,
            opened => return opened.unwrap(),
        }
    }
}

pub(crate) struct Provider {
    pub(crate) service: Arc<Counter>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<std::io::Result<()>>,
    told: mpsc::UnboundedReceiver<Told>,
}

impl Provider {
    /// Begins to serve.
    pub(crate) fn begin(plan: Plan, service: Counter, relays: &[Relay]) -> Self {
        let service = Arc::new(service);
        let (stop, stopped) = oneshot::channel::<()>();
        let (tell, told) = mpsc::unbounded_channel();
        let observer = Observer::new(move |event| drop(tell.send(event)));
        let pool = Pool::start(&urls(relays), watches(&plan), Options::default());
        let served = service.clone();
        let work = async move {
            let books = Books { ledger: Arc::new(ledger(&plan.record).await), till: None };
            run(plan, books, served, pool, Arc::new(SystemClock), observer, async { drop(stopped.await) }).await
        };
        Self { service, stop, task: tokio::spawn(work), told }
    }

    /// Serves; can be called when this returns.
    pub(crate) async fn start(plan: Plan, service: Counter, relays: &[Relay]) -> Self {
        let mut provider = Self::begin(plan, service, relays);
        within(async { while !matches!(provider.told.recv().await, Some(Told::Ready { .. })) {} }).await;
        provider
    }

    /// Ends as if the power had gone.
    pub(crate) async fn crash(self) {
        self.task.abort();
        let _ = self.task.await;
    }

    /// How it ends by itself.
    pub(crate) async fn end(self) -> std::io::Result<()> {
        within(self.task).await.unwrap()
    }

    pub(crate) async fn stop(self) {
        let _ = self.stop.send(());
        within(self.task).await.unwrap().unwrap();
    }
}

pub(crate) fn urls(relays: &[Relay]) -> Vec<RelayUrl> {
    relays.iter().map(|relay| RelayUrl::parse(&relay.url()).unwrap()).collect()
}

pub(crate) async fn relays(count: usize) -> Vec<Relay> {
    let mut relays = Vec::new();
    for _ in 0..count {
        relays.push(Relay::start(embedded::Options::default()).await.unwrap());
    }
    relays
}

/// Somebody who asks.
pub(crate) struct Customer {
    pub(crate) keys: Keys,
    pub(crate) pool: Pool,
    arrivals: mpsc::Receiver<Arrival>,
    /// What was answered to each request.
    answers: Vec<(EventId, Answer)>,
}

impl Customer {
    pub(crate) async fn new(relays: &[Relay]) -> Self {
        let keys = Keys::generate();
        let me = keys.public_key();
        let day = Duration::from_secs(86_400);
        let spread = Duration::from_secs(seal::SPREAD_SECS);
        let watches =
            vec![Watch { filter: customer_filter(me), spread: day }, Watch { filter: seal::filter(me), spread }];
        let (pool, mut arrivals) = Pool::start(&urls(relays), watches, Options::default());
        let mut subscribed = 0;
        while subscribed < relays.len() {
            subscribed += usize::from(matches!(within(arrivals.recv()).await, Some(Arrival::Subscribed { .. })));
        }
        Self { keys, pool, arrivals, answers: Vec::new() }
    }

    pub(crate) fn request(&self, provider: &Keys, command: Command, content: &str) -> UnsignedEvent {
        let to = Some(provider.public_key());
        request::write(command, to, content.to_owned(), self.keys.public_key(), Timestamp::now())
    }

    /// Publishes, and waits until the relays have it.
    pub(crate) async fn publish(&self, event: &Event) -> EventId {
        assert!(within(self.pool.publish(event).finished()).await.accepted > 0);
        event.id
    }

    pub(crate) async fn ask(&self, provider: &Keys, tool: &str) -> EventId {
        let content = json!({ "name": tool, "parameters": {} }).to_string();
        let request = self.request(provider, Command::ExecuteTool, &content);
        self.publish(&sign(&self.keys, different(request))).await
    }

    /// The next answer, sealed or not, and the request it is for.
    pub(crate) async fn next(&mut self) -> (EventId, Answer) {
        loop {
            let Arrival::Event { event, .. } = within(self.arrivals.recv()).await.expect("the pool is gone") else {
                continue;
            };
            let event = if seal::is_wrap(&event) {
                seal::open(&self.keys, &event).unwrap()
            } else {
                let Event { id, pubkey, created_at, kind, tags, content, .. } = *event;
                UnsignedEvent { id: Some(id), pubkey, created_at, kind, tags, content }
            };
            if let Some(answer) = answer::read(&event) {
                self.answers.push(answer.clone());
                return answer;
            }
        }
    }

    /// Waits for the response to a request: its content.
    pub(crate) async fn response(&mut self, id: EventId) -> Value {
        let find = |answers: &[(EventId, Answer)]| {
            answers.iter().find_map(|(request, answer)| match answer {
                Answer::Response { content, .. } if *request == id => Some(serde_json::from_str(content).unwrap()),
                _ => None,
            })
        };
        loop {
            if let Some(content) = find(&self.answers) {
                return content;
            }
            self.next().await;
        }
    }

    /// Waits for the response to a request, which must be this error.
    pub(crate) async fn error(&mut self, id: EventId) -> String {
        let content = self.response(id).await;
        assert_eq!(content["isError"], true, "{content}");
        content["metadata"]["error"]["code"].as_str().unwrap_or_default().to_owned()
    }

    /// Everything that was said so far about a request.
    pub(crate) fn said(&self, id: EventId) -> Vec<&Answer> {
        self.answers.iter().filter(|(request, _)| *request == id).map(|(_, answer)| answer).collect()
    }

    /// Asks something harmless: whatever came before its answer has been dealt with.
    pub(crate) async fn settle(&mut self, provider: &Keys) {
        let id = self.ask(provider, "echo").await;
        assert_eq!(self.response(id).await["isError"], false);
    }
}

pub(crate) fn is_status(answer: &Answer, expected: Status) -> bool {
    matches!(answer, Answer::Feedback(Feedback { status, .. }) if *status == expected)
}

/// Requests of the same second must not be the same.
pub(crate) fn different(mut request: UnsignedEvent) -> UnsignedEvent {
    request.tags.push(Tag::parse(["nonce", &Keys::generate().public_key().to_hex()]).unwrap());
    request
}

/// A request at any time, with any tags.
pub(crate) fn dated(mut request: UnsignedEvent, at: u64) -> UnsignedEvent {
    request.created_at = Timestamp::from(at);
    different(request)
}

pub(crate) const ANNOUNCEMENT: Kind = Kind::Custom(31990);
