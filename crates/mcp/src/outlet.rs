//! Where outgoing messages meet: many tasks write, one task sends what has gathered with one system call.
//!
//! Messages are appended to one buffer, each ended by a line break. The sending side takes the whole buffer at once, so
//! that sixty answers that became ready together cost one write. The buffer is bounded: once it holds more than
//! [`HIGH_WATER`], writers wait until the peer has read (back-pressure), except where waiting is impossible.

use std::io;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::Notify;

/// How many bytes may gather before writers wait.
pub const HIGH_WATER: usize = 1024 * 1024;

/// A buffer that a single message made larger than this is given back after it has been sent.
const KEPT_CAPACITY: usize = 256 * 1024;

/// The writing side. Clones write to the same place.
#[derive(Debug, Clone)]
pub struct Outlet(Arc<Shared>);

/// The sending side. When it is dropped, writing fails.
#[derive(Debug)]
pub struct Drain(Arc<Shared>);

/// Nobody takes what is written any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the peer is gone")]
pub struct Closed;

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// Something was written, or the outlet was closed.
    filled: Notify,
    /// The buffer was taken.
    emptied: Notify,
}

#[derive(Debug, Default)]
struct State {
    buffer: Vec<u8>,
    /// No more will be written; what is there is still sent.
    finished: bool,
    /// Nobody sends any more.
    closed: bool,
    /// The writing side would have its peer come back for the rest.
    let_go: bool,
    /// The sending side has not been told so yet.
    is_news: bool,
}

/// A connected pair.
pub fn outlet() -> (Outlet, Drain) {
    let shared = Arc::new(Shared::default());
    (Outlet(shared.clone()), Drain(shared))
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // A panic while holding the lock leaves at worst half a message of a task that is gone.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn append(&self, state: &mut State, write: impl FnOnce(&mut Vec<u8>)) {
        let was_empty = state.buffer.is_empty();
        write(&mut state.buffer);
        state.buffer.push(b'\n');
        if was_empty {
            self.filled.notify_one();
        }
    }
}

impl Outlet {
    /// Appends one message; waits first while too much is waiting already.
    pub async fn send(&self, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), Closed> {
        loop {
            let mut emptied = pin!(self.0.emptied.notified());
            {
                let mut state = self.0.state();
                if state.closed || state.finished {
                    return Err(Closed);
                }
                if state.buffer.len() < HIGH_WATER {
                    self.0.append(&mut state, write);
                    return Ok(());
                }
                emptied.as_mut().enable();
            }
            emptied.await;
        }
    }

    /// Appends one message without waiting. For the rare places that cannot wait and write little, such as `Drop`.
    pub fn send_now(&self, write: impl FnOnce(&mut Vec<u8>)) {
        let mut state = self.0.state();
        if !state.closed && !state.finished {
            self.0.append(&mut state, write);
        }
    }

    /// Appends one message unless too much is waiting already; says whether it did.
    pub fn try_send(&self, write: impl FnOnce(&mut Vec<u8>)) -> bool {
        let mut state = self.0.state();
        let has_room = !state.closed && !state.finished && state.buffer.len() < HIGH_WATER;
        if has_room {
            self.0.append(&mut state, write);
        }
        has_room
    }

    /// Asks the sending side to hang up after what has been written so far, and to keep the rest for when the peer comes
    /// back. Where a peer has no way to come back, it stays.
    pub fn let_go(&self) {
        let mut state = self.0.state();
        (state.let_go, state.is_news) = (true, true);
        drop(state);
        self.0.filled.notify_one();
    }

    /// Ends the stream after what has been written so far.
    pub fn finish(&self) {
        self.0.state().finished = true;
        self.0.filled.notify_one();
        self.0.emptied.notify_waiters();
    }
}

