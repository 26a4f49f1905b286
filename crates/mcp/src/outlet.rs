//! Where outgoing messages meet: many tasks write, one task sends what has gathered with one system call.
//!
//! Messages are appended to one buffer, each ended by a line break. The sending side takes the whole buffer at once, so
//! that sixty answers that became ready together cost one write. The buffer is bounded: once it holds more than
//! [`HIGH_WATER`], writers wait until the peer has read (back-pressure), except where waiting is impossible.
//!
//! A pipe is one for all that is said to a peer. Over HTTP each request has a stream of its own, which ends with its
//! answer ([`exchange`]), and there may be one for what belongs to no request ([`push`]). There, nobody waits with news for a
//! client that does not read ([`Outlet::tell`]): others would wait with it.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
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

#[derive(Debug)]
struct Shared {
    manner: Manner,
    state: Mutex<State>,
    /// The buffer was taken.
    emptied: Notify,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    Pipe,
    Exchange,
    Push,
}

#[derive(Debug, Default)]
struct State {
    buffer: Vec<u8>,
    /// No more will be written; what is there is still sent.
    finished: bool,
    /// Nobody sends any more.
    closed: bool,
    /// The sending side should let go of its connection after what is there, and go on with another.
    let_go: bool,
    /// Who waits for something to send.
    reader: Option<Waker>,
}

/// What the sending side gets.
#[derive(Debug, PartialEq, Eq)]
pub enum Taken {
    /// Messages, each ended by a line break; `last` if no more will come.
    Lines {
        text: Vec<u8>,
        last: bool,
    },
    /// The connection should be given up; the rest goes over another.
    LetGo,
    End,
}

/// A connected pair for everything that is said to one peer.
pub fn outlet() -> (Outlet, Drain) {
    pair(Manner::Pipe)
}

/// A connected pair for one request: it ends with the answer.
pub fn exchange() -> (Outlet, Drain) {
    pair(Manner::Exchange)
}

/// A connected pair for what belongs to no request.
pub fn push() -> (Outlet, Drain) {
    pair(Manner::Push)
}

fn pair(manner: Manner) -> (Outlet, Drain) {
    let shared = Arc::new(Shared { manner, state: Mutex::default(), emptied: Notify::new() });
    (Outlet(shared.clone()), Drain(shared))
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // A panic while holding the lock leaves at worst half a message of a task that is gone.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends a message; if it `ends` its exchange, nothing can be written after it.
    fn append(&self, mut state: MutexGuard<'_, State>, write: impl FnOnce(&mut Vec<u8>), ends: bool) {
        write(&mut state.buffer);
        state.buffer.push(b'\n');
        state.finished |= ends && self.manner == Manner::Exchange;
        wake(state);
    }
}

/// Wakes the sending side, without holding the lock that it will need.
fn wake(mut state: MutexGuard<'_, State>) {
    let reader = state.reader.take();
    drop(state);
    if let Some(reader) = reader {
        reader.wake();
    }
}

impl Outlet {
    /// Appends one message; waits first while too much is waiting already.
    pub async fn send(&self, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), Closed> {
        self.append(write, false).await
    }

    /// Appends the answer to a request, with which its exchange ends.
    pub(crate) async fn answer(&self, write: impl FnOnce(&mut Vec<u8>)) {
        // A client that is gone needs no answer, and its session notices by itself.
        let _ = self.append(write, true).await;
    }

    /// Appends news: a message that nobody waits for. Where other peers would have to wait for this one, and too much is
    /// waiting already, it is left out.
    pub async fn tell(&self, write: impl FnOnce(&mut Vec<u8>)) {
        match self.0.manner {
            Manner::Pipe => drop(self.send(write).await),
            Manner::Exchange | Manner::Push => drop(self.try_send(write)),
        }
    }

    async fn append(&self, write: impl FnOnce(&mut Vec<u8>), ends: bool) -> Result<(), Closed> {
        loop {
            let mut emptied = pin!(self.0.emptied.notified());
            {
                let state = self.0.state();
                if state.closed || state.finished {
                    return Err(Closed);
                }
                if state.buffer.len() < HIGH_WATER {
                    self.0.append(state, write, ends);
                    return Ok(());
                }
                emptied.as_mut().enable();
            }
            emptied.await;
        }
    }

    /// Appends one message without waiting. For the rare places that cannot wait and write little, such as `Drop`.
    pub fn send_now(&self, write: impl FnOnce(&mut Vec<u8>)) {
        self.append_now(write, false);
    }

    /// Appends the answer to a request without waiting.
    pub(crate) fn answer_now(&self, write: impl FnOnce(&mut Vec<u8>)) {
        self.append_now(write, true);
    }

    fn append_now(&self, write: impl FnOnce(&mut Vec<u8>), ends: bool) {
        let state = self.0.state();
        if !state.closed && !state.finished {
            self.0.append(state, write, ends);
        }
    }

    /// There will be no answer: an exchange ends here.
    pub(crate) fn unanswered(&self) {
        if self.0.manner == Manner::Exchange {
            self.finish();
        }
    }

    /// Lets go of the connection, without ending what goes over it: the client comes back for the rest. Does nothing where
    /// one connection is all there is.
    pub fn let_go(&self) {
        if self.0.manner != Manner::Pipe {
            let mut state = self.0.state();
            state.let_go = true;
            wake(state);
        }
    }

    /// Appends one message unless too much is waiting already; says whether it did.
    pub fn try_send(&self, write: impl FnOnce(&mut Vec<u8>)) -> bool {
        let state = self.0.state();
        let has_room = !state.closed && !state.finished && state.buffer.len() < HIGH_WATER;
        if has_room {
            self.0.append(state, write, false);
        }
        has_room
    }

    /// Ends the stream after what has been written so far.
    pub fn finish(&self) {
        let mut state = self.0.state();
        state.finished = true;
        wake(state);
        self.0.emptied.notify_waiters();
    }
}

impl Drain {
    /// Takes what has gathered, if anything. `spare` is an empty buffer to gather the next messages in.
    pub fn poll_take(&mut self, context: &mut Context<'_>, spare: &mut Vec<u8>) -> Poll<Taken> {
        let mut state = self.0.state();
        if !state.buffer.is_empty() {
            let text = std::mem::replace(&mut state.buffer, std::mem::take(spare));
            let last = state.finished;
            drop(state);
            self.0.emptied.notify_waiters();
            return Poll::Ready(Taken::Lines { text, last });
        }
        if state.finished {
            return Poll::Ready(Taken::End);
        }
        if std::mem::take(&mut state.let_go) {
            return Poll::Ready(Taken::LetGo);
        }
        if state.reader.as_ref().is_none_or(|reader| !reader.will_wake(context.waker())) {
            state.reader = Some(context.waker().clone());
        }
        Poll::Pending
    }

    /// Waits for messages and takes all that have gathered, each ended by a line break; `None` when no more will come.
    /// `spare` is an empty buffer to gather the next ones in.
    pub async fn take(&mut self, mut spare: Vec<u8>) -> Option<Vec<u8>> {
        loop {
            match poll_fn(|context| self.poll_take(context, &mut spare)).await {
                Taken::Lines { text, .. } => return Some(text),
                Taken::LetGo => {}
                Taken::End => return None,
            }
        }
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
