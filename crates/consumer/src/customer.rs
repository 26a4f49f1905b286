//! The customer: signs requests, publishes them, and brings every answer to the request that it belongs to.
//!
//! One subscription serves all requests. It is widened only while it must be: for wraps once something was sealed, and for
//! the answers of providers that do not name the customer.

use crate::announcements::Announcements;
use crate::catch_up::{self, Connections};
use crate::error::{Complaint, Error};
use crate::exchange::{Collection, Exchange};
use crate::lane::Lanes;
use crate::ongoing::{ByMessage, Ongoing, Order};
use crate::text;
use nostr::prelude::{Event, EventId, Filter, Keys, PublicKey, RelayUrl, Timestamp, UnsignedEvent};
use rialto_relay::clock::{Clock, SystemClock};
use rialto_relay::pool::{self, Arrival, Pool, Watch};
use rialto_relay::publication::{Publication, Report};
use rialto_relay::seal::{self, Sealer};
use rialto_relay::sign::sign;
use rialto_relay::status::{State, Status};
use rialto_relay::verdict::Verdict;
use rialto_wire::dvmcp::{self, answer};
use rialto_wire::manifest;
use rialto_wire::service::{self, Service, Way};
use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::{Notify, broadcast, mpsc};

/// Requests that may be open at once.
const MAX_OPEN: usize = 4096;

/// Requests that are asked for by their ids at once; relays bound the length of filters.
const MAX_NAMED: usize = 256;

/// How far clocks may differ.
const SPREAD: Duration = Duration::from_secs(120);

/// A relay that does not take a request by then will not be asked again: nobody waits for the answer any more.
const GIVE_UP: Duration = Duration::from_secs(60);

/// Tries after which a relay that was there before counts as gone.
const TRIES: u32 = 4;

/// The longest inner event that can be sealed twice.
pub const MAX_SEALED: usize = 40 * 1024;

/// A handle; clones are the same customer. The connections end with the last one.
#[derive(Clone)]
pub struct Customer(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    keys: Keys,
    sealer: Sealer,
    pub(crate) pool: Pool,
    pub(crate) clock: Arc<dyn Clock>,
    open: Mutex<HashMap<EventId, Open>>,
    pub(crate) lanes: Arc<Lanes>,
    interests: Mutex<Interests>,
    announcements: Announcements,
    announced: broadcast::Sender<Arc<Service>>,
    salt: (RandomState, AtomicU64),
}

impl std::fmt::Debug for Customer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Customer").field("public_key", &self.0.keys.public_key()).finish_non_exhaustive()
    }
}

/// A request that waits for answers.
struct Open {
    kind: Waiting,
    changed: Arc<Notify>,
}

impl Open {
    /// Whether a message that does not say what it answers can be the answer.
    fn may_be_answered(&self, author: PublicKey, way: Way, made: Timestamp) -> bool {
        matches!(&self.kind, Waiting::One(exchange) if exchange.may_be_answered(author, way, made))
    }

    fn is_sealed(&self) -> bool {
        matches!(&self.kind, Waiting::One(exchange) if exchange.way.sealed)
    }
}

enum Waiting {
    One(Box<Exchange>),
    Everybody(Collection),
}

/// What we want to hear of, beyond what names us.
#[derive(Default)]
struct Interests {
    wraps: bool,
    messages: bool,
    named: BTreeSet<EventId>,
    lists: BTreeSet<EventId>,
    providers: BTreeSet<PublicKey>,
}

impl Customer {
    /// Begins to connect to the relays.
    pub fn start(keys: Keys, relays: &[RelayUrl], announcements: Announcements) -> Self {
        let me = keys.public_key();
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let options = pool::Options {
            keys: Some(keys.clone()),
            give_up: GIVE_UP,
            quorum: 1,
            clock: clock.clone(),
            ..pool::Options::default()
        };
        let (pool, arrivals) = Pool::start(relays, Interests::default().watches(me), options);
        let inner = Arc::new(Inner {
            sealer: Sealer::new(keys.clone()),
            keys,
            pool,
            lanes: Arc::new(Lanes::new(announcements.directory(), clock.clone())),
            clock,
            open: Mutex::default(),
            interests: Mutex::default(),
            announcements,
            announced: broadcast::Sender::new(64),
            salt: (RandomState::new(), AtomicU64::new(0)),
        });
        tokio::spawn(route(Arc::downgrade(&inner), arrivals));
        Self(inner)
    }

