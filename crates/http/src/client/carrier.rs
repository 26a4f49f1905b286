//! Takes messages to a server, each by a `POST` of its own, and keeps the session that they belong to.

use super::Remote;
use super::endpoint::Way;
use super::exchange::Ask;
use super::mirror::Mirror;
use bytes::Bytes;
use hyper::Method;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use rialto_mcp::client::{Client, Host};
use rialto_mcp::id::Id;
use rialto_mcp::json;
use rialto_mcp::message::{self, Incoming, Message, Notification};
use rialto_mcp::outlet::Drain;
use rialto_mcp::pending::Fault;
use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::{AbortHandle, JoinSet};

pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
pub(super) const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// Requests that are under way to one server at once; further ones wait.
const MAX_AT_ONCE: usize = 128;

/// How long a message that is not answered may take to be accepted.
const QUIET_PATIENCE: Duration = Duration::from_secs(30);

/// How long we wait for a server to accept that it has been introduced before we go on.
const INITIALIZED_PATIENCE: Duration = Duration::from_secs(10);

/// How long a server may take to take note of the end of a session.
const END_PATIENCE: Duration = Duration::from_secs(2);

/// Answers that are on their way when a session is found to be gone still count, if they come at once.
const LAST_ANSWERS: Duration = Duration::from_millis(300);

/// How the time with a server ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// Because nothing more will be written to it.
    Finished,
    /// The server has forgotten us: a new session must be begun.
    SessionGone,
    /// The stream that carries everything is over.
    Lost(Fault),
}

/// Something that a task asks of the loop.
pub(super) enum Signal {
    Run(Pin<Box<dyn Future<Output = ()> + Send>>),
    End(End),
}

/// One time with one server.
pub(super) struct Carrier<H> {
    pub(super) remote: Remote,
    pub(super) client: Arc<Client>,
    pub(super) host: Arc<H>,
    session: Mutex<Session>,
    pub(super) mirror: Mutex<Mirror>,
    running: Mutex<HashMap<u64, Running>>,
    /// Where messages go in the oldest version.
    pub(super) oldest: OnceLock<hyper::Uri>,
    pub(super) at_once: Semaphore,
    signals: mpsc::Sender<Signal>,
}

/// What the answer to `initialize` said.
#[derive(Debug, Clone, Default)]
struct Session {
    id: Option<HeaderValue>,
    version: Option<HeaderValue>,
}

struct Running {
    task: AbortHandle,
    is_modern: bool,
    is_introduction: bool,
}

/// Carries messages between `client` and a server until the client's outlet is finished or the session is over.
pub async fn carry<H: Host>(remote: &Remote, client: &Arc<Client>, host: &Arc<H>, mut drain: Drain) -> End {
    let (signals, mut signalled) = mpsc::channel(16);
    let carrier = Arc::new(Carrier {
        remote: remote.clone(),
        client: client.clone(),
        host: host.clone(),
        session: Mutex::default(),
        mirror: Mutex::default(),
        running: Mutex::default(),
        oldest: OnceLock::new(),
        at_once: Semaphore::new(MAX_AT_ONCE),
        signals,
    });
    let mut tasks = JoinSet::new();
    if remote.endpoint.way() == Way::Sse
        && let Err(fault) = carrier.open_oldest().await
    {
        return End::Lost(fault);
    }
    let end = loop {
        tokio::select! {
            taken = drain.take(Vec::new()) => match taken {
                None => break End::Finished,
                Some(text) => {
                    for line in lines(text.into()) {
                        carrier.dispatch(line, &mut tasks).await;
                    }
                }
            },
            Some(signal) = signalled.recv() => match signal {
                Signal::Run(task) => {
                    tasks.spawn(task);
                }
                Signal::End(end) => break end,
            },
            Some(_) = tasks.join_next(), if !tasks.is_empty() => {}
        }
    };
    match end {
        End::Finished => carrier.delete_session().await,
        End::SessionGone => {
            let last = async { while tasks.join_next().await.is_some() {} };
            let _ = tokio::time::timeout(LAST_ANSWERS, last).await;
        }
        End::Lost(_) => {}
    }
    // What was never sent had no effect, and whoever waits for it should know.
    tokio::select! {
        biased;
        Some(text) = drain.take(Vec::new()) => {
            for line in lines(text.into()) {
                if let Incoming::Single(Ok(Message::Request(request))) = message::parse(line)
                    && let Some(id) = request.id.as_number()
                {
                    client.fail(id, Fault::SessionGone);
                }
            }
        }
        () = std::future::ready(()) => {}
    }
    end
}

/// The messages in what was taken from an outlet.
fn lines(mut text: Bytes) -> impl Iterator<Item = Bytes> {
    std::iter::from_fn(move || {
        let end = memchr::memchr(b'\n', &text)?;
        Some(text.split_to(end + 1).slice(..end))
    })
}

impl<H: Host> Carrier<H> {
    fn session(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn running(&self) -> MutexGuard<'_, HashMap<u64, Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) async fn signal(&self, signal: Signal) {
        // The loop ends only after it has dropped every task that could signal.
        let _ = self.signals.send(signal).await;
    }

