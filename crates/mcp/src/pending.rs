//! Requests we have sent and wait for, in either role. No request waits for ever.
//!
//! Every request has a deadline; progress extends it, up to a maximum. When the peer goes, everything waiting fails at
//! once. When the one who waits gives up (its future is dropped), the peer is told with `notifications/cancelled`.

use crate::id::{Decimal, Id};
use crate::json;
use crate::message::{self, Notification, Response};
use crate::outlet::Outlet;
use bytes::Bytes;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// How long a request may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// Without a sign of life.
    pub silence: Duration,
    /// In all, however much progress is reported.
    pub total: Duration,
}

/// Why a request got no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The peer is gone; the text says how, for a person.
    #[error("{0}")]
    Closed(Arc<str>),
    #[error("no answer within {} s", .0.as_secs_f32())]
    Timeout(Duration),
    /// The answer came, but was longer than we take.
    #[error("the answer is longer than the limit")]
    TooLong,
    /// The answer came, but is not a message.
    #[error("the answer cannot be read: {0}")]
    Unreadable(String),
    /// The peer could not be reached: it never saw the request.
    #[error("it cannot be reached: {0}")]
    Unreachable(Arc<str>),
    /// The way to the peer broke while it had the request: whether it was carried out is unknown.
    #[error("the connection was lost before the answer came: {0}")]
    Lost(Arc<str>),
    /// The peer refused with a status of HTTP and said no more that a program could read.
    #[error("it answered with HTTP status {status}{}{words}", if words.is_empty() { "" } else { ": " })]
    Status { status: u16, words: Arc<str> },
    /// The peer no longer knows our session; it did not look at the request.
    #[error("the session is gone")]
    SessionGone,
    /// The peer wants to know who asks, and we cannot tell; the text says what to do. It did not look at the request.
    #[error("{0}")]
    Login(Arc<str>),
}

impl Fault {
    /// Whether the request certainly had no effect, so that to ask again cannot do anything twice.
    pub fn is_harmless(&self) -> bool {
        matches!(self, Self::Unreachable(_) | Self::SessionGone | Self::Login(_))
    }
}

/// Where progress on a request is passed on to, and under which token.
#[derive(Debug, Clone)]
pub struct Progress {
    /// The token as the asker wrote it.
    pub token: Bytes,
    pub outlet: Outlet,
}

/// Why the one who asked gave up, as written in its `notifications/cancelled`; to be passed on with ours.
pub type Reason = Arc<OnceLock<Bytes>>;

/// What is known about the asker of a request that is passed on.
#[derive(Debug, Clone, Default)]
pub struct Asker {
    pub progress: Option<Progress>,
    pub reason: Option<Reason>,
}

/// The requests sent to one peer.
#[derive(Debug)]
pub struct Pending {
    table: Mutex<Table>,
}

#[derive(Debug)]
struct Table {
    next: u64,
    waiting: HashMap<u64, Waiting, BuildHasherDefault<Spread>>,
    closed: Option<Arc<str>>,
    /// How many questions of the peer we have not answered yet, and when the last was.
    questions: usize,
    last_answer: Option<Instant>,
}

#[derive(Debug)]
struct Waiting {
    answer: oneshot::Sender<Result<Response, Fault>>,
    progress: Option<Progress>,
    last_sign: Instant,
}

impl Default for Pending {
    fn default() -> Self {
        let table = Table { next: 1, waiting: HashMap::default(), closed: None, questions: 0, last_answer: None };
        Self { table: Mutex::new(table) }
    }
}

impl Pending {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends the request that `write` writes with the id it is given over `outlet`, and waits for its answer. The id also
    /// serves as progress token where the asker wants progress.
    pub async fn request(
        &self,
        outlet: &Outlet,
        patience: Patience,
        asker: Asker,
        write: impl FnOnce(&mut Vec<u8>, &Decimal),
    ) -> Result<Response, Fault> {
        let started = Instant::now();
        let (answer, mut answered) = oneshot::channel();
        let id = {
            let mut table = self.table();
            if let Some(reason) = &table.closed {
                return Err(Fault::Closed(reason.clone()));
            }
            let id = table.next;
            table.next += 1;
            table.waiting.insert(id, Waiting { answer, progress: asker.progress, last_sign: started });
            id
        };
        let end = started + patience.total;
        let mut deadline = (started + patience.silence).min(end);
        // Nothing to cancel before the peer has heard of it.
        let mut guard = Guard { pending: self, outlet, id, reason: asker.reason, is_sent: false, armed: true };
        match tokio::time::timeout_at(deadline, outlet.send(|out| write(out, &Decimal::new(id)))).await {
            Ok(Ok(())) => guard.is_sent = true,
            Ok(Err(_)) => {
                let closed = self.table().closed.clone();
                return Err(Fault::Closed(closed.unwrap_or_else(|| "the connection is closed".into())));
            }
            Err(_) => return Err(Fault::Timeout(deadline - started)),
        }
        loop {
            match tokio::time::timeout_at(deadline, &mut answered).await {
                Ok(Ok(answer)) => {
                    guard.armed = false;
                    return answer;
                }
                Ok(Err(_)) => {
                    guard.armed = false;
                    return Err(Fault::Closed("the connection is closed".into()));
                }
                Err(_) => {
                    let extended = (self.last_sign(id).unwrap_or(started) + patience.silence).min(end);
                    if extended <= deadline {
                        return Err(Fault::Timeout(deadline - started));
                    }
                    deadline = extended;
                }
            }
        }
    }