impl Drain {
    /// Waits for messages and takes all that have gathered, each ended by a line break; `None` when no more will come.
    /// `spare` is an empty buffer to gather the next ones in. What is taken may be nothing, after [`Outlet::let_go`].
    pub async fn take(&mut self, spare: Vec<u8>) -> Option<Vec<u8>> {
        loop {
            {
                let mut state = self.0.state();
                if !state.buffer.is_empty() {
                    state.is_news = false;
                    let taken = std::mem::replace(&mut state.buffer, spare);
                    drop(state);
                    self.0.emptied.notify_waiters();
                    return Some(taken);
                }
                if std::mem::take(&mut state.is_news) {
                    return Some(spare);
                }
                if state.finished {
                    return None;
                }
            }
            self.0.filled.notified().await;
        }
    }

    /// Whether the writing side would have its peer come back for the rest; asked once, it is forgotten.
    pub fn was_let_go(&self) -> bool {
        std::mem::take(&mut self.0.state().let_go)
    }

    /// Sends everything to `writer` until the outlet is finished or the writer fails.
    pub async fn pump(mut self, mut writer: impl AsyncWrite + Unpin) -> io::Result<()> {
        let mut spare = Vec::new();
        while let Some(mut taken) = self.take(spare).await {
            writer.write_all(&taken).await?;
            writer.flush().await?;
            taken.clear();
            spare = if taken.capacity() > KEPT_CAPACITY { Vec::new() } else { taken };
        }
        writer.shutdown().await
    }
}

impl Drop for Drain {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.closed = true;
        state.buffer = Vec::new();
        drop(state);
        self.0.emptied.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::{Closed, HIGH_WATER, outlet};
    use std::time::Duration;
    use tokio::time::timeout;

    #[tokio::test]
    async fn gathers_and_keeps_order() {
        let (outlet, mut drain) = outlet();
        for word in ["a", "b", "c"] {
            outlet.send(|out| out.extend_from_slice(word.as_bytes())).await.unwrap();
        }
        outlet.finish();
        assert_eq!(drain.take(Vec::new()).await.unwrap(), b"a\nb\nc\n");
        assert_eq!(drain.take(Vec::new()).await, None);
        assert_eq!(outlet.send(|_| ()).await, Err(Closed));
    }

    #[tokio::test]
    async fn a_drain_hears_at_once_that_its_peer_is_let_go() {
        let (outlet, mut drain) = outlet();
        assert!(!drain.was_let_go());
        outlet.let_go();
        assert_eq!(drain.take(Vec::new()).await.unwrap(), b"");
        assert!(drain.was_let_go());
        outlet.let_go();
        outlet.send_now(|out| out.push(b'a'));
        assert_eq!(drain.take(Vec::new()).await.unwrap(), b"a\n");
        assert!(drain.was_let_go());
        assert!(timeout(Duration::from_millis(30), drain.take(Vec::new())).await.is_err(), "it is told once");
    }

    #[tokio::test]
    async fn writers_wait_for_a_slow_reader_and_none_is_forgotten() {
        let (outlet, mut drain) = outlet();
        let big = vec![b'x'; HIGH_WATER];
        outlet.send(|out| out.extend_from_slice(&big)).await.unwrap();
        let mut writers = tokio::task::JoinSet::new();
        for number in 0..100 {
            let outlet = outlet.clone();
            writers
                .spawn(async move { outlet.send(|out| out.extend_from_slice(format!("{number}").as_bytes())).await });
        }
        assert!(timeout(Duration::from_millis(30), writers.join_next()).await.is_err(), "writers must wait");
        assert_eq!(drain.take(Vec::new()).await.unwrap().len(), HIGH_WATER + 1);
        while let Some(sent) = writers.join_next().await {
            sent.unwrap().unwrap();
        }
        let text = drain.take(Vec::new()).await.unwrap();
        assert_eq!(text.iter().filter(|byte| **byte == b'\n').count(), 100);
    }

    #[tokio::test]
    async fn a_reader_that_goes_frees_the_writers() {
        let (outlet, drain) = outlet();
        outlet.send(|out| out.resize(HIGH_WATER, b'x')).await.unwrap();
        let waiting = tokio::spawn({
            let outlet = outlet.clone();
            async move { outlet.send(|_| ()).await }
        });
        tokio::task::yield_now().await;
        drop(drain);
        assert_eq!(waiting.await.unwrap(), Err(Closed));
    }
}
