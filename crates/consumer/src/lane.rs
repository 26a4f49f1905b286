//! Whose turn it is with providers whose messages may not say what they answer.
//!
//! Until a provider has shown that it says so, one call at a time is open to it, of all processes that use our key, so that
//! there is only one that an answer can belong to. A call that was given up may still be answered, and nothing would tell
//! that answer from the next one's: so the lane is closed for a while. It is noted as closed before anything is sent; a
//! process that is killed leaves it so.

use crate::error::Error;
use nostr::prelude::{EventId, PublicKey};
use rialto_relay::clock::Clock;
use rialto_store::{Changed, Document};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Seconds in which an answer that nobody waits for any more may still come.
const CLOSED_SECS: u64 = 60;

/// How often to look whether another process has finished its call.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Answers that are remembered. Relays keep them, and bring them again.
const MAX_TAKEN: usize = 100;

/// What is known about one provider, also after a restart.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Habits {
    /// Its answers say what they answer.
    #[serde(default)]
    names: bool,
    /// A call was given up, or is open.
    #[serde(default)]
    closed_until: u64,
    /// Answers that did not say what they answered.
    #[serde(default)]
    taken: VecDeque<EventId>,
}

#[derive(Debug, Default)]
struct Lane {
    habits: Habits,
    is_busy: bool,
    /// The call that has the lane was answered.
    is_answered: bool,
}

/// All of them.
#[derive(Debug)]
pub(crate) struct Lanes {
    /// Where habits are kept; `None` for this process alone.
    directory: Option<PathBuf>,
    clock: Arc<dyn Clock>,
    lanes: Mutex<HashMap<PublicKey, Lane>>,
    changed: Notify,
}

/// Held by the process that has the lane.
type Lock = Option<File>;