    /// When the peer last showed that it is at work on a request. A peer that waits for us is not silent.
    fn last_sign(&self, id: u64) -> Option<Instant> {
        let table = self.table();
        if table.questions > 0 {
            return Some(Instant::now());
        }
        table.waiting.get(&id).map(|waiting| waiting.last_sign).max(table.last_answer)
    }

    /// The peer has asked us something: until the returned guard is dropped, its silence is our doing.
    pub fn question(&self) -> Question<'_> {
        self.table().questions += 1;
        Question(self)
    }

    /// Hands an answer to whoever waits for it; `false` if nobody does.
    pub fn answer(&self, response: Response) -> bool {
        let id = response.id.as_ref().and_then(Id::as_number);
        let waiting = id.and_then(|id| self.table().waiting.remove(&id));
        waiting.is_some_and(|waiting| waiting.answer.send(Ok(response)).is_ok())
    }

    /// Fails one request whose answer cannot be taken.
    pub fn fail(&self, id: u64, fault: Fault) -> bool {
        let waiting = self.table().waiting.remove(&id);
        waiting.is_some_and(|waiting| waiting.answer.send(Err(fault)).is_ok())
    }

    /// Whether somebody still waits for the answer to a request.
    pub fn is_waiting(&self, id: u64) -> bool {
        self.table().waiting.contains_key(&id)
    }

    /// Takes a progress notification: extends the deadline, and tells where to pass it on to and in which words. `None` if
    /// nobody wants it.
    pub fn progress(&self, note: &Notification) -> Option<(Outlet, Vec<u8>)> {
        let [place] = json::find(note.params(), ["progressToken"]).ok()?;
        let place = place?;
        let id = Id::read(Bytes::copy_from_slice(&note.params()[place.clone()]))?.as_number()?;
        let mut table = self.table();
        let waiting = table.waiting.get_mut(&id)?;
        waiting.last_sign = Instant::now();
        let progress = waiting.progress.as_ref()?;
        let mut text = Vec::new();
        note.write(&mut text, &[(place, &progress.token)]);
        Some((progress.outlet.clone(), text))
    }

    /// Fails everything that waits, and everything that will be asked.
    pub fn close(&self, reason: &str) {
        let mut table = self.table();
        let reason = table.closed.get_or_insert_with(|| reason.into()).clone();
        for (_, waiting) in table.waiting.drain() {
            let _ = waiting.answer.send(Err(Fault::Closed(reason.clone())));
        }
    }

    fn forget(&self, id: u64) {
        self.table().waiting.remove(&id);
    }
}

/// A question of the peer that we have not answered yet.
#[derive(Debug)]
pub struct Question<'a>(&'a Pending);

impl Drop for Question<'_> {
    fn drop(&mut self) {
        let mut table = self.0.table();
        table.questions -= 1;
        table.last_answer = Some(Instant::now());
    }
}

/// A hasher for numbers that we count ourselves: nobody can choose them to collide, so one multiplication is enough.
#[derive(Debug, Default)]
struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

/// Tells the peer when a request is given up.
struct Guard<'a> {
    pending: &'a Pending,
    outlet: &'a Outlet,
    id: u64,
    reason: Option<Reason>,
    is_sent: bool,
    armed: bool,
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if !self.armed {
            return;
        }
        self.pending.forget(self.id);
        if !self.is_sent {
            return;
        }
        let mut params = format!("{{\"requestId\":{}", self.id).into_bytes();
        if let Some(reason) = self.reason.as_ref().and_then(|reason| reason.get()) {
            params.extend_from_slice(b",\"reason\":");
            params.extend_from_slice(reason);
        }
        params.push(b'}');
        self.outlet.send_now(|out| message::write_notification(out, "notifications/cancelled", &params));
    }
}

