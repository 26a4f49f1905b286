//! Whose turn it is with providers whose messages may not say what they answer.
//!
//! Until a provider has shown that it says so, one call at a time is open to it, so that there is only one that an answer can
//! belong to. A call that was given up may still be answered, and nothing would tell that answer from the next one's: so the
//! lane is closed for a while.

mod shared;

use self::shared::{Found, Hold, Left};
use crate::error::Error;
use nostr::prelude::PublicKey;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// How long an answer that nobody waits for any more may still come.
const CLOSED: Duration = Duration::from_secs(60);

/// How often to look whether another process has left the lane.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

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
    /// Where the other processes of this customer look.
    directory: Option<PathBuf>,
}

impl Lanes {
    pub(crate) fn new(directory: Option<PathBuf>) -> Self {
        Self { directory, ..Self::default() }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<PublicKey, Lane>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a call may be made.
    pub(crate) async fn enter(self: &Arc<Self>, provider: PublicKey, patience: Duration) -> Result<Turn, Error> {
        let end = Instant::now() + patience;
        loop {
            let changed = self.changed.notified();
            if let Some(turn) = self.try_enter(provider, patience)? {
                return Ok(turn);
            }
            let now = Instant::now();
            if now >= end {
                return Err(Error::NoAnswer(patience));
            }
            // That it is time to look is no error.
            let _ = tokio::time::timeout_at(end.min(now + LOOK_AGAIN), changed).await;
        }
    }

    /// `None` if another call has the lane.
    fn try_enter(self: &Arc<Self>, provider: PublicKey, patience: Duration) -> Result<Option<Turn>, Error> {
        let mut lanes = self.lock();
        let lane = lanes.entry(provider).or_default();
        let turn = |hold: Option<Hold>| Ok(Some(Turn { lanes: self.clone(), provider, hold, is_sent: false }));
        if lane.names {
            return turn(None);
        }
        let now = Instant::now();
        if let Some(until) = lane.closed_until.filter(|until| *until > now) {
            return Err(Error::Unclear(until - now));
        }
        if lane.is_busy {
            return Ok(None);
        }
        let found = self.directory.as_ref().map(|directory| shared::enter(directory, &provider, patience));
        let hold = match found.transpose()? {
            Some(Found::Busy) => return Ok(None),
            Some(Found::Closed(left)) => return Err(Error::Unclear(left)),
            Some(Found::Named) => {
                lane.names = true;
                return turn(None);
            }
            Some(Found::Free(hold)) => Some(hold),
            None => None,
        };
        *lane = Lane { is_busy: true, ..Lane::default() };
        turn(hold)
    }

    /// A message has said what it answers.
    pub(crate) fn named(&self, provider: &PublicKey) {
        if let Some(lane) = self.lock().get_mut(provider) {
            lane.names = true;
        }
        self.changed.notify_waiters();
    }

    /// A call was answered, and no other answer to it is to come.
    pub(crate) fn answered(&self, provider: &PublicKey) {
        if let Some(lane) = self.lock().get_mut(provider) {
            lane.is_answered = true;
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
    hold: Option<Hold>,
    is_sent: bool,
}

impl Turn {
    /// The request is on its way; from now on an answer may come.
    pub(crate) fn sent(&mut self) {
        self.is_sent = true;
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(lane) = self.lanes.lock().get_mut(&self.provider) {
            lane.is_busy = false;
            let left = match (lane.names, lane.is_answered || !self.is_sent) {
                (true, _) => Left::Named,
                (false, true) => Left::Answered,
                (false, false) => Left::Unanswered,
            };
            if left == Left::Unanswered {
                lane.closed_until = Some(Instant::now() + CLOSED);
            }
            if let Some(hold) = self.hold.take() {
                hold.leave(left);
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
        lanes.answered(&provider);
        drop(first);
        let second = lanes.enter(provider, SOON).await.unwrap();
        let waiting = tokio::spawn({
            let lanes = lanes.clone();
            async move { lanes.enter(provider, SOON).await.is_ok() }
        });
        sleep(Duration::from_secs(1)).await;
        lanes.named(&provider);
        assert!(timeout(SOON, waiting).await.unwrap().unwrap(), "now they may all go");
        assert!(!lanes.takes_unnamed(&provider));
        drop(second);
        assert!(lanes.enter(provider, SOON).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_was_given_up_closes_the_lane_for_a_while() {
        let (lanes, provider) = (Arc::new(Lanes::default()), Keys::generate().public_key());
        drop(lanes.enter(provider, SOON).await.unwrap());
        let mut turn = lanes.enter(provider, SOON).await.expect("nothing was sent");
        turn.sent();
        drop(turn);
        assert!(matches!(lanes.enter(provider, SOON).await, Err(Error::Unclear(_))));
        sleep(CLOSED).await;
        let turn = lanes.enter(provider, SOON).await.unwrap();
        lanes.named(&provider);
        drop(turn);
        drop(lanes.enter(provider, SOON).await.unwrap());
        assert!(lanes.enter(provider, SOON).await.is_ok(), "answers say what they answer: nothing can be confused");
    }

    #[tokio::test]
    async fn processes_of_one_customer_take_turns_as_well() {
        let (directory, provider) = (tempfile::tempdir().unwrap(), Keys::generate().public_key());
        let process = || Arc::new(Lanes::new(Some(directory.path().join("lanes"))));
        let (one, other) = (process(), process());
        let first = one.enter(provider, SOON).await.unwrap();
        let blocked = other.enter(provider, Duration::from_millis(300)).await;
        assert!(matches!(blocked, Err(Error::NoAnswer(_))), "its answer would come to both: {blocked:?}");
        one.answered(&provider);
        drop(first);
        let mut second = other.enter(provider, SOON).await.unwrap();
        second.sent();
        drop(second);
        let after = process().enter(provider, SOON).await;
        assert!(matches!(after, Err(Error::Unclear(_))), "given up by one process, answered to the next: {after:?}");
        assert!(process().enter(Keys::generate().public_key(), SOON).await.is_ok(), "another provider has its own");
    }

    #[tokio::test]
    async fn what_a_provider_has_shown_to_one_process_the_next_knows() {
        let (directory, provider) = (tempfile::tempdir().unwrap(), Keys::generate().public_key());
        let process = || Arc::new(Lanes::new(Some(directory.path().join("lanes"))));
        let one = process();
        let turn = one.enter(provider, SOON).await.unwrap();
        one.named(&provider);
        drop(turn);
        let (two, three) = (process(), process());
        let _open = two.enter(provider, SOON).await.unwrap();
        assert!(three.enter(provider, SOON).await.is_ok());
        assert!(!three.takes_unnamed(&provider));
    }

    #[tokio::test]
    async fn a_process_that_was_killed_leaves_the_lane_closed() {
        let (directory, provider) = (tempfile::tempdir().unwrap(), Keys::generate().public_key());
        let process = || Arc::new(Lanes::new(Some(directory.path().join("lanes"))));
        let mut killed = process().enter(provider, SOON).await.unwrap();
        killed.hold = None;
        let after = process().enter(provider, SOON).await;
        assert!(matches!(after, Err(Error::Unclear(_))), "{after:?}");
    }
}
