//! The clients that began with `initialize`, and the streams that each of them has.

use crate::server::events::{Manner, Stream};
use rialto_mcp::outlet::{Drain, Outlet, push};
use rialto_mcp::server::{Service, Session};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Sessions at once. When there are more, the one that has rested longest ends.
const MAX_SESSIONS: usize = 4096;

/// How long a session may rest.
const MAX_REST: Duration = Duration::from_secs(30 * 60);

/// How long what a client missed is kept for it: the rest of a stream whose connection broke.
const MAX_ABSENCE: Duration = Duration::from_secs(5 * 60);

/// How long a stream that was sent to its end is kept, in case its end did not arrive.
const AFTERLIFE: Duration = Duration::from_secs(30);

/// Streams of one session that are kept for its client's return.
const MAX_STREAMS: usize = 256;

/// The number of the stream for what belongs to no request.
pub(super) const PUSH: u64 = 0;

/// One client's session.
pub(super) struct Held<S: Service> {
    pub(super) id: String,
    pub(super) session: Arc<Session<S>>,
    pub(super) outlet: Outlet,
    pub(super) push: Arc<Stream>,
    service: Arc<S>,
    state: Mutex<State>,
}

struct State {
    next: u64,
    streams: BTreeMap<u64, Arc<Stream>>,
    used: Instant,
}

impl<S: Service> Held<S> {
    pub(super) fn new(service: Arc<S>, manner: Manner) -> Arc<Self> {
        let (outlet, drain) = push();
        let session = Session::new(service.clone(), outlet.clone());
        let state = State { next: PUSH + 1, streams: BTreeMap::new(), used: Instant::now() };
        Arc::new(Self {
            id: random(),
            session,
            outlet,
            push: Stream::new(PUSH, manner, drain),
            service,
            state: Mutex::new(state),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A stream for one request, which the client can come back to.
    pub(super) fn stream(&self, drain: Drain) -> Arc<Stream> {
        let mut state = self.state();
        let number = state.next;
        state.next += 1;
        let stream = Stream::new(number, Manner::Kept, drain);
        if state.streams.len() >= MAX_STREAMS {
            let oldest = state.streams.iter().find(|(_, stream)| !stream.has_reader()).map(|(number, _)| *number);
            oldest.and_then(|number| state.streams.remove(&number));
        }
        state.streams.insert(number, stream.clone());
        stream
    }

    pub(super) fn stream_of(&self, number: u64) -> Option<Arc<Stream>> {
        if number == PUSH { Some(self.push.clone()) } else { self.state().streams.get(&number).cloned() }
    }

    /// Forgets streams that nobody will come back to.
    fn sweep(&self) {
        self.state().streams.retain(|_, stream| {
            let bound = if stream.has_ended() { AFTERLIFE } else { MAX_ABSENCE };
            stream.unread_for().is_none_or(|time| time < bound)
        });
    }

    /// Forgets streams whose clients have gone.
    pub(super) fn forget_unread(&self) {
        self.state().streams.retain(|_, stream| stream.has_reader());
    }

    fn rests_for(&self) -> Option<Duration> {
        let is_busy = self.push.has_reader() || !self.session.is_idle();
        (!is_busy).then(|| self.state().used.elapsed())
    }
}

impl<S: Service> Drop for Held<S> {
    fn drop(&mut self) {
        self.session.stop();
        self.session.abandon();
        self.outlet.finish();
        self.service.closed(self.session.peer());
    }
}

/// All of them.
pub(super) struct Sessions<S: Service>(Mutex<HashMap<String, Arc<Held<S>>>>);

impl<S: Service> Sessions<S> {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::default()))
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, Arc<Held<S>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn len(&self) -> usize {
        self.all().len()
    }

    pub(super) fn each(&self) -> Vec<Arc<Held<S>>> {
        self.all().values().cloned().collect()
    }

    pub(super) fn get(&self, id: &str) -> Option<Arc<Held<S>>> {
        let held = self.all().get(id).cloned()?;
        held.state().used = Instant::now();
        Some(held)
    }

    /// Keeps a session; `false` if there is no room and nobody rests.
    pub(super) fn put(self: &Arc<Self>, held: &Arc<Held<S>>) -> bool {
        let evicted = {
            let mut all = self.all();
            let mut evicted = None;
            if all.len() >= MAX_SESSIONS {
                let resting = all.values().filter_map(|held| Some((held.rests_for()?, held.id.clone())));
                let Some((_, id)) = resting.max_by_key(|(time, _)| *time) else { return false };
                evicted = all.remove(&id);
            }
            all.insert(held.id.clone(), held.clone());
            evicted
        };
        drop(evicted);
        // `shutdown` ends a session once everything is answered.
        let (sessions, id, session) = (Arc::downgrade(self), held.id.clone(), held.session.clone());
        tokio::spawn(async move {
            session.drained().await;
            if let Some(sessions) = sessions.upgrade() {
                sessions.remove(&id);
            }
        });
        true
    }

    pub(super) fn remove(&self, id: &str) -> bool {
        let removed = self.all().remove(id);
        removed.is_some()
    }

    /// Ends what nobody has used for long.
    pub(super) fn sweep(&self) {
        for held in self.each() {
            held.sweep();
            if held.rests_for().is_some_and(|time| time > MAX_REST) {
                self.remove(&held.id);
            }
        }
    }
}

/// 128 bits that nobody can guess.
fn random() -> String {
    let mut bytes = [0_u8; 16];
    let mut filled = 0;
    while filled < bytes.len() {
        // It can only be interrupted.
        filled += rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty()).unwrap_or(0);
    }
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
