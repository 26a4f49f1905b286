//! What waits to be sent on one connection.
//!
//! It is bounded in messages and in bytes. A client that does not read fills its own box and is then cut off; nobody
//! else waits for it, and it cannot make us hold more than the bound.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::event::Event;

/// An event on its way to a subscription. Its text is shared by all who get it until it is written.
#[derive(Debug)]
pub(super) struct Letter {
    opening: Arc<str>,
    event: Arc<Event>,
}

impl Letter {
    pub(super) fn into_text(self) -> String {
        event_message(&self.opening, &self.event)
    }

    fn len(&self) -> usize {
        self.opening.len() + self.event.text.len() + 1
    }
}

/// `["EVENT","name",` with the event's own text and the closing bracket.
pub(super) fn event_message(opening: &str, event: &Event) -> String {
    let mut text = String::with_capacity(opening.len() + event.text.len() + 1);
    text.push_str(opening);
    text.push_str(&event.text);
    text.push(']');
    text
}

#[derive(Debug)]
pub(super) struct Outbox {
    max_messages: usize,
    max_bytes: usize,
    waiting: Mutex<Waiting>,
    filled: Notify,
    overflowed: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    letters: VecDeque<Letter>,
    bytes: usize,
    has_overflowed: bool,
}

impl Outbox {
    pub(super) fn new(max_messages: usize, max_bytes: usize) -> Self {
        Self { max_messages, max_bytes, waiting: Mutex::default(), filled: Notify::new(), overflowed: Notify::new() }
    }

    pub(super) fn push(&self, opening: &Arc<str>, event: &Arc<Event>) {
        let letter = Letter { opening: opening.clone(), event: event.clone() };
        let mut waiting = self.lock();
        if waiting.has_overflowed {
            return;
        }
        let bytes = waiting.bytes + letter.len();
        if waiting.letters.len() >= self.max_messages || bytes > self.max_bytes {
            // The connection is over, so what it did not read is of no use to anyone.
            *waiting = Waiting { has_overflowed: true, ..Waiting::default() };
            self.overflowed.notify_one();
            return;
        }
        waiting.bytes = bytes;
        waiting.letters.push_back(letter);
        if waiting.letters.len() == 1 {
            self.filled.notify_one();
        }
    }

    /// Everything that waits, if anything does.
    pub(super) fn take(&self) -> VecDeque<Letter> {
        let mut waiting = self.lock();
        waiting.bytes = 0;
        std::mem::take(&mut waiting.letters)
    }

    /// Throws away what waits for a subscription that is over; under the same name there may soon be another, which wants some.
    pub(super) fn forget(&self, opening: &Arc<str>, is_wanted: impl Fn(&Event) -> bool) {
        let mut waiting = self.lock();
        waiting.letters.retain(|letter| !Arc::ptr_eq(&letter.opening, opening) || is_wanted(&letter.event));
        waiting.bytes = waiting.letters.iter().map(Letter::len).sum();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().letters.is_empty()
    }

    /// Returns when something may be waiting.
    pub(super) async fn filled(&self) {
        self.filled.notified().await;
    }

    /// Returns when more came than fits.
    pub(super) async fn overflowed(&self) {
        self.overflowed.notified().await;
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // Nothing can panic halfway through a change.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
