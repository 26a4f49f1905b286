//! Messages as server-sent events, and streams that a client can come back to.

use crate::server::counts::Open;
use bytes::Bytes;
use rialto_mcp::outlet::{Drain, Taken};
use std::any::Any;
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::time::{Instant, Sleep};

/// How often a stream on which nothing happens shows that it is alive.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// What of a stream is kept for a client whose connection broke.
const KEPT_BYTES: usize = 1024 * 1024;

/// How long a client that was let go should stay away, in milliseconds.
const RETRY: u64 = 500;

/// How the events of a stream are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    /// With ids, and kept: 2025-03-26 to 2025-11-25.
    Kept,
    /// Once, to whoever reads.
    Plain,
}

/// One stream of messages, whether somebody reads it or not.
#[derive(Debug)]
pub(super) struct Stream {
    number: u64,
    manner: Manner,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    drain: Drain,
    /// Events with their numbers; the last ones that were written.
    kept: VecDeque<(u64, Bytes)>,
    kept_bytes: usize,
    /// The number of the next event. The first one only tells the client where it is.
    next: u64,
    /// The last event that a reader was given.
    sent: u64,
    has_ended: bool,
    /// Which reader has the stream; 0 if none has.
    reader: u64,
    readers: u64,
    /// Who reads, while it waits for something to read.
    waiting: Option<Waker>,
    /// When the last reader went, or the stream began.
    since: Instant,
}

/// Reads one stream as the body of a response. Each stream has one reader; a new one takes over.
pub(super) struct Reader {
    stream: Arc<Stream>,
    turn: u64,
    /// The last event that this client has.
    seen: u64,
    /// Sent before everything else.
    opening: Option<Bytes>,
    alive: Pin<Box<Sleep>>,
    _counted: Open,
    /// Dropped with the connection.
    _guard: Option<Box<dyn Any + Send>>,
}

