//! A relay that does what the test says: well-behaved at first, and then as hostile as wanted.
//!
//! It checks nothing, so that forged and stale events reach the provider, and keeps everything that is said to it.

mod rules;
mod socket;
mod state;

use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::net::TcpListener;

pub use self::rules::{Judge, Rules, Tamper, Verdict};
pub use self::state::Heard;
use self::state::State;
use super::event::Event;
use super::{PATIENCE, runtime};

#[derive(Clone)]
pub struct FakeRelay {
    port: u16,
    state: Arc<(Mutex<State>, Condvar)>,
}

impl FakeRelay {
    pub fn start() -> Self {
        let mut relay = Self { port: 0, state: Arc::new((Mutex::new(State::new()), Condvar::new())) };
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
            let stays = !part.is_empty() && !connection.has(part);
            if !stays {
                connection.hang_up();
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
        self.try_wait(patience, |state| state.published.iter().find(|event| fits(event)).cloned())
    }

    /// Waits for a published event, accepted or not.
    #[track_caller]
    pub fn wait_for_event(&self, what: &str, fits: impl Fn(&Event) -> bool) -> Event {
        self.wait(what, PATIENCE, |state| state.published.iter().find(|event| fits(event)).cloned())
    }

    /// Waits until this many published events fit.
    #[track_caller]
    pub fn wait_for_events(&self, what: &str, count: usize, fits: impl Fn(&Event) -> bool) -> Vec<Event> {
        self.wait(what, PATIENCE, |state| {
            let found: Vec<Event> = state.published.iter().filter(|event| fits(event)).cloned().collect();
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
            state.connections.values().any(|connection| connection.has(part)).then_some(())
        });
    }

    /// Waits until this many connections have been made since it was started.
    #[track_caller]
    pub fn wait_for_connections(&self, count: usize) {
        self.wait(&format!("{count} connections"), PATIENCE, |state| (state.connected >= count).then_some(()));
    }

    /// All published events, accepted or not.
    pub fn published(&self) -> Vec<Event> {
        self.lock().published.clone()
    }

    /// Published events, from this one on.
    pub fn published_from(&self, first: usize) -> Vec<Event> {
        self.lock().published.get(first..).unwrap_or_default().to_vec()
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
        self.lock().inject(event, chosen)
    }

    /// Sends what was gathered to be shuffled.
    pub fn let_go(&self) {
        self.lock().let_go();
    }

    /// How much it has said that is not written to a socket yet.
    pub fn unwritten(&self) -> usize {
        self.lock().connections.values().map(|connection| connection.unwritten.load(Ordering::Relaxed)).sum()
    }

    /// Whether connections are taken.
    pub fn is_up(&self) -> bool {
        self.lock().listener.is_some()
    }
}