#[cfg(test)]
mod tests {
    use super::{Asker, Fault, Patience, Pending};
    use crate::id::Decimal;
    use crate::message::{self, Incoming, Message};
    use crate::outlet::{Drain, Outlet, outlet};
    use bytes::Bytes;
    use std::sync::Arc;
    use std::time::Duration;

    const PATIENCE: Patience = Patience { silence: Duration::from_secs(10), total: Duration::from_secs(25) };

    fn message(text: &str) -> Message {
        match message::parse(Bytes::copy_from_slice(text.as_bytes())) {
            Incoming::Single(Ok(message)) => message,
            other => panic!("{other:?}"),
        }
    }

    fn ask(pending: &Arc<Setup>) -> tokio::task::JoinHandle<Result<message::Response, Fault>> {
        let setup = pending.clone();
        tokio::spawn(async move {
            let write = |out: &mut Vec<u8>, id: &Decimal| message::write_request(out, id.as_json(), "m", b"");
            setup.pending.request(&setup.outlet, PATIENCE, Asker::default(), write).await
        })
    }

    struct Setup {
        pending: Pending,
        outlet: Outlet,
    }

    impl std::ops::Deref for Setup {
        type Target = Pending;

        fn deref(&self) -> &Pending {
            &self.pending
        }
    }

    fn setup() -> (Arc<Setup>, Drain) {
        let (outlet, drain) = outlet();
        (Arc::new(Setup { pending: Pending::default(), outlet }), drain)
    }

    async fn sent(drain: &mut Drain) -> String {
        String::from_utf8(drain.take(Vec::new()).await.unwrap()).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn answers_find_their_request_in_any_order() {
        let (pending, mut drain) = setup();
        let (first, second) = (ask(&pending), ask(&pending));
        sent(&mut drain).await;
        for id in ["\"2\"", "1"] {
            let Message::Response(response) = message(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#))
            else {
                panic!("must be a response")
            };
            assert!(pending.answer(response.clone()));
            assert!(!pending.answer(response), "a second answer is nobody's");
        }
        assert!(first.await.unwrap().is_ok());
        assert!(second.await.unwrap().is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn silence_ends_in_a_timeout_and_a_cancellation() {
        let (pending, mut drain) = setup();
        let asked = ask(&pending);
        sent(&mut drain).await;
        assert_eq!(asked.await.unwrap().unwrap_err(), Fault::Timeout(Duration::from_secs(10)));
        assert!(sent(&mut drain).await.contains(r#""method":"notifications/cancelled","params":{"requestId":1}"#));
    }

    #[tokio::test(start_paused = true)]
    async fn progress_extends_up_to_the_maximum() {
        let (pending, mut drain) = setup();
        let asked = ask(&pending);
        sent(&mut drain).await;
        let note =
            message(r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}"#);
        let Message::Notification(note) = note else { panic!("must be a notification") };
        for _ in 0..5 {
            tokio::time::sleep(Duration::from_secs(8)).await;
            pending.progress(&note);
        }
        assert_eq!(asked.await.unwrap().unwrap_err(), Fault::Timeout(Duration::from_secs(25)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_waits_for_us_is_not_silent() {
        let (pending, mut drain) = setup();
        let asked = ask(&pending);
        sent(&mut drain).await;
        let question = pending.question();
        tokio::time::sleep(Duration::from_secs(14)).await;
        drop(question);
        assert_eq!(asked.await.unwrap().unwrap_err(), Fault::Timeout(Duration::from_secs(24)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_reads_nothing_ends_in_a_timeout() {
        let (pending, _drain) = setup();
        pending.outlet.send_now(|out| out.resize(crate::outlet::HIGH_WATER, b'x'));
        assert_eq!(ask(&pending).await.unwrap().unwrap_err(), Fault::Timeout(Duration::from_secs(10)));
    }

    #[tokio::test]
    async fn a_peer_that_goes_fails_everything_at_once() {
        let (pending, mut drain) = setup();
        let asked = ask(&pending);
        sent(&mut drain).await;
        pending.close("it exited with status 3");
        for asked in [asked, ask(&pending)] {
            assert_eq!(asked.await.unwrap().unwrap_err(), Fault::Closed("it exited with status 3".into()));
        }
    }

    #[tokio::test]
    async fn giving_up_tells_the_peer() {
        let (pending, mut drain) = setup();
        let asked = ask(&pending);
        sent(&mut drain).await;
        asked.abort();
        assert!(sent(&mut drain).await.contains("notifications/cancelled"));
    }
}
