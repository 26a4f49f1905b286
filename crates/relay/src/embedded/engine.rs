//! What all connections of a relay share: the stored events and the open subscriptions.
//!
//! One lock guards both. That is what makes a subscription exact: it is opened and its stored events are numbered in
//! the same moment, so no event is missed between them and none comes twice. Nothing slow happens under the lock;
//! signatures are checked before it is taken.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use super::event::{Event, Unverified};
use super::explain;
use super::filter::Filter;
use super::journal::Journal;
use super::live::{Live, Subscription, Ticket};
use super::options::Options;
use super::store::{Refusal, Step, Store, Walk};

/// How many candidates one step of a query looks at: well below a millisecond.
const STEP: usize = 2000;

/// Reading the text of an event takes longer than comparing its fields.
const SEARCH_STEP: usize = 100;

/// How many expired events are removed before others get the lock.
const SWEEP_STEP: usize = 500;

#[derive(Debug)]
pub(super) struct Engine {
    pub(super) options: Options,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    store: Store,
    live: Live,
    journal: Option<Journal>,
}

/// What an OK message says about an event.
#[derive(Debug)]
pub(super) struct Verdict {
    pub(super) accepted: bool,
    pub(super) why: String,
}

impl Verdict {
    fn accepted() -> Self {
        Self { accepted: true, why: String::new() }
    }

    pub(super) fn refused(why: impl Into<String>) -> Self {
        Self { accepted: false, why: why.into() }
    }
}

impl From<Refusal> for Verdict {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            // Whoever publishes an event again wants it to be here, and it is.
            Refusal::Duplicate => Self { accepted: true, why: "duplicate: already have this event".to_owned() },
            Refusal::Replaced => Self::refused("duplicate: a newer version is stored"),
            Refusal::Deleted => Self::refused("blocked: its author has deleted this event"),
            Refusal::Full => Self::refused("error: the store is full, and all of it is newer"),
        }
    }
}

impl Engine {
    pub(super) fn new(options: Options) -> std::io::Result<Self> {
        let mut store = Store::new(options.limits.max_events, options.limits.max_stored_bytes);
        let open = |path: &Path| {
            Journal::open(path, &mut store, now()).map_err(|error| explain("use the file", path.display(), &error))
        };
        let journal = options.store.as_deref().map(open).transpose()?;
        Ok(Self { options, state: Mutex::new(State { store, live: Live::default(), journal }) })
    }

    /// Whether an event is here already, so that its signature need not be checked again.
    pub(super) fn find_duplicate(&self, event: &Unverified<'_>) -> Option<Verdict> {
        self.lock().store.contains(&event.id()).then(|| Refusal::Duplicate.into())
    }

    /// Stores an event as far as its kind allows, and hands it to everyone who waits for it.
    pub(super) fn publish(&self, event: Event) -> Verdict {
        let event = Arc::new(event);
        let mut state = self.lock();
        if event.storage().is_stored() {
            if let Err(refusal) = state.store.check(&event) {
                return refusal.into();
            }
            if let Some(Err(error)) = state.journal.as_mut().map(|journal| journal.append(&event)) {
                return Verdict::refused(format!("error: the event cannot be written down: {}", error.kind()));
            }
            state.store.insert(&event);
        }
        state.live.deliver(&event);
        Verdict::accepted()
    }

    /// Opens a subscription and returns where its stored events end.
    pub(super) fn open(&self, subscription: Arc<Subscription>) -> (Ticket, u64) {
        let mut state = self.lock();
        (state.live.open(subscription), state.store.serial())
    }

    pub(super) fn close(&self, ticket: Ticket) {
        self.lock().live.close(ticket);
    }

    /// The number of the newest stored event.
    pub(super) fn serial(&self) -> u64 {
        self.lock().store.serial()
    }

    /// Finds the stored events up to number `as_of` that match any of the filters, newest first.
    pub(super) async fn query(&self, filters: &[Filter], as_of: u64, max_limit: usize) -> Vec<Arc<Event>> {
        let mut found = Vec::new();
        for filter in filters {
            let wanted = filter.limit.unwrap_or(max_limit).min(max_limit);
            let mut walk = Walk::new(as_of, now(), wanted);
            let budget = if filter.search.is_some() { SEARCH_STEP } else { STEP };
            while wanted > 0 && self.lock().store.step(filter, &mut walk, budget) == Step::More {
                tokio::task::yield_now().await;
            }
            found.append(&mut walk.found);
        }
        if filters.len() > 1 {
            found.sort_unstable_by_key(|event| event.position());
            found.dedup_by_key(|event| event.id);
        }
        found
    }

    /// Removes expired events, and rewrites the file when most of it is of no use any more.
    pub(super) fn keep_house(&self) {
        while self.lock().store.sweep(now(), SWEEP_STEP) == Step::More {}
        let snapshot = {
            let state = &mut *self.lock();
            let live = state.store.len();
            let journal = state.journal.as_mut().filter(|journal| journal.is_mostly_dead(live));
            journal.map(|journal| (journal.begin_compaction(), state.store.all()))
        };
        let Some((draft, events)) = snapshot else { return };
        // The long part happens without the lock. A failure leaves the old file as it is.
        let written = draft.write(&events);
        if let Some(journal) = &mut self.lock().journal {
            journal.end_compaction(written);
        }
    }

    /// Sees to it that what was stored is on the disk.
    pub(super) fn flush(&self) {
        if let Some(journal) = &mut self.lock().journal {
            journal.flush();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere must not end the relay for everyone.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Seconds since 1970.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