    pub fn public_key(&self) -> PublicKey {
        self.0.keys.public_key()
    }

    pub fn add_relay(&self, relay: &RelayUrl) {
        self.0.pool.add(relay);
    }

    pub fn relays(&self) -> Vec<Status> {
        self.0.pool.status()
    }

    pub fn announcements(&self) -> &Announcements {
        &self.0.announcements
    }

    /// Announcements of watched providers, as they come.
    pub fn announced(&self) -> broadcast::Receiver<Arc<Service>> {
        self.0.announced.subscribe()
    }

    /// Wants to hear when this provider announces itself anew.
    pub fn watch(&self, provider: PublicKey) {
        self.0.change_interests(|interests| interests.providers.insert(provider));
    }

    /// Sends a request. Dropping what is returned gives it up; a tool that runs is then told to stop.
    pub fn begin(&self, order: Order) -> Result<Ongoing, Error> {
        Ongoing::begin(self, order, None)
    }

    /// The same by message.
    pub(crate) fn begin_message(&self, order: Order, message: ByMessage) -> Result<Ongoing, Error> {
        Ongoing::begin(self, order, Some(message))
    }

    /// Sends what waits, and ends all connections.
    pub async fn stop(&self) {
        self.0.pool.stop(Duration::from_secs(2)).await;
    }
}

impl Inner {
    pub(crate) fn me(&self) -> PublicKey {
        self.keys.public_key()
    }

    fn open(&self) -> MutexGuard<'_, HashMap<EventId, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something that no other request has.
    pub(crate) fn salt(&self) -> String {
        let (random, count) = &self.salt;
        format!("{:016x}", random.hash_one(count.fetch_add(1, Ordering::Relaxed)))
    }

    pub(crate) fn expect(&self, id: EventId, exchange: Exchange) -> Result<Arc<Notify>, Error> {
        self.insert(id, Waiting::One(Box::new(exchange)))
    }

    pub(crate) fn collect(&self, id: EventId) -> Result<Arc<Notify>, Error> {
        let changed = self.insert(id, Waiting::Everybody(Collection::default()))?;
        self.change_interests(|interests| interests.lists.insert(id));
        Ok(changed)
    }

    fn insert(&self, id: EventId, kind: Waiting) -> Result<Arc<Notify>, Error> {
        let changed = Arc::new(Notify::new());
        let mut open = self.open();
        if open.len() >= MAX_OPEN {
            return Err(Error::Busy);
        }
        open.insert(id, Open { kind, changed: changed.clone() });
        Ok(changed)
    }

    /// Looks at an open request to one provider.
    pub(crate) fn look<T>(&self, id: &EventId, look: impl FnOnce(&mut Exchange) -> T) -> Option<T> {
        match &mut self.open().get_mut(id)?.kind {
            Waiting::One(exchange) => Some(look(exchange)),
            Waiting::Everybody(_) => None,
        }
    }

    /// Takes what has come for a request to everybody.
    pub(crate) fn gathered(&self, id: &EventId) -> Vec<(PublicKey, crate::reply::Reply)> {
        match self.open().get_mut(id).map(|open| &mut open.kind) {
            Some(Waiting::Everybody(collection)) => std::mem::take(&mut collection.answers),
            _ => Vec::new(),
        }
    }

    pub(crate) fn forget(&self, id: &EventId) {
        self.open().remove(id);
        self.change_interests(|interests| interests.named.remove(id) | interests.lists.remove(id));
    }

    /// Asks for the answers to this request by its id.
    pub(crate) fn name(&self, id: EventId) {
        self.change_interests(|interests| interests.named.len() < MAX_NAMED && interests.named.insert(id));
    }

    fn change_interests(&self, change: impl FnOnce(&mut Interests) -> bool) {
        let mut interests = self.interests.lock().unwrap_or_else(PoisonError::into_inner);
        if change(&mut interests) {
            self.pool.watch(interests.watches(self.me()));
        }
    }

