//! The provider of the program, in this process, with a clock that stands still until it is put forward or back.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use nostr::key::Keys;
use nostr::prelude::{RelayUrl, Timestamp};
use rialto_ledger::sqlite::Sqlite;
use rialto_mcp::call::Call;
use rialto_mcp::error::Error;
use rialto_mcp::json::get_string;
use rialto_mcp::peer::{Peer, Profile};
use rialto_mcp::reply::Answer;
use rialto_mcp::server::{Description, Service};
use rialto_payment::price::Prices;
use rialto_provider::event::Observer;
use rialto_provider::limits::Limits;
use rialto_provider::plan::{Access, DEFAULT_QUOTE, DEFAULT_WINDOW, Ending, Plan};
use rialto_provider::provider::{Books, run as serve, watches};
use rialto_relay::clock::Clock;
use rialto_relay::pool::{Options, Pool};
use rialto_wire::dvmcp::request::OpenJobs;
use rialto_wire::service::Wire;
use serde_json::json;
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;

use super::{STANDING_CLOCK, met};
use crate::nostr_side::event::{Event, hex_key, now};
use crate::nostr_side::fake_relay::FakeRelay;
use crate::nostr_side::log::until;
use crate::nostr_side::{PATIENCE, runtime};
use crate::rows::relays::book::{Book, Form, call, finish, note};
use crate::score::Score;

/// How far the clock is put forward and back, in seconds.
const JUMP: u64 = 600;

#[derive(Debug)]
struct Clockwork(AtomicU64);

impl Clock for Clockwork {
    fn now(&self) -> Timestamp {
        Timestamp::from(self.0.load(Ordering::SeqCst))
    }
}

impl Clockwork {
    fn forward(&self, seconds: u64) {
        self.0.fetch_add(seconds, Ordering::SeqCst);
    }

    fn back(&self, seconds: u64) {
        self.0.fetch_sub(seconds, Ordering::SeqCst);
    }

    fn signed(&self) -> i64 {
        i64::try_from(self.0.load(Ordering::SeqCst)).unwrap()
    }
}

/// A service that keeps a list of what it did; `gate` waits until it is opened.
#[derive(Default)]
struct Actor {
    effects: Mutex<Vec<String>>,
    gate: Notify,
}

impl Actor {
    fn times(&self, effect: &str) -> usize {
        self.effects.lock().unwrap().iter().filter(|line| *line == effect).count()
    }
}

impl Service for Actor {
    fn info(&self) -> Bytes {
        Bytes::from_static(b"{\"name\":\"actor\",\"version\":\"0\"}")
    }

    async fn describe(&self, _peer: &Arc<Peer>, _profile: &Arc<Profile>) -> Description {
        Description { capabilities: b"{}".to_vec(), info: self.info(), instructions: None, more: Vec::new() }
    }

    async fn request(&self, call: &Call) -> Answer {
        match call.method() {
            "tools/list" => {
                let tools = ["note", "gate"].map(|name| json!({ "name": name, "inputSchema": { "type": "object" } }));
                Answer::Result(json!({ "tools": tools }).to_string().into_bytes())
            }
            "tools/call" => {
                let name = get_string(call.params(), "name").unwrap_or_default().into_owned();
                let params: serde_json::Value = serde_json::from_slice(call.params()).unwrap();
                let tag = params["arguments"]["tag"].as_str().unwrap_or_default();
                self.effects.lock().unwrap().push(format!("{name} {tag}"));
                if name == "gate" {
                    self.gate.notified().await;
                }
                Answer::Result(json!({ "content": [{ "type": "text", "text": name }] }).to_string().into_bytes())
            }
            method => Answer::Error(Error::not_offered(method)),
        }
    }
}

/// A provider that runs.
struct Provider {
    stop: oneshot::Sender<()>,
    task: JoinHandle<std::io::Result<()>>,
}

impl Provider {
    fn start(keys: &Keys, folder: &Path, relay: &FakeRelay, actor: &Arc<Actor>, clock: &Arc<Clockwork>) -> Self {
        let plan = Plan {
            keys: keys.clone(),
            id: "actor".into(),
            name: "actor".into(),
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
            idempotent: [].into(),
            quote: DEFAULT_QUOTE,
        };
        let (stop, stopped) = oneshot::channel::<()>();
        let books = Books { ledger: Arc::new(Sqlite::open(folder).unwrap()), till: None };
        let (url, actor, clock) = (RelayUrl::parse(&relay.url()).unwrap(), actor.clone(), clock.clone());
        let task = runtime().spawn(async move {
            let options = Options { keys: Some(plan.keys.clone()), clock: clock.clone(), ..Options::default() };
            let pool = Pool::start(&[url], watches(&plan), options);
            let stopped = async { drop(stopped.await) };
            Box::pin(serve(plan, books, actor, pool, clock, Observer::new(|_| ()), stopped)).await
        });
        relay.wait_for_subscription(&hex_key(keys));
        Self { stop, task }
    }

