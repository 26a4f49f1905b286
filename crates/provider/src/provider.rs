//! The provider's loop: every cause of work is a variant of [`Cause`], and is dealt with to its end before the next.
//!
//! Tools run in tasks of their own; everything else (reading, checking, signing, recording) happens here, in order, so that
//! there is nothing to lock.

mod announce;
mod deliver;
mod intake;
mod money;
mod notes;
mod quote;
mod recovery;
mod token;
mod twin;
mod work;

use crate::call::Reply;
use crate::catalogue::Catalogue;
use crate::event::{Event, Observer};
use crate::job::State;
use crate::known::Memory;
use crate::limits::Gauge;
use crate::plan::{Plan, REANNOUNCE};
use crate::till::{self, Till};
use nostr::prelude::{Event as Signed, EventId, Filter, Timestamp};
use rialto_ledger::job::{FreeUse, Job as Stored, Quote, Stage, Step};
use rialto_ledger::ledger::{self, Account, Ledger, Presence};
use rialto_mcp::local::{Local, Notes};
use rialto_mcp::message::Notification;
use rialto_mcp::server::Service;
use rialto_payment::amount::Msat;
use rialto_payment::invoice::Invoice;
use rialto_payment::secret::Secret;
use rialto_payment::wallet;
use rialto_relay::clock::Clock;
use rialto_relay::own::REMEMBERED;
use rialto_relay::pool::{Arrival, Pool, Watch};
use rialto_relay::seal::{self, Sealer};
use rialto_wire::failure::{Code, Failure};
use rialto_wire::request::{Address, Body};
use rialto_wire::service::{Way, Wire};
use rialto_wire::{dvmcp, manifest};
use std::collections::{HashMap, VecDeque};
use std::future::{Future, poll_fn};
use std::io;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::Instant;

pub use twin::KeyInUse;

/// How long running tools are waited for when the provider stops.
const LAST_CALLS: Duration = Duration::from_secs(10);

/// Causes that are dealt with before what they led to is committed: the more, the fewer commits.
const MAX_BATCH: usize = 256;

/// How often we say that we are here, and take over what others have left.
const RENEW: Duration = Duration::from_secs(10);

/// How often money that comes late is looked for, and old jobs are forgotten.
const SWEEP: Duration = Duration::from_secs(60);

/// How long relays are given to take the last events.
const LAST_EVENTS: Duration = Duration::from_secs(3);

/// Undelivered answers that are sent again after a restart: not those that everybody has given up.
const STILL_WANTED_SECS: u64 = 600;

/// Who we are, to the MCP servers.
const INFO: &str = concat!("{\"name\":\"rialto\",\"version\":\"", env!("CARGO_PKG_VERSION"), "\"}");

/// What to subscribe to.
pub fn watches(plan: &Plan) -> Vec<Watch> {
    let me = plan.keys.public_key();
    let window = Duration::from_secs(plan.window.past);
    let watch = |filter: Filter| Watch { filter, spread: window };
    let mut watches = Vec::new();
    if plan.wires.contains(&Wire::Dvmcp) {
        watches.extend(dvmcp::provider_filters(me, plan.open_jobs).map(watch));
        // Somebody else who answers with our key is heard here.
        watches.push(Watch { filter: dvmcp::said_filter(me), spread: REMEMBERED });
    }
    if plan.wires.contains(&Wire::Manifest) {
        watches.push(watch(manifest::filter(me)));
    }
    watches.push(Watch { filter: seal::filter(me), spread: window + Duration::from_secs(seal::SPREAD_SECS) });
    watches
}