    /// The event to publish for a request, and the id by which the provider will know it.
    pub(crate) fn enclose(
        &self,
        mut request: UnsignedEvent,
        provider: &PublicKey,
        way: Way,
    ) -> Result<(EventId, Event), Error> {
        if way == Way::MESSAGE {
            self.change_interests(|interests| !std::mem::replace(&mut interests.messages, true));
            request.content = self.sealer.hide(provider, &request.content).map_err(|_| Error::Unsealed)?;
        }
        if !way.sealed {
            let event = sign(&self.keys, request);
            return Ok((event.id, event));
        }
        let id = request.compute_id();
        request.id = Some(id);
        let size = request.as_json().len();
        if size > MAX_SEALED {
            return Err(Error::TooLarge { size, limit: MAX_SEALED });
        }
        self.change_interests(|interests| !std::mem::replace(&mut interests.wraps, true));
        let wrap = self.sealer.close(provider, request, self.clock.now()).map_err(|_| Error::Unsealed)?;
        Ok((id, wrap))
    }

    /// Whether something sealed is open.
    fn awaits_wraps(&self) -> bool {
        self.open().values().any(Open::is_sealed)
    }

    pub(crate) fn take(&self, event: Event) {
        if seal::is_wrap(&event) {
            // Wraps of earlier days cost two decryptions each, and nobody waits for them.
            if !self.awaits_wraps() {
                return;
            }
            let Ok(inner) = self.sealer.open(&event) else { return };
            if manifest::is_sealed(inner.kind) {
                return self.messaged(&inner, Way::SEALED_MESSAGE);
            }
            return self.answered(&inner, Way::SEALED);
        }
        if manifest::is_encrypted(event.kind) {
            // What strangers write is not even decrypted.
            if !self.awaits_message(&event.pubkey) {
                return;
            }
            let Ok(text) = self.sealer.reveal(&event.pubkey, &event.content) else { return };
            let mut event = UnsignedEvent::from(event);
            event.content = text;
            return self.messaged(&event, Way::MESSAGE);
        }
        if service::is_description(event.kind) {
            if let Some(service) = self.announcements.take(&event, self.clock.now()) {
                // Nobody may be listening.
                let _ = self.announced.send(Arc::new(service));
            }
            return;
        }
        self.answered(&event.into(), Way::PUBLIC);
    }

    /// Whether a call by message is open to this provider.
    fn awaits_message(&self, provider: &PublicKey) -> bool {
        self.open().values().any(|open| {
            matches!(&open.kind, Waiting::One(exchange) if exchange.way == Way::MESSAGE && exchange.is_of(provider))
        })
    }

    /// Brings a message to the request that it answers.
    fn messaged(&self, event: &UnsignedEvent, way: Way) {
        let (author, made) = (event.pubkey, event.created_at);
        let Some((about, text)) = manifest::answer::read(event, &self.me()) else { return };
        let is_named = about.is_some();
        let id = event.id.unwrap_or_else(|| event.compute_id());
        let mut open = self.open();
        let mut entries: Vec<&mut Open> = match about {
            Some(id) => open.get_mut(&id).into_iter().collect(),
            // One that does not say what it answers, nor looks like an answer, is none.
            None if !manifest::answer::is_likely(text) => Vec::new(),
            None => open.values_mut().filter(|open| open.may_be_answered(author, way, made)).collect(),
        };
        // Of several that are open, nothing tells which is meant.
        if !is_named && (entries.len() > 1 || !self.lanes.takes_unnamed(&author, &id)) {
            if !entries.is_empty() {
                self.lanes.doubt(&author);
            }
            return;
        }
        let entry = entries.pop();
        let Some(Open { kind: Waiting::One(exchange), changed }) = entry else { return };
        if exchange.take_message(author, way, text) {
            changed.notify_one();
            self.lanes.learn(&author, id, is_named);
            // One that wants to be paid first will still give the result.
            if exchange.has_ended() {
                self.lanes.answered(&author);
            }
        }
    }

    fn answered(&self, event: &UnsignedEvent, way: Way) {
        let Some((id, answer)) = answer::read(event) else { return };
        let mut open = self.open();
        let Some(entry) = open.get_mut(&id) else { return };
        let has_counted = match &mut entry.kind {
            Waiting::One(exchange) => exchange.take(event.pubkey, way, answer),
            Waiting::Everybody(collection) => collection.take(event.pubkey, answer),
        };
        if has_counted {
            entry.changed.notify_one();
        }
    }

