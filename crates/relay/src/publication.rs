//! One event on its way to several relays, and what each of them said.

use crate::frame;
use crate::information::Limits;
use crate::verdict::Verdict;
use nostr::prelude::{Event, EventId};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::Utf8Bytes;

/// A handle on an event that is being published. Publishing goes on if it is dropped.
#[derive(Debug)]
pub struct Publication {
    pub id: EventId,
    pub(crate) frame: Utf8Bytes,
    content: usize,
    tags: usize,
    /// When we stop trying.
    pub(crate) end: Instant,
    /// How many relays must have it.
    wanted: usize,
    state: Mutex<Vec<(Arc<str>, Option<Verdict>)>>,
    changed: Notify,
    was_sent: AtomicBool,
}

/// What the relays said so far.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// How many have the event.
    pub accepted: usize,
    /// What each relay said; those that still may take it are missing.
    pub verdicts: Vec<(Arc<str>, Verdict)>,
    /// How many have not decided yet.
    pub open: usize,
}

impl Publication {
    pub(crate) fn new(event: &Event, relays: Vec<Arc<str>>, wanted: usize, end: Instant) -> Self {
        let wanted = wanted.min(relays.len()).max(1);
        Self {
            id: event.id,
            frame: frame::publish(event).into(),
            content: event.content.len(),
            tags: event.tags.len(),
            end,
            wanted,
            state: Mutex::new(relays.into_iter().map(|relay| (relay, None)).collect()),
            changed: Notify::new(),
            was_sent: AtomicBool::new(false),
        }
    }

    pub(crate) fn set_sent(&self) {
        self.was_sent.store(true, Ordering::Relaxed);
    }

    /// Whether any relay may have it, whatever they said. One that was never sent is nowhere, and is not sent any more once
    /// its time is over.
    pub fn was_sent(&self) -> bool {
        self.was_sent.load(Ordering::Relaxed)
    }

    fn state(&self) -> MutexGuard<'_, Vec<(Arc<str>, Option<Verdict>)>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the final word of one relay.
    pub(crate) fn settle(&self, relay: &str, verdict: Verdict) {
        if let Some((_, known)) = self.state().iter_mut().find(|(url, _)| **url == *relay) {
            *known = Some(verdict);
        }
        self.changed.notify_waiters();
    }

    /// Whether a relay with these limits would take it; else which limit it breaks.
    pub(crate) fn excess(&self, limits: &Limits) -> Option<usize> {
        let breaks = |size: usize, limit: Option<usize>| limit.filter(|limit| size > *limit);
        // A limit in characters is at least that many bytes.
        breaks(self.frame.len(), limits.message)
            .or_else(|| breaks(self.content, limits.content))
            .or_else(|| breaks(self.tags, limits.tags))
    }

    pub fn report(&self) -> Report {
        let state = self.state();
        let verdicts: Vec<_> =
            state.iter().filter_map(|(url, verdict)| Some((url.clone(), verdict.clone()?))).collect();
        let accepted = verdicts.iter().filter(|(_, verdict)| *verdict == Verdict::Accepted).count();
        Report { accepted, open: state.len() - verdicts.len(), verdicts }
    }

    /// Waits until enough relays have the event, or none is left that may take it.
    pub async fn settled(&self) -> Report {
        self.wait(|report| report.accepted >= self.wanted || report.open == 0).await
    }

    /// Waits until every relay has said its final word.
    pub async fn finished(&self) -> Report {
        self.wait(|report| report.open == 0).await
    }

    async fn wait(&self, is_enough: impl Fn(&Report) -> bool) -> Report {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            let report = self.report();
            if is_enough(&report) {
                return report;
            }
            changed.await;
        }
    }
}