/// What makes the loop turn.
enum Cause {
    Arrival(Arrival),
    Noted(Notification),
    Ended(Ended),
    Delivered(EventId),
    /// What a customer has with us, for a request that costs something.
    Account {
        id: EventId,
        account: Result<Account, ledger::Error>,
    },
    /// The wallet has made an invoice, or has not.
    Invoiced {
        id: EventId,
        invoice: Result<Invoice, wallet::Error>,
    },
    /// A quote was paid, or ran out.
    Ending {
        id: EventId,
        ending: till::Ending,
    },
    /// A token was changed, or is worth nothing.
    Received {
        id: EventId,
        received: Result<Msat, wallet::Error>,
    },
    /// What was held has moved.
    Moved {
        id: EventId,
        moved: till::Moved,
    },
    /// Money for a quote that ran out, or the certainty that none comes.
    Late {
        job: Box<Stored>,
        standing: wallet::Standing,
    },
    /// An answer that could not be noted.
    Again(Box<(Step, deliver::Conclusion)>),
    /// Jobs that nobody looks after.
    Found(Vec<Stored>),
    Presence(Presence),
    Renew,
    Sweep,
    /// A relay wanted proof of work, and it is done.
    Worked {
        id: EventId,
        answers: Vec<Signed>,
    },
    /// The lists, or none if they could not be had in time.
    Reloaded(Option<Box<(Catalogue, Vec<String>)>>),
    Announce,
    /// Somebody else has said this with our key.
    Twin(EventId),
    Stop,
}

/// A tool has answered, or failed.
struct Ended {
    id: EventId,
    outcome: Result<Reply, Failure>,
}

/// A request as far as answering it goes: whom, which way, and what to call it.
#[derive(Debug, Clone)]
struct Ticket {
    address: Address,
    relay: Arc<str>,
    way: Way,
    came: Instant,
    what: String,
    expires: Option<Timestamp>,
    /// Where the ledger has it; `None` if it knows nothing of it.
    noted: Option<Stage>,
    fence: u64,
    /// What it costs, if it does.
    quote: Option<Quote>,
    /// The request itself, if it must survive.
    request: Option<String>,
}

/// One request on its way.
struct Job {
    ticket: Ticket,
    /// What is to be done; taken when it begins.
    body: Option<Body>,
    progress: bool,
    parts: bool,
    state: State,
    /// What is done for it meanwhile: the call, or watching its invoice.
    running: Option<AbortHandle>,
    last_progress: Option<Instant>,
    token: Option<Secret>,
    free_use: Option<FreeUse>,
    /// The request by which its token came, if that was another.
    payment: Option<Box<Ticket>>,
}

/// An answer that is given when the money is taken, or was given and the money goes back.
struct Settling {
    ticket: Ticket,
    answers: Vec<Signed>,
    /// Enough relays have the answers.
    is_delivered: bool,
}

/// What a provider keeps its books with.
#[derive(Debug, Clone)]
pub struct Books {
    pub ledger: Arc<dyn Ledger>,
    /// Without one everything is free.
    pub till: Option<Till>,
}

/// Everything that the loop works on.
struct Provider<S: Service> {
    plan: Plan,
    sealer: Sealer,
    pool: Pool,
    clock: Arc<dyn Clock>,
    observer: Observer,
    local: Arc<Local<S>>,
    ledger: Arc<dyn Ledger>,
    till: Option<Till>,
    known: Memory,
    /// To be committed, and what follows.
    notes: Vec<(Step, notes::After<S>)>,
    /// Delivered, to be noted.
    sent: Vec<[u8; 32]>,
    settling: HashMap<EventId, Settling>,
    /// Others serve with the same ledger.
    is_alone: bool,
    /// Somebody else serves with the same key, and another ledger.
    has_twin: bool,
    /// What was said with our key until then was said by an earlier process.
    started: Timestamp,
    gauge: Gauge,
    catalogue: Catalogue,
    jobs: HashMap<EventId, Job>,
    /// Jobs that wait for a place, in the order of their coming.
    queue: VecDeque<EventId>,
    /// Jobs that want progress, by their tokens.
    tokens: HashMap<u64, EventId>,
    next_token: u64,
    causes: mpsc::UnboundedSender<Cause>,
    announced: announce::Announced,
    is_loading: bool,
    load_again: bool,
    /// When the lists were asked for last.
    loaded: Option<Instant>,
    resent: Gauge,
}