    /// Resolves when it has become clear that no relay will take an event, and only then.
    pub(crate) async fn undeliverable(self: Arc<Self>, publication: Arc<Publication>) -> Error {
        const FOR_EVER: Duration = Duration::from_secs(24 * 60 * 60);
        if self.pool.urls().is_empty() {
            return Error::NoRelay;
        }
        loop {
            let is_lost = |statuses: &[Status]| lost(statuses, &publication.report()).is_some();
            tokio::select! {
                report = publication.settled() => {
                    if report.accepted > 0 {
                        return std::future::pending().await;
                    }
                    return error(report.verdicts.iter().map(|(relay, verdict)| complaint(relay, verdict)).collect(), &report);
                }
                _ = self.pool.wait(FOR_EVER, is_lost) => {}
            }
            let report = publication.report();
            if let Some(complaints) = lost(&self.pool.status(), &report) {
                return error(complaints, &report);
            }
        }
    }
}

/// If no relay has an event and none will: what each of them said.
fn lost(statuses: &[Status], report: &Report) -> Option<Vec<Complaint>> {
    if report.accepted > 0 {
        return None;
    }
    let of = |status: &Status| {
        let verdict = report.verdicts.iter().find(|(url, _)| *url == status.url).map(|(_, verdict)| verdict);
        match (verdict, &status.state) {
            (Some(verdict), _) => Some(complaint(&status.url, verdict)),
            // One that was there before is given some time to come back.
            (None, State::Down { reason, tries }) if status.counts.connections == 0 || *tries >= TRIES => {
                Some(complaint(&status.url, &Verdict::GaveUp(reason.clone())))
            }
            _ => None,
        }
    };
    statuses.iter().map(of).collect()
}

fn complaint(relay: &str, verdict: &Verdict) -> Complaint {
    let words = match verdict {
        Verdict::Accepted => String::new(),
        Verdict::Refused(words) | Verdict::GaveUp(words) => words.clone(),
        Verdict::Work { message, .. } => message.clone(),
        Verdict::TooLarge { limit } => format!("it takes at most {limit} bytes"),
        Verdict::Stopped => "we stopped".to_owned(),
    };
    Complaint { relay: relay.to_owned(), words: text::limited(&text::one_line(&words), 300) }
}

fn error(complaints: Vec<Complaint>, report: &Report) -> Error {
    let is_refusal = |verdict: &Verdict| !matches!(verdict, Verdict::Accepted | Verdict::GaveUp(_) | Verdict::Stopped);
    let was_refused = report.verdicts.iter().any(|(_, verdict)| is_refusal(verdict));
    if was_refused { Error::Refused(complaints) } else { Error::Unreachable(complaints) }
}

impl Interests {
    fn watches(&self, me: PublicKey) -> Vec<Watch> {
        let watch = |filter: Filter| Watch { filter, spread: SPREAD };
        let mut watches = vec![watch(dvmcp::customer_filter(me))];
        if self.messages {
            watches.push(watch(manifest::filter(me)));
        }
        if self.wraps {
            // Only those that come from now on: the wraps of two days would be sent again at every start. What may have
            // come while a relay was away is asked for when it is back.
            let spread = Duration::from_secs(seal::SPREAD_SECS);
            watches.push(Watch { filter: catch_up::wraps(me).limit(0), spread });
        }
        if !self.named.is_empty() {
            watches.push(watch(dvmcp::answers_filter(self.named.iter().copied())));
        }
        if !self.lists.is_empty() {
            watches.push(watch(dvmcp::tool_lists_filter().events(self.lists.iter().copied())));
        }
        watches.extend(self.providers.iter().map(|provider| watch(service::of(*provider))));
        watches
    }
}

/// Hands out what the relays bring, until the customer is gone.
async fn route(customer: Weak<Inner>, mut arrivals: mpsc::Receiver<Arrival>) {
    let mut connections = Connections::default();
    while let Some(arrival) = arrivals.recv().await {
        let Some(customer) = customer.upgrade() else { return };
        match arrival {
            Arrival::Event { event, .. } => customer.take(*event),
            Arrival::Subscribed { relay } => {
                let is_new = connections.is_new(&relay, &customer.pool.status());
                if is_new && customer.awaits_wraps() {
                    tokio::spawn(catch_up::run(customer));
                }
            }
            Arrival::Repeat { .. } => {}
        }
    }
}

pub(crate) fn seconds_after(now: Timestamp, more: Duration) -> Timestamp {
    Timestamp::from(now.as_secs().saturating_add(more.as_secs().max(1)))
}