impl Stream {
    pub(super) fn new(number: u64, manner: Manner, drain: Drain) -> Arc<Self> {
        let state = State {
            drain,
            kept: VecDeque::new(),
            kept_bytes: 0,
            next: 1,
            sent: 0,
            has_ended: false,
            reader: 0,
            readers: 0,
            waiting: None,
            since: Instant::now(),
        };
        Arc::new(Self { number, manner, state: Mutex::new(state) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts messages in that were taken out already.
    pub(super) fn fill(&self, lines: &[u8], last: bool) {
        let mut state = self.state();
        self.keep(&mut state, lines);
        state.has_ended |= last;
    }

    pub(super) fn has_reader(&self) -> bool {
        self.state().reader != 0
    }

    /// How long nobody has read; `None` while somebody does.
    pub(super) fn unread_for(&self) -> Option<Duration> {
        let state = self.state();
        (state.reader == 0).then(|| state.since.elapsed())
    }

    /// The last event that somebody got, or that is no longer there to be got.
    pub(super) fn sent(&self) -> u64 {
        self.state().sent
    }

    pub(super) fn has_ended(&self) -> bool {
        self.state().has_ended
    }

    /// Whether there was an event `seen`, and everything behind it is still there.
    pub(super) fn reaches(&self, seen: u64) -> bool {
        let state = self.state();
        let first = state.kept.front().map_or(state.next, |(number, _)| *number);
        seen < state.next && first <= seen + 1
    }

    /// Reads on behind event `seen`. `primes`: tells the client where it is before anything has happened.
    pub(super) fn read(
        self: &Arc<Self>,
        seen: u64,
        primes: bool,
        counted: Open,
        guard: Option<Box<dyn Any + Send>>,
    ) -> Reader {
        let mut state = self.state();
        state.readers += 1;
        state.reader = state.readers;
        let turn = state.readers;
        let replaced = state.waiting.take();
        drop(state);
        // Whoever read until now sees that its turn is over.
        if let Some(replaced) = replaced {
            replaced.wake();
        }
        let opening = primes.then(|| format!("id: {}-{seen}\nretry: {RETRY}\ndata: \n\n", self.number).into());
        let alive = Box::pin(tokio::time::sleep(KEEP_ALIVE));
        Reader { stream: self.clone(), turn, seen, opening, alive, _counted: counted, _guard: guard }
    }

    /// Everything that is there, as events, for a stream that has ended.
    pub(super) fn written(lines: &[u8]) -> Bytes {
        let mut out = Vec::with_capacity(lines.len() + 64);
        for line in messages(lines) {
            write_event(&mut out, None, line);
        }
        out.into()
    }

    fn keep(&self, state: &mut State, lines: &[u8]) {
        for line in messages(lines) {
            let mut event = Vec::with_capacity(line.len() + 48);
            let number = state.next;
            state.next += 1;
            write_event(&mut event, (self.manner == Manner::Kept).then_some((self.number, number)), line);
            state.kept_bytes += event.len();
            state.kept.push_back((number, event.into()));
        }
    }
}

impl State {
    /// Forgets the oldest of what has been sent.
    fn trim(&mut self, manner: Manner, sent: u64) {
        let bound = if manner == Manner::Kept { KEPT_BYTES } else { 0 };
        while self.kept_bytes > bound
            && let Some((number, event)) = self.kept.front()
            && *number <= sent
        {
            self.kept_bytes -= event.len();
            self.kept.pop_front();
        }
    }
}

fn messages(lines: &[u8]) -> impl Iterator<Item = &[u8]> {
    lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty())
}

fn write_event(out: &mut Vec<u8>, id: Option<(u64, u64)>, line: &[u8]) {
    out.extend_from_slice(b"event: message\n");
    if let Some((stream, number)) = id {
        out.extend_from_slice(format!("id: {stream}-{number}\n").as_bytes());
    }
    out.extend_from_slice(b"data: ");
    out.extend_from_slice(line);
    out.extend_from_slice(b"\n\n");
}

/// The stream and the event that `Last-Event-ID` names.
pub(super) fn position(id: &str) -> Option<(u64, u64)> {
    let (stream, number) = id.split_once('-')?;
    Some((stream.parse().ok()?, number.parse().ok()?))
}

impl Reader {
    /// Sends this before everything else.
    pub(super) fn opened_by(mut self, text: String) -> Self {
        self.opening = Some(text.into());
        self
    }

    /// Sends no more than where the client is, so that it can come back.
    pub(super) fn briefly(self) -> Self {
        self.stream.state().reader = 0;
        self
    }

    /// The next events; `None` when the connection should be closed.
    pub(super) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(opening) = self.opening.take() {
            return Poll::Ready(Some(opening));
        }
        let stream = self.stream.clone();
        let mut state = stream.state();
        loop {
            if state.reader != self.turn {
                return Poll::Ready(None);
            }
            // Their numbers go up, and there may be thousands that this client has.
            let first = state.kept.partition_point(|(number, _)| *number <= self.seen);
            if first < state.kept.len() {
                let mut news = state.kept.range(first..).map(|(_, event)| event);
                let text = match (news.next(), news.len()) {
                    (Some(one), 0) => one.clone(),
                    (one, _) => one.into_iter().chain(news).flat_map(|event| event.iter().copied()).collect(),
                };
                self.seen = state.next - 1;
                state.sent = self.seen;
                state.trim(stream.manner, self.seen);
                self.alive.as_mut().reset(Instant::now() + KEEP_ALIVE);
                return Poll::Ready(Some(text));
            }
            if state.has_ended {
                return Poll::Ready(None);
            }
            match state.drain.poll_take(context, &mut Vec::new()) {
                Poll::Ready(Taken::Lines { text, last }) => {
                    stream.keep(&mut state, &text);
                    state.has_ended |= last;
                }
                Poll::Ready(Taken::LetGo) => return Poll::Ready(None),
                Poll::Ready(Taken::End) => state.has_ended = true,
                Poll::Pending => break,
            }
        }
        if self.alive.as_mut().poll(context).is_ready() {
            self.alive.as_mut().reset(Instant::now() + KEEP_ALIVE);
            // Polled again so that the new time is waited for.
            let _ = self.alive.as_mut().poll(context);
            return Poll::Ready(Some(Bytes::from_static(b":\n\n")));
        }
        state.waiting = Some(context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut state = self.stream.state();
        if state.reader == self.turn {
            state.reader = 0;
            state.since = Instant::now();
        }
    }
}
