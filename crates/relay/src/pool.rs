//! Several relays as one: what any of them brings arrives once, what is published goes to all of them.
//!
//! Each relay has a task of its own ([`connection`](crate::connection)) and an outbox; a relay that is slow or gone holds up
//! nobody else. Arrivals go through one bounded channel: when nobody takes them, reading stops. Publishing never waits.

use crate::backoff::Backoff;
use crate::clock::{Clock, SystemClock};
use crate::connection;
use crate::frame;
use crate::gate::Gate;
use crate::information::Limits;
use crate::outbox::Outbox;
use crate::own::Own;
use crate::publication::Publication;
use crate::sign::Sign;
use crate::socket::{Dial, Network};
use crate::status::{Counts, State, Status};
use nostr::prelude::{Event, EventId, Filter, Keys, RelayUrl, Timestamp};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::Instant;

/// How long a relay is given to take an event.
const GIVE_UP: Duration = Duration::from_secs(600);

/// How many relays should have an event before it counts as published.
const QUORUM: usize = 2;

/// Relays that take less than this are left out when results are cut to size.
const LEAST_MESSAGE: usize = 16 * 1024;

/// How many arrivals may wait before reading stops.
const INBOX: usize = 1024;

/// Events that one relay may bring in answer to one query, and their length in all.
const MAX_FOUND: usize = 5_000;
const MAX_FOUND_BYTES: usize = 32 * 1024 * 1024;

/// What a pool needs to know.
#[derive(Debug, Clone)]
pub struct Options {
    /// Who we say we are when a relay wants to know (NIP-42); nobody if absent.
    pub keys: Option<Keys>,
    /// Who signs for us if the keys are not here.
    pub signer: Option<Arc<dyn Sign>>,
    pub give_up: Duration,
    pub quorum: usize,
    /// What we have published arrives here too, if we ask for it. Whoever knows what they said saves checking it again.
    pub hears_itself: bool,
    pub dial: Arc<dyn Dial>,
    pub clock: Arc<dyn Clock>,
    /// Where the chance in waiting times begins, if they must be the same again; anywhere if absent.
    pub seed: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            keys: None,
            signer: None,
            give_up: GIVE_UP,
            quorum: QUORUM,
            hears_itself: true,
            dial: Arc::new(Network),
            clock: Arc::new(SystemClock),
            seed: None,
        }
    }
}

/// What to hear of. `filter` has no `since`: it follows from when we were last connected.
#[derive(Debug, Clone)]
pub struct Watch {
    pub filter: Filter,
    /// How much older than its arrival an event may be.
    pub spread: Duration,
}

/// Something that a relay brought.
#[derive(Debug)]
pub enum Arrival {
    /// An event that has passed the gate, for the first time. `stored` if the relay had it before we asked.
    Event { event: Box<Event>, relay: Arc<str>, stored: bool },
    /// An event that came before, sent again after what was stored: somebody published it again.
    Repeat { id: EventId, relay: Arc<str> },
    /// A relay has taken our subscription and sent what it had stored.
    Subscribed { relay: Arc<str> },
}

/// A handle; clones are the same pool. The connections end with the last one.
#[derive(Debug, Clone)]
pub struct Pool(Arc<Handle>);

#[derive(Debug)]
struct Handle {
    shared: Arc<Shared>,
    stop: watch::Sender<bool>,
}

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) gate: Gate,
    own: Mutex<Own>,
    pub(crate) inbox: mpsc::Sender<Arrival>,
    watches: Mutex<Vec<Watch>>,
    relays: Mutex<Vec<Arc<Relay>>>,
    /// Counts changes of any relay's state.
    changes: watch::Sender<u64>,
    queries: AtomicU64,
    pub(crate) started: Timestamp,
}

/// One relay: what its connection and the pool both touch.
#[derive(Debug)]
pub(crate) struct Relay {
    pub(crate) url: RelayUrl,
    pub(crate) name: Arc<str>,
    pub(crate) outbox: Mutex<Outbox>,
    /// Something is to be sent.
    pub(crate) wake: Notify,
    pub(crate) queries: Mutex<HashMap<String, Open>>,
    /// Queries that were sent and that nobody waits for any more: the relay is to be told.
    pub(crate) unwanted: Mutex<Vec<String>>,
    pub(crate) status: Mutex<Status>,
    /// Grows with each change of the subscription.
    pub(crate) version: AtomicU64,
    /// It is not wanted any more.
    pub(crate) leave: Notify,
}

/// A query as one relay sees it.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) filters: Vec<Filter>,
    pub(crate) is_sent: bool,
    /// It was refused once, for want of authentication.
    pub(crate) is_repeated: bool,
    pub(crate) found: mpsc::UnboundedSender<Event>,
    pub(crate) count: usize,
    pub(crate) bytes: usize,
    answered: Arc<Mutex<Vec<Arc<str>>>>,
}