    /// The server no longer knows our session.
    pub(super) async fn session_gone(&self) -> Fault {
        self.signal(Signal::End(End::SessionGone)).await;
        Fault::SessionGone
    }

    pub(super) fn has_session(&self) -> bool {
        self.session().id.is_some()
    }

    /// The headers of every message of a session.
    pub(super) fn session_headers(&self) -> HeaderMap {
        let mut headers = self.remote.endpoint.headers().clone();
        let Session { id, version } = self.session().clone();
        if let Some(id) = id {
            headers.insert(SESSION, id);
        }
        if let Some(version) = version {
            headers.insert(VERSION, version);
        }
        headers
    }

    /// Remembers what a server answered to `initialize`.
    pub(super) fn note_session(&self, id: Option<HeaderValue>, answer: &[u8]) {
        let version = json::get(answer, "result").and_then(|result| json::get_string(result, "protocolVersion"));
        let Some(version) = version.and_then(|version| HeaderValue::from_str(&version).ok()) else { return };
        let mut session = self.session();
        session.version = Some(version);
        if let Some(mut id) = id {
            id.set_sensitive(true);
            session.id = Some(id);
        }
    }

    async fn dispatch(self: &Arc<Self>, line: Bytes, tasks: &mut JoinSet<()>) {
        match message::parse(line.clone()) {
            Incoming::Single(Ok(Message::Request(request))) => {
                let Some(id) = request.id.as_number() else { return };
                let mut headers = self.session_headers();
                let ask = Ask::new(id, line, &request);
                if let Some(version) = ask.version.clone() {
                    headers.remove(SESSION);
                    headers.insert(VERSION, version);
                    self.mirror.lock().unwrap_or_else(PoisonError::into_inner).write(&mut headers, &request);
                }
                let (is_modern, is_introduction) = (ask.version.is_some(), ask.is_introduction);
                let carrier = self.clone();
                // The entry is there before the task can take it away.
                let mut running = self.running();
                let task = tasks.spawn(async move {
                    if let Err(fault) = carrier.exchange(&ask, &headers).await {
                        carrier.client.fail(id, fault);
                    }
                    carrier.running().remove(&id);
                });
                running.insert(id, Running { task, is_modern, is_introduction });
            }
            Incoming::Single(Ok(Message::Notification(note))) => match note.method() {
                "notifications/cancelled" => self.cancel(&note, line, tasks),
                // A server may refuse what reaches it before this does.
                "notifications/initialized" => {
                    self.post_quietly(line, INITIALIZED_PATIENCE).await;
                    if self.oldest.get().is_none() {
                        let carrier = self.clone();
                        tasks.spawn(async move { carrier.listen().await });
                    }
                }
                _ => self.spawn_quiet(line, tasks),
            },
            // An answer to a question of the server.
            _ => self.spawn_quiet(line, tasks),
        }
    }

    fn spawn_quiet(self: &Arc<Self>, line: Bytes, tasks: &mut JoinSet<()>) {
        let carrier = self.clone();
        tasks.spawn(async move { carrier.post_quietly(line, QUIET_PATIENCE).await });
    }

    /// Sends something that is not answered.
    async fn post_quietly(&self, line: Bytes, patience: Duration) {
        let headers = self.session_headers();
        let trouble = match tokio::time::timeout(patience, self.post(&line, &headers)).await {
            Ok(Ok(response)) if response.status().is_success() => return,
            Ok(Ok(response)) if response.status() == 404 && self.has_session() => {
                self.session_gone().await;
                return;
            }
            Ok(Ok(response)) => format!("HTTP status {}", response.status().as_u16()),
            Ok(Err(fault)) => fault.to_string(),
            Err(_) => "no answer".to_owned(),
        };
        self.host.warning(format!("a message was not accepted: {trouble}"));
    }

    /// Nobody waits for an answer any more. A stateless server learns it from the end of the stream, others are told.
    fn cancel(self: &Arc<Self>, note: &Notification, line: Bytes, tasks: &mut JoinSet<()>) {
        let id = json::get(note.params(), "requestId").and_then(|id| Id::read(Bytes::copy_from_slice(id)));
        let Some(id) = id.as_ref().and_then(Id::as_number) else { return };
        match self.running().remove(&id) {
            Some(running) if running.is_modern || running.is_introduction => running.task.abort(),
            Some(running) => {
                running.task.abort();
                self.spawn_quiet(line, tasks);
            }
            // Its answer comes on a stream that serves all.
            None if self.oldest.get().is_some() => self.spawn_quiet(line, tasks),
            None => {}
        }
    }

    async fn delete_session(&self) {
        if !self.has_session() {
            return;
        }
        let uri = self.remote.endpoint.uri().clone();
        let headers = self.session_headers();
        let deleted = self.send(Method::DELETE, uri, &headers, Bytes::new());
        // A server that does not take it forgets us by itself.
        let _ = tokio::time::timeout(END_PATIENCE, deleted).await;
    }
}