    fn end(self) {
        let _ = self.stop.send(());
        runtime().block_on(self.task).unwrap().unwrap();
    }
}

pub(super) fn run(score: &mut Score) {
    let (folder, keys, relay) = (tempfile::tempdir().unwrap(), Keys::generate(), FakeRelay::start());
    let clock = Arc::new(Clockwork(AtomicU64::new(now().unsigned_abs())));
    let actor = Arc::new(Actor::default());
    let start = || Provider::start(&keys, folder.path(), &relay, &actor, &clock);
    let provider = start();
    let mut book = Book::new(&hex_key(&keys), std::slice::from_ref(&relay));
    let time = clock.clone();
    book = book.with_clock(move || time.signed());
    let met = met(STANDING_CLOCK, clock.signed(), &mut book, &relay, score);
    score.exactly("expectations met to the second", met, STANDING_CLOCK.len() * Form::ALL.len());
    let mut jumps = Jumps { book, relay: relay.clone(), actor: actor.clone(), clock: clock.clone(), sent: Vec::new() };
    jumps.during_a_job("back", |clock| clock.back(JUMP));
    jumps.during_a_job("forward", |clock| clock.forward(JUMP));
    jumps.during_a_job("forward by days", |clock| clock.forward(3 * 86_400));
    jumps.note("before a purge");
    // Just so long that everything until now is forgotten, if by nothing but the window. What is old is purged at each start.
    clock.forward(DEFAULT_WINDOW.past + DEFAULT_WINDOW.future + 61);
    provider.end();
    let provider = start();
    jumps.note("after it");
    clock.back(JUMP);
    jumps.note("after a clock that was put back");
    jumps.replay();
    let once = jumps.sent.iter().filter(|(effect, ..)| actor.times(effect) == 1).count();
    let well = jumps.sent.iter().filter(|(_, id, _)| jumps.book.code(id) == "success").count();
    score.exactly("requests around jumps answered well", well, jumps.sent.len());
    score.exactly("of them executed once, replayed after each jump", once, jumps.sent.len());
    provider.end();
}

struct Jumps {
    book: Book,
    relay: FakeRelay,
    actor: Arc<Actor>,
    clock: Arc<Clockwork>,
    /// What each request leaves, its id, and what it looks like on a relay.
    sent: Vec<(String, String, Vec<Event>)>,
}

impl Jumps {
    fn send(&mut self, form: Form, tool: &str, tag: &str) -> String {
        let (keys, provider) = (self.book.customer(), self.book.provider.clone());
        let draft = match tool {
            "note" => note(form, &provider, tag),
            _ => call(form, &provider, tool, &json!({ "tag": tag })),
        };
        let draft = draft.at(self.clock.signed());
        let asked = finish(form, &keys, &provider, &draft);
        self.relay.inject(&provider, &asked.event.json());
        let mut looks = vec![asked.event];
        if form.is_sealed() {
            looks.push(finish(form, &keys, &provider, &draft).event);
        }
        self.sent.push((format!("{tool} {tag}"), asked.id.clone(), looks));
        asked.id
    }

    /// One request in each form, which must be served.
    fn note(&mut self, when: &str) {
        let ids: Vec<String> =
            Form::ALL.map(|form| self.send(form, "note", &format!("{when}, {form:?}"))).into_iter().collect();
        self.book.wait(&ids, PATIENCE);
    }

    /// The clock jumps while a call runs; then everything that ever was comes again.
    fn during_a_job(&mut self, what: &str, jump: impl Fn(&Clockwork)) {
        let ids: Vec<String> =
            Form::ALL.map(|form| self.send(form, "gate", &format!("{what}, {form:?}"))).into_iter().collect();
        until("the calls run", PATIENCE, || {
            Form::ALL.iter().all(|form| self.actor.times(&format!("gate {what}, {form:?}")) == 1)
        });
        jump(&self.clock);
        self.actor.gate.notify_waiters();
        self.book.wait(&ids, PATIENCE);
        self.note(what);
        self.replay();
    }

    fn replay(&mut self) {
        for (_, _, looks) in &self.sent {
            for event in looks {
                self.relay.inject(&self.book.provider, &event.json());
            }
        }
        self.book.barrier(&self.relay);
    }
}