/// Serves until `stop` comes true. `service` is what does the work; `pool` is connected and subscribed to [`watches`].
pub async fn run<S: Service>(
    plan: Plan,
    books: Books,
    service: Arc<S>,
    (pool, mut arrivals): (Pool, mpsc::Receiver<Arrival>),
    clock: Arc<dyn Clock>,
    observer: Observer,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    // A request may be dated ahead by `future`, and is taken until it is `past` old.
    let keep = plan.window.past.saturating_add(plan.window.future).saturating_add(60);
    let Books { ledger, till } = books;
    let now = clock.now();
    let seen = ledger.recent(now.as_secs().saturating_sub(keep)).await.map_err(io::Error::other)?;
    let found = ledger.take_over(now.as_secs().saturating_sub(STILL_WANTED_SECS)).await.map_err(io::Error::other)?;
    let (known, started) = (Memory::new(keep, now, &seen), now);
    let mut stop = std::pin::pin!(stop);
    let opened = tokio::select! {
        opened = Local::open(service, INFO) => opened,
        () = &mut stop => return Ok(()),
    };
    let (local, _, mut notes) = opened;
    let local = Arc::new(local);
    // Bounded by what feeds it: jobs, publications and reloads are.
    let (causes, mut caused) = mpsc::unbounded_channel();
    let now = Instant::now();
    let mut provider = Provider {
        gauge: Gauge::new(plan.limits.clone(), now),
        announced: announce::Announced::load(&plan.record),
        sealer: Sealer::new(plan.keys.clone()),
        plan,
        pool,
        clock,
        observer,
        local,
        ledger,
        till,
        known,
        notes: Vec::new(),
        sent: Vec::new(),
        settling: HashMap::new(),
        is_alone: true,
        has_twin: false,
        started,
        catalogue: Catalogue::default(),
        jobs: HashMap::new(),
        queue: VecDeque::new(),
        tokens: HashMap::new(),
        next_token: 1,
        causes,
        is_loading: false,
        load_again: false,
        loaded: None,
        resent: intake::resend_gauge(now),
    };
    // What is to be run waits until it is known what there is to run.
    let queued = provider.recover(found);
    provider.flush().await;
    let (local, prices) = (provider.local.clone(), provider.plan.prices.clone());
    let mut loading = std::pin::pin!(Catalogue::load(&local, &prices));
    let (catalogue, refused) = loop {
        tokio::select! {
            loaded = &mut loading => break loaded,
            // Servers that say much while they start must not have to wait for us; what changes meanwhile is asked for again.
            note = next_note(&mut notes) => provider.noted(&note),
            () = &mut stop => {
                provider.stop(&mut caused).await;
                return Ok(());
            }
        }
    };
    provider.offer(catalogue, &refused);
    provider.resume(queued);
    provider.flush().await;
    provider.observer.tell(Event::Ready { tools: provider.catalogue.names() });
    let mut announce = tokio::time::interval_at(now + REANNOUNCE, REANNOUNCE);
    let mut renew = tokio::time::interval(RENEW);
    let mut sweep = tokio::time::interval(SWEEP);
    for timer in [&mut renew, &mut sweep] {
        timer.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    }
    let mut turns = 0;
    loop {
        turns += 1;
        let cause = tokio::select! {
            biased;
            () = &mut stop => Cause::Stop,
            _ = announce.tick() => Cause::Announce,
            _ = renew.tick() => Cause::Renew,
            _ = sweep.tick() => Cause::Sweep,
            cause = heard(&mut caused, &mut notes, &mut arrivals, turns) => cause,
        };
        if matches!(cause, Cause::Stop) {
            break;
        }
        provider.turn(cause);
        // Whatever else is there by now goes into the same commit.
        for _ in 1..MAX_BATCH {
            let more = caused.try_recv().ok().or_else(|| arrivals.try_recv().ok().map(Cause::Arrival));
            let Some(cause) = more else { break };
            provider.turn(cause);
        }
        provider.flush().await;
        if provider.has_twin {
            break;
        }
    }
    provider.stop(&mut caused).await;
    if provider.has_twin { Err(io::Error::other(KeyInUse)) } else { Ok(()) }
}

