//! Relays: asking them, and telling them.
//!
//! [`route`] says which relays, [`fetch`] asks them and [`send`] tells them. Everything here is bounded: how many relays are
//! used for one thing, how many connections are open, how long anybody waits.

mod fetch;
mod route;
mod send;
mod versions;

pub(crate) use self::fetch::newest_of;
pub(crate) use self::route::{Author, List, Route, add};
pub(crate) use self::send::{Sent, send_through};

use crate::failure::Failure;
use crate::guard::Guard;
use crate::signer::Signer;
use crate::store::Store;
use crate::tool::Turn;
use nostr::prelude::{Event, PublicKey, RelayUrl, UnsignedEvent};
use rialto_relay::address::Reach;
use rialto_relay::clock::Clock;
use rialto_relay::pool::{self, Pool, Watch};
use rialto_relay::sign::Sign;
use rialto_relay::socket::{Guarded, Later};
use rialto_relay::status::{State, Status};
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How long relays have to answer, unless told otherwise.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// Nobody can ask us to wait longer.
const MAX_PATIENCE: Duration = Duration::from_secs(120);

/// How long relays have to take an event.
const PUBLISH: Duration = Duration::from_secs(15);

/// Connections of one identity that stay open.
const MAX_OPEN: usize = 32;

/// Identities whose connections stay open.
const MAX_POOLS: usize = 8;

/// A relay that is away is tried again at once when it is needed, but not more often than this.
const REDIAL: Duration = Duration::from_secs(3);

/// How long tools wait for a relay to be connected before they tell how it is.
const CONNECT: Duration = Duration::from_secs(5);

/// What callers ask for, within reason.
pub(crate) fn patience(seconds: Option<u64>) -> Duration {
    seconds.map_or(PATIENCE, |seconds| Duration::from_secs(seconds.max(1)).min(MAX_PATIENCE))
}

/// Who is told how far we are.
#[derive(Clone, Copy)]
pub(crate) struct Progress<'a>(Option<&'a Turn<'a>>);

impl<'a> Progress<'a> {
    /// Nobody.
    pub(crate) const NONE: Progress<'static> = Progress(None);

    pub(crate) fn of(turn: &'a Turn<'_>) -> Self {
        Self(Some(turn))
    }

    pub(crate) async fn tell(&self, words: &str) {
        if let Some(turn) = self.0 {
            turn.progress(words).await;
        }
    }
}

/// Connections to relays, made when they are needed, for each identity its own: a relay that wants to know who we are must not
/// learn that several of them are one.
#[derive(Debug)]
pub(crate) struct Network {
    pub(crate) store: Store,
    /// Where strangers may send us.
    pub(crate) reach: Reach,
    /// The operator's relays.
    given: Vec<RelayUrl>,
    guard: Guard,
    clock: Arc<dyn Clock>,
    state: Mutex<Known>,
    /// Taken by whoever replaces something.
    pub(crate) edits: tokio::sync::Mutex<()>,
    /// For whoever replaces something without reading it first.
    pub(crate) versions: versions::Versions,
}

#[derive(Debug, Default)]
struct Known {
    pools: HashMap<Option<PublicKey>, Connections>,
    lists: HashMap<PublicKey, route::Entry>,
    /// Relays that the user has disconnected.
    paused: HashSet<RelayUrl>,
    searchable: HashMap<RelayUrl, bool>,
}

#[derive(Debug)]
struct Connections {
    pool: Pool,
    used: HashMap<RelayUrl, Instant>,
    dialled: HashMap<RelayUrl, Instant>,
    last: Instant,
}

impl Network {
    pub(crate) fn new(directory: &Path, relays: Vec<RelayUrl>, clock: Arc<dyn Clock>) -> Result<Self, Failure> {
        // The operator's relays may be at home; nobody else's may.
        let hosts = relays.iter().filter_map(|relay| relay.host()).map(|host| host.to_string());
        Ok(Self {
            store: Store::new(directory),
            reach: Reach::with_hosts(hosts),
            given: relays,
            guard: Guard::default(),
            clock,
            state: Mutex::default(),
            edits: tokio::sync::Mutex::new(()),
            versions: versions::Versions::default(),
        })
    }

    /// Keeps to what the operator allows.
    #[must_use]
    pub(crate) fn within(mut self, guard: &Guard) -> Self {
        self.guard = guard.clone();
        self
    }

