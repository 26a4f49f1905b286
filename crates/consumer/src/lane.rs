//! Whose turn it is with providers whose messages may not say what they answer.
//!
//! Until a provider has shown that it says so, one call at a time is open to it, so that there is only one that an answer can
//! belong to. A call that was given up may still be answered, and nothing would tell that answer from the next one's: so the
//! lane is closed for a while.

use crate::error::Error;
use nostr::prelude::PublicKey;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// How long an answer that nobody waits for any more may still come.
const CLOSED: Duration = Duration::from_secs(60);

/// What is known about one provider.
#[derive(Debug, Default)]
struct Lane {
    /// Its answers say what they answer.
    names: bool,
    is_busy: bool,
    /// The call that has the lane was answered.
    is_answered: bool,
    closed_until: Option<Instant>,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    lanes: Mutex<HashMap<PublicKey, Lane>>,
    changed: Notify,
}

impl Lanes {
    fn lock(&self) -> MutexGuard<'_, HashMap<PublicKey, Lane>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a call may be made.
    pub(crate) async fn enter(self: &Arc<Self>, provider: PublicKey, patience: Duration) -> Result<Turn, Error> {
        let end = Instant::now() + patience;
        loop {
            let changed = self.changed.notified();
            if let Some(entered) = self.try_enter(provider) {
                return entered;
            }
            if tokio::time::timeout_at(end, changed).await.is_err() {
                return Err(Error::NoAnswer(patience));
            }
        }
    }

    /// `None` if another call has the lane.
    fn try_enter(self: &Arc<Self>, provider: PublicKey) -> Option<Result<Turn, Error>> {
        let mut lanes = self.lock();
        let lane = lanes.entry(provider).or_default();
        if !lane.names {
            let now = Instant::now();
            if let Some(until) = lane.closed_until.filter(|until| *until > now) {
                return Some(Err(Error::Unclear(until - now)));
            }
            if lane.is_busy {
                return None;
            }
            *lane = Lane { is_busy: true, ..Lane::default() };
        }
        Some(Ok(Turn { lanes: self.clone(), provider }))
    }

    /// A call was answered, by a message that says so or that does not.
    pub(crate) fn learn(&self, provider: &PublicKey, is_named: bool) {
        if let Some(lane) = self.lock().get_mut(provider) {
            lane.is_answered = true;
            lane.names |= is_named;
        }
        if is_named {
            self.changed.notify_waiters();
        }
    }

    /// Whether answers that do not say what they answer count.
    pub(crate) fn takes_unnamed(&self, provider: &PublicKey) -> bool {
        self.lock().get(provider).is_some_and(|lane| lane.is_busy && !lane.names)
    }
}

/// The right to have a call open. Dropping it lets the next one in.
#[derive(Debug)]
pub(crate) struct Turn {
    lanes: Arc<Lanes>,
    provider: PublicKey,
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(lane) = self.lanes.lock().get_mut(&self.provider) {
            lane.is_busy = false;
            if !lane.is_answered && !lane.names {
                lane.closed_until = Some(Instant::now() + CLOSED);
            }
        }
        self.lanes.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::{CLOSED, Lanes};
    use crate::error::Error;
    use nostr::prelude::Keys;
    use std::sync::Arc;
    use std::time::Duration;
    use tokio::time::{sleep, timeout};

    const SOON: Duration = Duration::from_secs(5);

    #[tokio::test(start_paused = true)]
    async fn one_at_a_time_until_answers_say_what_they_answer() {
        let (lanes, provider) = (Arc::new(Lanes::default()), Keys::generate().public_key());
        let first = lanes.enter(provider, SOON).await.unwrap();
        assert!(lanes.takes_unnamed(&provider));
        assert!(matches!(lanes.enter(provider, SOON).await, Err(Error::NoAnswer(_))), "the lane is taken");
        assert!(lanes.enter(Keys::generate().public_key(), SOON).await.is_ok(), "another provider has its own");
        lanes.learn(&provider, false);
        drop(first);
        let second = lanes.enter(provider, SOON).await.unwrap();
        let waiting = tokio::spawn({
            let lanes = lanes.clone();
            async move { lanes.enter(provider, SOON).await.is_ok() }
        });
        sleep(Duration::from_secs(1)).await;
        lanes.learn(&provider, true);
        assert!(timeout(SOON, waiting).await.unwrap().unwrap(), "now they may all go");
        assert!(!lanes.takes_unnamed(&provider));
        drop(second);
        assert!(lanes.enter(provider, SOON).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_was_given_up_closes_the_lane_for_a_while() {
        let (lanes, provider) = (Arc::new(Lanes::default()), Keys::generate().public_key());
        drop(lanes.enter(provider, SOON).await.unwrap());
        assert!(matches!(lanes.enter(provider, SOON).await, Err(Error::Unclear(_))));
        sleep(CLOSED).await;
        let turn = lanes.enter(provider, SOON).await.unwrap();
        lanes.learn(&provider, true);
        drop(turn);
        drop(lanes.enter(provider, SOON).await.unwrap());
        assert!(lanes.enter(provider, SOON).await.is_ok(), "answers say what they answer: nothing can be confused");
    }
}