/// The next thing that anybody says. Each is asked first in their turn: whoever talks all the time, a server or a relay, must
/// not keep the others from being heard. It is no matter of chance, so that a simulation can be repeated.
async fn heard(
    caused: &mut mpsc::UnboundedReceiver<Cause>,
    notes: &mut Notes,
    arrivals: &mut mpsc::Receiver<Arrival>,
    turns: usize,
) -> Cause {
    let mut note = std::pin::pin!(next_note(notes));
    poll_fn(|context| {
        for turn in turns..turns + 3 {
            let polled = match turn % 3 {
                0 => caused.poll_recv(context),
                1 => note.as_mut().poll(context).map(|note| Some(Cause::Noted(note))),
                _ => arrivals.poll_recv(context).map(|arrival| arrival.map(Cause::Arrival)),
            };
            // One who is gone says nothing any more.
            if let Poll::Ready(Some(cause)) = polled {
                return Poll::Ready(cause);
            }
        }
        Poll::Pending
    })
    .await
}

/// Never ends: the client is ours, and lives as long as the loop.
async fn next_note(notes: &mut Notes) -> Notification {
    match notes.next().await {
        Some(note) => note,
        None => std::future::pending().await,
    }
}

impl<S: Service> Provider<S> {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn turn(&mut self, cause: Cause) {
        match cause {
            Cause::Arrival(Arrival::Event { event, relay, stored }) => self.arrived(*event, relay, stored),
            Cause::Arrival(Arrival::Repeat { id, relay }) => self.repeated(&id, &relay),
            Cause::Arrival(Arrival::Subscribed { relay }) => self.subscribed(&relay),
            Cause::Noted(note) => self.noted(&note),
            Cause::Ended(ended) => self.ended(ended),
            Cause::Delivered(id) => self.delivered(&id),
            Cause::Account { id, account } => self.accounted(&id, account),
            Cause::Invoiced { id, invoice } => self.invoiced(&id, invoice),
            Cause::Ending { id, ending } => self.quote_ended(&id, ending),
            Cause::Received { id, received } => self.received(&id, received),
            Cause::Moved { id, moved } => self.moved(&id, moved),
            Cause::Late { job, standing } => self.late(*job, standing),
            Cause::Again(again) => {
                let (step, conclusion) = *again;
                self.conclude(step, conclusion);
            }
            Cause::Found(jobs) => {
                let queued = self.recover(jobs);
                self.resume(queued);
            }
            Cause::Presence(presence) => self.is_alone = presence == Presence::Alone,
            Cause::Renew => self.renew(),
            Cause::Sweep => self.sweep(),
            Cause::Worked { id, answers } => self.worked(id, &answers),
            Cause::Reloaded(loaded) => self.reloaded(loaded.map(|loaded| *loaded)),
            Cause::Announce => {
                self.announced.is_due = true;
                self.reload();
            }
            Cause::Twin(id) => self.has_met(&id),
            Cause::Stop => {}
        }
    }

    fn noted(&mut self, note: &Notification) {
        match note.method() {
            "notifications/progress" => self.progressed(note.params()),
            "notifications/tools/list_changed"
            | "notifications/resources/list_changed"
            | "notifications/prompts/list_changed" => self.reload(),
            _ => {}
        }
    }

    /// Lets running tools finish, answers the rest, withdraws the announcement.
    async fn stop(&mut self, caused: &mut mpsc::UnboundedReceiver<Cause>) {
        // What was not begun is left to whoever serves next: the relays, or the ledger, still have it.
        self.queue.clear();
        self.jobs.retain(|_, job| job.state == State::Running);
        self.flush().await;
        let end = Instant::now() + LAST_CALLS;
        while !self.jobs.is_empty() || !self.settling.is_empty() {
            match tokio::time::timeout_at(end, caused.recv()).await {
                Ok(Some(cause @ (Cause::Ended(_) | Cause::Delivered(_) | Cause::Moved { .. }))) => self.turn(cause),
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => break,
            }
            self.flush().await;
        }
        let mut left: Vec<EventId> = self.jobs.keys().copied().collect();
        left.sort_unstable();
        for id in left {
            let words = "the provider stopped during the call; nobody knows what it did";
            self.ended(Ended { id, outcome: Err(Failure::new(Code::OutcomeUnknown, words)) });
        }
        self.flush().await;
        // Others go on with the same service.
        if self.is_alone && !self.has_twin {
            self.withdraw();
        }
        self.pool.stop(LAST_EVENTS).await;
        while let Ok(cause) = caused.try_recv() {
            if matches!(cause, Cause::Delivered(_)) {
                self.turn(cause);
            }
        }
        self.flush().await;
    }
}