    fn state(&self) -> MutexGuard<'_, Known> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn options(&self, who: Option<&Signer>) -> pool::Options {
        let keys = who.and_then(Signer::local).cloned();
        let signer = who.filter(|who| who.local().is_none()).cloned().map(Arc::new);
        pool::Options {
            keys,
            signer: signer.map(|signer| signer as Arc<dyn Sign>),
            give_up: PUBLISH,
            quorum: 1,
            hears_itself: true,
            seed: None,
            clock: self.clock.clone(),
            dial: Arc::new(Guarded(self.reach.clone())),
        }
    }

    /// The connections of one identity, or of nobody, with these relays among them.
    fn pool(&self, who: Option<&Signer>, relays: &[RelayUrl]) -> Pool {
        let key = who.map(Signer::public_key);
        let now = Instant::now();
        let mut state = self.state();
        if !state.pools.contains_key(&key) && state.pools.len() >= MAX_POOLS {
            let oldest = state.pools.iter().filter(|(key, _)| key.is_some()).min_by_key(|(_, one)| one.last);
            if let Some(oldest) = oldest.map(|(key, _)| *key) {
                state.pools.remove(&oldest);
            }
        }
        let connections = state.pools.entry(key).or_insert_with(|| Connections {
            pool: Pool::start(&[], Vec::new(), self.options(who)).0,
            used: HashMap::new(),
            dialled: HashMap::new(),
            last: now,
        });
        connections.last = now;
        let away: HashSet<Arc<str>> =
            connections.pool.status().into_iter().filter(is_away).map(|status| status.url).collect();
        for relay in relays {
            let is_due = connections.dialled.get(relay).is_none_or(|before| *before + REDIAL <= now);
            if is_due && away.contains(relay.as_str_without_trailing_slash()) {
                connections.pool.remove(relay);
                connections.dialled.insert(relay.clone(), now);
            }
            connections.pool.add(relay);
            connections.used.insert(relay.clone(), now);
        }
        connections.close_unused(relays);
        connections.pool.clone()
    }

    /// Connections for one purpose, which hear of what `watches` describe.
    pub(crate) fn pool_apart(
        &self,
        who: Option<&Signer>,
        relays: &[RelayUrl],
        watches: Vec<Watch>,
    ) -> (Pool, tokio::sync::mpsc::Receiver<pool::Arrival>) {
        Pool::start(relays, watches, self.options(who))
    }

    /// How the relays are that strangers do not know us by.
    pub(crate) fn status(&self) -> Vec<Status> {
        let state = self.state();
        state.pools.get(&None).map(|connections| connections.pool.status()).unwrap_or_default()
    }

    /// Connects, and waits a moment for it.
    pub(crate) async fn connect(&self, relays: &[RelayUrl]) {
        {
            let mut state = self.state();
            for relay in relays {
                state.paused.remove(relay);
                // Who asks for a connection wants it now, not after the next pause.
                for connections in state.pools.values_mut() {
                    if connections.pool.status().iter().any(|status| is_away(status) && is_at(status, relay)) {
                        connections.pool.remove(relay);
                    }
                }
            }
        }
        let pool = self.pool(None, relays);
        let is_decided = |status: &Status| !matches!(status.state, State::Connecting);
        let ours = |status: &&Status| relays.iter().any(|relay| is_at(status, relay));
        pool.wait(CONNECT, |all| all.iter().filter(ours).all(is_decided)).await;
    }

    /// Ends the connections to these relays, of everybody, and leaves them alone until they are wanted again.
    pub(crate) fn disconnect(&self, relays: &[RelayUrl]) {
        let mut state = self.state();
        for relay in relays {
            for connections in state.pools.values_mut() {
                connections.pool.remove(relay);
                connections.used.remove(relay);
            }
            state.paused.insert(relay.clone());
        }
    }
}

impl Connections {
    /// Ends the connections that were used longest ago, if there are too many.
    fn close_unused(&mut self, wanted: &[RelayUrl]) {
        while self.used.len() > MAX_OPEN.max(wanted.len()) {
            let oldest = self.used.iter().filter(|(relay, _)| !wanted.contains(relay)).min_by_key(|(_, time)| **time);
            let Some(oldest) = oldest.map(|(relay, _)| relay.clone()) else { return };
            self.pool.remove(&oldest);
            self.used.remove(&oldest);
            self.dialled.remove(&oldest);
        }
    }
}

/// Relays that want to know who we are are told by whoever signs.
impl Sign for Signer {
    fn public_key(&self) -> PublicKey {
        Signer::public_key(self)
    }

    fn sign(&self, event: UnsignedEvent) -> Later<'_, Option<Event>> {
        Box::pin(async move { Signer::sign(self, event).await.ok() })
    }
}

fn is_away(status: &Status) -> bool {
    matches!(status.state, State::Down { .. })
}

/// Whether this is how that relay is.
pub(crate) fn is_at(status: &Status, relay: &RelayUrl) -> bool {
    *status.url == *relay.as_str_without_trailing_slash()
}

/// Why a relay did not do what it was asked for, as far as we know.
fn excuse(statuses: &[Status], relay: &RelayUrl) -> String {
    let status = statuses.iter().find(|status| is_at(status, relay));
    match status.map(|status| (&status.state, &status.complaint)) {
        Some((State::Down { reason, .. }, _)) => reason.clone(),
        Some((State::Connecting, _)) => "no connection yet".to_owned(),
        Some((_, Some(complaint))) => complaint.clone(),
        _ => "no answer in time".to_owned(),
    }
}