impl Open {
    /// A relay has sent all that it has.
    pub(crate) fn answered(&self, relay: &Arc<str>) {
        lock(&self.answered).push(relay.clone());
    }

    /// Takes an event; says whether more are welcome.
    pub(crate) fn take(&mut self, event: Event, length: usize) -> bool {
        self.count += 1;
        self.bytes += length;
        self.found.send(event).is_ok() && self.count < MAX_FOUND && self.bytes < MAX_FOUND_BYTES
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pool {
    /// Begins to connect to all relays. What they bring arrives at the receiver.
    pub fn start(relays: &[RelayUrl], watches: Vec<Watch>, options: Options) -> (Self, mpsc::Receiver<Arrival>) {
        let (inbox, arrivals) = mpsc::channel(INBOX);
        let started = options.clock.now();
        let shared = Arc::new(Shared {
            options,
            gate: Gate::default(),
            own: Mutex::default(),
            inbox,
            watches: Mutex::new(watches),
            relays: Mutex::default(),
            changes: watch::Sender::new(0),
            queries: AtomicU64::new(0),
            started,
        });
        let pool = Self(Arc::new(Handle { shared, stop: watch::Sender::new(false) }));
        for url in relays {
            pool.add(url);
        }
        (pool, arrivals)
    }

    /// Adds a relay, unless it is there already.
    pub fn add(&self, url: &RelayUrl) {
        let shared = &self.0.shared;
        let name: Arc<str> = url.as_str_without_trailing_slash().into();
        let mut relays = lock(&shared.relays);
        if relays.iter().any(|relay| relay.name == name) {
            return;
        }
        let status = Status {
            url: name.clone(),
            state: State::Connecting,
            latency: None,
            limits: None,
            counts: Counts::default(),
            complaint: None,
            waiting: 0,
        };
        let relay = Arc::new(Relay {
            url: url.clone(),
            name: name.clone(),
            outbox: Mutex::new(Outbox::new(name.clone(), Backoff::seeded(shared.options.seed, &name))),
            wake: Notify::new(),
            queries: Mutex::default(),
            unwanted: Mutex::default(),
            status: Mutex::new(status),
            version: AtomicU64::new(0),
            leave: Notify::new(),
        });
        relays.push(relay.clone());
        let (task_shared, stop) = (shared.clone(), self.0.stop.subscribe());
        tokio::spawn(async move { connection::live(&relay, &task_shared, stop).await });
    }

    /// Gives up a relay. What waits for it is not sent any more.
    pub fn remove(&self, url: &RelayUrl) {
        let name = url.as_str_without_trailing_slash();
        lock(&self.0.shared.relays).retain(|relay| {
            let stays = *relay.name != *name;
            if !stays {
                relay.leave.notify_one();
            }
            stays
        });
    }

    fn relays(&self) -> Vec<Arc<Relay>> {
        lock(&self.0.shared.relays).clone()
    }

    /// The relays, as they were given.
    pub fn urls(&self) -> Vec<RelayUrl> {
        lock(&self.0.shared.relays).iter().map(|relay| relay.url.clone()).collect()
    }

    /// Replaces what we want to hear of.
    pub fn watch(&self, watches: Vec<Watch>) {
        *lock(&self.0.shared.watches) = watches;
        for relay in self.relays() {
            relay.version.fetch_add(1, Ordering::Relaxed);
            relay.wake.notify_one();
        }
    }

    /// Publishes to all relays.
    pub fn publish(&self, event: &Event) -> Arc<Publication> {
        self.publish_to(event, |_| true)
    }

    /// Publishes to those relays that `chosen` names.
    pub fn publish_to(&self, event: &Event, chosen: impl Fn(&str) -> bool) -> Arc<Publication> {
        let now = Instant::now();
        let options = &self.0.shared.options;
        let relays: Vec<Arc<Relay>> = self.relays().into_iter().filter(|relay| chosen(&relay.name)).collect();
        let names = relays.iter().map(|relay| relay.name.clone()).collect();
        let publication = Arc::new(Publication::new(event, names, options.quorum, now + options.give_up));
        lock(&self.0.shared.own).note(&event.id, now);
        if !options.hears_itself {
            self.0.shared.gate.note(frame::published(&publication.frame), event.id);
        }
        for relay in relays {
            lock(&relay.outbox).push(publication.clone(), now);
            relay.wake.notify_one();
        }
        publication
    }

    /// Whether an event was published here not long ago ([`REMEMBERED`](crate::own::REMEMBERED)).
    pub fn has_published(&self, id: &EventId) -> bool {
        self.0.shared.is_own(id)
    }

    /// Asks all relays for stored events. Those that do not answer before `end` are not waited for.
    pub fn query(&self, filters: &[Filter], patience: Duration) -> Query {
        self.query_at(filters, patience, |_| true)
    }

    /// Asks those relays that `chosen` names.
    pub fn query_at(&self, filters: &[Filter], patience: Duration, chosen: impl Fn(&str) -> bool) -> Query {
        let number = self.0.shared.queries.fetch_add(1, Ordering::Relaxed);
        let name = format!("q{number}");
        let (found, events) = mpsc::unbounded_channel();
        let relays: Vec<Arc<Relay>> = self.relays().into_iter().filter(|relay| chosen(&relay.name)).collect();
        let answered = Arc::default();
        for relay in &relays {
            // A relay that is known to be away is not waited for.
            if matches!(lock(&relay.status).state, State::Down { tries, .. } if tries > 1) {
                continue;
            }
            let open = Open {
                filters: filters.to_vec(),
                is_sent: false,
                is_repeated: false,
                found: found.clone(),
                count: 0,
                bytes: 0,
                answered: Arc::clone(&answered),
            };
            lock(&relay.queries).insert(name.clone(), open);
            relay.wake.notify_one();
        }
        Query { name, relays, events, seen: HashSet::new(), end: Instant::now() + patience, answered }
    }

    pub fn status(&self) -> Vec<Status> {
        let status = |relay: &Arc<Relay>| {
            let waiting = lock(&relay.outbox).len();
            Status { waiting, ..lock(&relay.status).clone() }
        };
        self.relays().iter().map(status).collect()
    }

    /// The longest message that every relay takes, as far as they have said. One that takes next to nothing does not count:
    /// it would cut everything short for everybody.
    pub fn message_limit(&self) -> Option<usize> {
        let limit = |limits: Limits| limits.message.into_iter().chain(limits.content).min();
        let limits = self.relays().into_iter().filter_map(|relay| limit(lock(&relay.status).limits?));
        limits.filter(|limit| *limit >= LEAST_MESSAGE).min()
    }

    /// Counts changes of the relays' states.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.0.shared.changes.subscribe()
    }

    /// Waits until `enough` says so of the relays' states; `false` if that does not come in time.
    pub async fn wait(&self, patience: Duration, enough: impl Fn(&[Status]) -> bool) -> bool {
        let mut changes = self.changes();
        let waiting = async {
            while !enough(&self.status()) {
                if changes.changed().await.is_err() {
                    return;
                }
            }
        };
        tokio::time::timeout(patience, waiting).await.is_ok()
    }

    /// Sends what waits, as long as `patience` allows, and ends all connections.
    pub async fn stop(&self, patience: Duration) {
        let is_empty = |statuses: &[Status]| {
            statuses.iter().all(|status| status.waiting == 0 || matches!(status.state, State::Down { .. }))
        };
        let end = Instant::now() + patience;
        // Outboxes do not tell when they empty; nothing else is waited for here, so looking again is fine.
        while !is_empty(&self.status()) && Instant::now() < end {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        self.0.stop.send_replace(true);
        // Each connection has a receiver until it ends.
        let _ = tokio::time::timeout(Duration::from_secs(1), self.0.stop.closed()).await;
    }
}

impl Shared {
    pub(crate) fn changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    /// Whether an event is one that is not to arrive again.
    pub(crate) fn is_unwanted(&self, id: &EventId) -> bool {
        !self.options.hears_itself && self.is_own(id)
    }

    fn is_own(&self, id: &EventId) -> bool {
        lock(&self.own).contains(id)
    }

    /// The filters to subscribe with, for events from `since` on.
    pub(crate) fn filters(&self, since: Timestamp) -> Vec<Filter> {
        let watches = lock(&self.watches);
        let back = |watch: &Watch| Timestamp::from(since.as_secs().saturating_sub(watch.spread.as_secs()));
        watches.iter().map(|watch| watch.filter.clone().since(back(watch))).collect()
    }
}

/// Stored events, as they are found. Each comes once, whichever relay has it.
#[derive(Debug)]
pub struct Query {
    name: String,
    relays: Vec<Arc<Relay>>,
    events: mpsc::UnboundedReceiver<Event>,
    seen: HashSet<EventId>,
    end: Instant,
    answered: Arc<Mutex<Vec<Arc<str>>>>,
}

impl Query {
    /// The next one; `None` when all relays have answered or time is up.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            let event = tokio::time::timeout_at(self.end, self.events.recv()).await.ok()??;
            if self.seen.insert(event.id) {
                return Some(event);
            }
        }
    }

    /// The relays that have sent all that they have, so far.
    pub fn answered(&self) -> Vec<Arc<str>> {
        lock(&self.answered).clone()
    }

    pub async fn all(mut self) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            events.push(event);
        }
        events
    }
}

impl Drop for Query {
    fn drop(&mut self) {
        for relay in &self.relays {
            // A relay that has not said all is told to stop.
            let is_open = lock(&relay.queries).remove(&self.name).is_some_and(|query| query.is_sent);
            if is_open {
                lock(&relay.unwanted).push(self.name.clone());
                relay.wake.notify_one();
            }
        }
    }
}