impl Lanes {
    pub(crate) fn new(directory: Option<&Path>, clock: Arc<dyn Clock>) -> Self {
        let directory = directory.map(|directory| directory.join("lanes"));
        Self { directory, clock, lanes: Mutex::default(), changed: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<PublicKey, Lane>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn document(&self, provider: &PublicKey) -> Option<Document> {
        Some(Document::new(self.directory.as_ref()?.join(provider.to_hex()).with_extension("json")))
    }

    /// Waits until a call may be made.
    pub(crate) async fn enter(self: &Arc<Self>, provider: PublicKey, patience: Duration) -> Result<Turn, Error> {
        let end = Instant::now() + patience;
        loop {
            let changed = self.changed.notified();
            if self.is_free(&provider) {
                if let Some(turn) = self.try_enter(provider)? {
                    return Ok(turn);
                }
                // Another process has it, and does not tell us when it is done.
                let _ = tokio::time::timeout(LOOK_AGAIN, changed).await;
            } else {
                let _ = tokio::time::timeout_at(end, changed).await;
            }
            if Instant::now() >= end {
                return Err(Error::NoAnswer(patience));
            }
        }
    }

    fn is_free(&self, provider: &PublicKey) -> bool {
        self.lock().get(provider).is_none_or(|lane| lane.habits.names || !lane.is_busy)
    }

    /// `None` if another process has the lane.
    fn try_enter(self: &Arc<Self>, provider: PublicKey) -> Result<Option<Turn>, Error> {
        let mut lanes = self.lock();
        let lane = lanes.entry(provider).or_default();
        let turn = |lock: Lock, has_lane: bool| {
            let lanes = self.clone();
            Turn { lanes, provider, has_lane, is_sent: false, _lock: lock }
        };
        if lane.habits.names {
            return Ok(Some(turn(None, false)));
        }
        let lock = match &self.directory {
            Some(directory) => match rialto_store::hold(directory, &format!("{}.turn", provider.to_hex()))? {
                Some(lock) => Some(lock),
                None => return Ok(None),
            },
            None => None,
        };
        if let Some(document) = self.document(&provider) {
            lane.habits = document.read()?;
            if lane.habits.names {
                return Ok(Some(turn(None, false)));
            }
        }
        let now = self.clock.now().as_secs();
        let left = lane.habits.closed_until.saturating_sub(now);
        // What is closed for longer was noted while the clock was wrong.
        if (1..=CLOSED_SECS).contains(&left) {
            return Err(Error::Unclear(Duration::from_secs(left)));
        }
        (lane.is_busy, lane.is_answered) = (true, false);
        lane.habits.closed_until = now + CLOSED_SECS;
        let noted = self.note(&provider, &lane.habits);
        if let Err(error) = noted {
            lane.is_busy = false;
            return Err(error.into());
        }
        Ok(Some(turn(lock, true)))
    }

    fn note(&self, provider: &PublicKey, habits: &Habits) -> Result<(), rialto_store::Error> {
        let Some(document) = self.document(provider) else { return Ok(()) };
        document.update(|known: &mut Habits| {
            let changed = if known == habits { Changed::No } else { Changed::Yes };
            known.clone_from(habits);
            ((), changed)
        })
    }

    /// A call was answered, and nothing more is to come.
    pub(crate) fn answered(&self, provider: &PublicKey) {
        if let Some(lane) = self.lock().get_mut(provider) {
            lane.is_answered = true;
        }
    }

    /// A message was taken that says what it answers, or that does not.
    pub(crate) fn learn(&self, provider: &PublicKey, answer: EventId, is_named: bool) {
        if let Some(lane) = self.lock().get_mut(provider) {
            lane.habits.names |= is_named;
            if !is_named {
                lane.habits.taken.push_back(answer);
                if lane.habits.taken.len() > MAX_TAKEN {
                    lane.habits.taken.pop_front();
                }
            }
        }
        if is_named {
            self.changed.notify_waiters();
        }
    }

    /// Something that looks like an answer did not say what it answers. That call is lost, but the next goes alone, once no
    /// answer to those that are open can come any more.
    pub(crate) fn doubt(&self, provider: &PublicKey) {
        if let Some(lane) = self.lock().get_mut(provider).filter(|lane| lane.habits.names) {
            lane.habits.names = false;
            self.close(provider, lane);
        }
    }

    /// Closes a lane for a while.
    fn close(&self, provider: &PublicKey, lane: &mut Lane) {
        lane.habits.closed_until = self.clock.now().as_secs() + CLOSED_SECS;
        // What cannot be noted is found out again.
        let _ = self.note(provider, &lane.habits);
    }

    /// Whether an answer that does not say what it answers counts.
    pub(crate) fn takes_unnamed(&self, provider: &PublicKey, answer: &EventId) -> bool {
        let lanes = self.lock();
        lanes.get(provider).is_some_and(|lane| {
            lane.is_busy && !lane.is_answered && !lane.habits.names && !lane.habits.taken.contains(answer)
        })
    }
}

/// The right to have a call open. Dropping it lets the next one in.
#[derive(Debug)]
pub(crate) struct Turn {
    lanes: Arc<Lanes>,
    provider: PublicKey,
    /// Nobody else may call meanwhile.
    has_lane: bool,
    is_sent: bool,
    _lock: Lock,
}

impl Turn {
    /// The request is on its way: from now on an answer may come.
    pub(crate) fn sent(&mut self) {
        self.is_sent = true;
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(lane) = self.lanes.lock().get_mut(&self.provider) {
            let is_clear = lane.habits.names || !self.is_sent || (self.has_lane && lane.is_answered);
            if self.has_lane {
                lane.is_busy = false;
            }
            if !is_clear {
                self.lanes.close(&self.provider, lane);
            } else if self.has_lane {
                lane.habits.closed_until = 0;
                // If it cannot be noted, the lane stays closed for a minute longer than it must.
                let _ = self.lanes.note(&self.provider, &lane.habits);
            }
        }
        if self.has_lane {
            self.lanes.changed.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CLOSED_SECS, Lanes};
    use crate::error::Error;
    use nostr::prelude::{EventId, Keys, Timestamp};
    use rialto_relay::clock::Clock;
    use std::path::Path;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;
    use tokio::time::{sleep, timeout};

    const SOON: Duration = Duration::from_secs(5);

    /// A clock that is set by hand.
    #[derive(Debug, Clone, Default)]
    struct Hand(Arc<AtomicU64>);

    impl Clock for Hand {
        fn now(&self) -> Timestamp {
            Timestamp::from(self.0.load(Ordering::Relaxed))
        }
    }

    fn lanes(directory: Option<&Path>, clock: &Hand) -> Arc<Lanes> {
        Arc::new(Lanes::new(directory, Arc::new(clock.clone())))
    }

    fn answer(number: u8) -> EventId {
        EventId::from_byte_array([number; 32])
    }

    #[tokio::test(start_paused = true)]
    async fn one_at_a_time_until_answers_say_what_they_answer() {
        let (lanes, provider) = (lanes(None, &Hand::default()), Keys::generate().public_key());
        let first = lanes.enter(provider, SOON).await.unwrap();
        assert!(lanes.takes_unnamed(&provider, &answer(1)));
        assert!(matches!(lanes.enter(provider, SOON).await, Err(Error::NoAnswer(_))), "the lane is taken");
        assert!(lanes.enter(Keys::generate().public_key(), SOON).await.is_ok(), "another provider has its own");
        lanes.learn(&provider, answer(1), false);
        assert!(lanes.takes_unnamed(&provider, &answer(2)), "it wants to be paid; the result comes later");
        lanes.answered(&provider);
        assert!(!lanes.takes_unnamed(&provider, &answer(2)), "it was answered");
        drop(first);
        let second = lanes.enter(provider, SOON).await.unwrap();
        assert!(!lanes.takes_unnamed(&provider, &answer(1)), "that was the answer to another call");
        let waiting = tokio::spawn({
            let lanes = lanes.clone();
            async move { lanes.enter(provider, SOON).await.is_ok() }
        });
        sleep(Duration::from_secs(1)).await;
        lanes.learn(&provider, answer(2), true);
        assert!(timeout(SOON, waiting).await.unwrap().unwrap(), "now they may all go");
        assert!(!lanes.takes_unnamed(&provider, &answer(3)));
        drop(second);
        assert!(lanes.enter(provider, SOON).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_was_given_up_closes_the_lane_for_a_while() {
        let clock = Hand::default();
        let (lanes, provider) = (lanes(None, &clock), Keys::generate().public_key());
        drop(lanes.enter(provider, SOON).await.unwrap());
        let mut turn = lanes.enter(provider, SOON).await.expect("nothing was sent");
        turn.sent();
        drop(turn);
        assert!(matches!(lanes.enter(provider, SOON).await, Err(Error::Unclear(_))));
        clock.0.store(CLOSED_SECS, Ordering::Relaxed);
        let turn = lanes.enter(provider, SOON).await.unwrap();
        lanes.learn(&provider, answer(1), true);
        drop(turn);
        drop(lanes.enter(provider, SOON).await.unwrap());
        assert!(lanes.enter(provider, SOON).await.is_ok(), "answers say what they answer: nothing can be confused");
        let mut open = lanes.enter(provider, SOON).await.unwrap();
        open.sent();
        lanes.doubt(&provider);
        let next = lanes.enter(provider, SOON).await;
        assert!(matches!(next, Err(Error::Unclear(_))), "one of them did not: {next:?}");
        clock.0.store(2 * CLOSED_SECS, Ordering::Relaxed);
        drop(open);
        assert!(
            matches!(lanes.enter(provider, SOON).await, Err(Error::Unclear(_))),
            "its answer may not say it either"
        );
        clock.0.store(3 * CLOSED_SECS, Ordering::Relaxed);
        let _turn = lanes.enter(provider, SOON).await.unwrap();
        assert!(matches!(lanes.enter(provider, SOON).await, Err(Error::NoAnswer(_))), "one at a time again");
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_was_wrong_does_not_close_a_lane_for_long() {
        let clock = Hand::default();
        let (lanes, provider) = (lanes(None, &clock), Keys::generate().public_key());
        clock.0.store(1_000_000, Ordering::Relaxed);
        let mut turn = lanes.enter(provider, SOON).await.unwrap();
        turn.sent();
        drop(turn);
        clock.0.store(1000, Ordering::Relaxed);
        assert!(lanes.enter(provider, SOON).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn other_processes_wait_their_turn_and_know_what_was_learned() {
        let (clock, directory) = (Hand::default(), tempfile::tempdir().unwrap());
        let provider = Keys::generate().public_key();
        let [one, other] = [(); 2].map(|()| lanes(Some(directory.path()), &clock));
        let turn = one.enter(provider, SOON).await.unwrap();
        assert!(matches!(other.enter(provider, SOON).await, Err(Error::NoAnswer(_))), "it is another's turn");
        one.learn(&provider, answer(1), false);
        one.answered(&provider);
        drop(turn);
        let turn = other.enter(provider, SOON).await.unwrap();
        assert!(!other.takes_unnamed(&provider, &answer(1)), "the other process took it");
        assert!(other.takes_unnamed(&provider, &answer(2)));
        // A process that is killed leaves what it had noted; its lock goes with it.
        let third = lanes(Some(directory.path()), &clock);
        let noted = std::fs::read(third.document(&provider).unwrap().path()).unwrap();
        drop(turn);
        std::fs::write(third.document(&provider).unwrap().path(), noted).unwrap();
        assert!(matches!(third.enter(provider, SOON).await, Err(Error::Unclear(_))));
        let provider = Keys::generate().public_key();
        let turn = one.enter(provider, SOON).await.unwrap();
        one.learn(&provider, answer(1), true);
        drop(turn);
        let turns = (third.enter(provider, SOON).await, third.enter(provider, SOON).await);
        assert!(turns.0.is_ok() && turns.1.is_ok(), "that its answers say what they answer is known to all");
    }
}
