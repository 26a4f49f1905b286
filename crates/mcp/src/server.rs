//! The server role: reads what a client sends, answers all of it, in the era the client speaks.
//!
//! A [`Session`] keeps the protocol (lifecycle, ids, batches, cancellation, shutdown) and leaves the content to a
//! [`Service`]. It knows nothing of its transport but the [`Outlet`]s it writes to, so that several streams of one
//! client fit as well as one pipe.

use crate::batch::{Batch, Reply};
use crate::call::{Call, Cancel};
use crate::error::{Error, Kind};
use crate::id::{History, Id, IdKey};
use crate::json;
use crate::line::Line;
use crate::message::{self, Incoming, Malformed, Message, Notification, Problem, Request, SalvageKind};
use crate::mirror::Mirrored;
use crate::outlet::Outlet;
use crate::peer::{Peer, Profile};
use crate::pending::Fault;
use crate::reply::{self, Answer};
use crate::version::{Version, meta};
use bytes::Bytes;
use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;

/// Requests that one client may have open at once; more are answered with [`Kind::Busy`].
pub const MAX_IN_FLIGHT: usize = 4096;

/// Malformed messages in a row that are answered at once; after these, each line costs the sender [`STORM_DELAY`].
const STORM_BURST: u32 = 128;

/// A peer that sends nothing but errors is slowed to a hundred a second; each is still answered.
const STORM_DELAY: Duration = Duration::from_millis(10);

/// Methods that exist only with a handshake.
const LEGACY_ONLY: [&str; 5] =
    ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"];

/// Methods that exist only without one.
const MODERN_ONLY: [&str; 2] = ["server/discover", "subscriptions/listen"];

/// What a server says about itself.
#[derive(Debug, Clone)]
pub struct Description {
    /// The capabilities object.
    pub capabilities: Vec<u8>,
    /// The `serverInfo` object.
    pub info: Bytes,
    pub instructions: Option<String>,
    /// Further members of the result, as `"key":value,…`.
    pub more: Vec<u8>,
}

/// Who answers: the hub, a built-in server, a fixture.
pub trait Service: Send + Sync + 'static {
    /// Whether most requests are answered without waiting for anything. Those are then finished where they are read,
    /// without the cost of a task.
    const AT_ONCE: bool = true;

    /// The `serverInfo` object.
    fn info(&self) -> Bytes;

    /// What to tell a client that introduces itself.
    fn describe(&self, peer: &Arc<Peer>, profile: &Arc<Profile>) -> impl Future<Output = Description> + Send;

    /// Answers a request of any method but those that the session keeps for itself.
    fn request(&self, call: &Call) -> impl Future<Output = Answer> + Send;

    /// Takes a notification other than cancellation.
    fn notification(&self, _peer: &Arc<Peer>, _note: &Notification) -> impl Future<Output = ()> + Send {
        async {}
    }

    /// The arguments of a tool that clients repeat in headers over HTTP.
    fn mirrored(
        &self,
        _peer: &Arc<Peer>,
        _profile: &Arc<Profile>,
        _tool: &str,
    ) -> impl Future<Output = Vec<Mirrored>> + Send {
        async { Vec::new() }
    }

    /// A stateless client wants to hear of these resources ([`Filter::uris`](crate::peer::Filter)); `false` ends it.
    fn watch(&self, _peer: &Arc<Peer>, _uris: &[String], _on: bool) -> impl Future<Output = ()> + Send {
        async {}
    }

    /// The client is gone.
    fn closed(&self, _peer: &Arc<Peer>) {}
}

/// One client's session.
#[derive(Debug)]
pub struct Session<S> {
    service: Arc<S>,
    peer: Arc<Peer>,
    /// Whether every request must say which version it speaks.
    is_stateless: bool,
    state: Mutex<State>,
    /// Turns true when nothing new is begun any more.
    stopping: watch::Sender<bool>,
    /// The last request in flight was answered.
    idle: Notify,
}

#[derive(Debug, Default)]
struct State {
    in_flight: HashMap<IdKey, InFlight>,
    history: History,
    storm: u32,
    /// An over-long response is being read whose id has not been seen yet.
    awaits_end: bool,
}

#[derive(Debug)]
struct InFlight {
    /// Absent until the request has had to wait.
    abort: Option<AbortHandle>,
    cancel: Arc<Cancel>,
    reply: Reply,
    may_cancel: bool,
}

impl<S: Service> Session<S> {
    pub fn new(service: Arc<S>, outlet: Outlet) -> Arc<Self> {
        Self::begun(service, outlet, false)
    }

    /// A session in which nothing is remembered: every request must say which version it speaks.
    pub fn stateless(service: Arc<S>, outlet: Outlet) -> Arc<Self> {
        Self::begun(service, outlet, true)
    }

    fn begun(service: Arc<S>, outlet: Outlet, is_stateless: bool) -> Arc<Self> {
        let peer = Arc::new(Peer::new(outlet));
        let (stopping, idle) = (watch::Sender::new(false), Notify::new());
        Arc::new(Self { service, peer, is_stateless, state: Mutex::default(), stopping, idle })
    }

    pub fn peer(&self) -> &Arc<Peer> {
        &self.peer
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes one line; what belongs to it is written to `outlet`.
    pub async fn receive(self: &Arc<Self>, line: Line, outlet: &Outlet) {
        match line {
            Line::Text(text) => self.accept(read(text), outlet).await,
            Line::TooLong { beginning } => self.take_too_long(&beginning, outlet).await,
            Line::EndOfTooLong { ending } => self.take_end(&ending),
        }
        if self.state().storm > STORM_BURST {
            tokio::time::sleep(STORM_DELAY).await;
        }
    }

    /// Takes what one line or one HTTP body held ([`read`]); what belongs to it is written to `outlet`.
    pub async fn accept(self: &Arc<Self>, incoming: Incoming, outlet: &Outlet) {
        match incoming {
            Incoming::Single(member) => self.take(member, Reply::Line(outlet.clone()), outlet).await,
            Incoming::Batch(members) => self.take_batch(members, outlet).await,
        }
    }

    /// Takes a stateless request whose `_meta` has been read already.
    pub async fn accept_stateless(self: &Arc<Self>, request: Request, profile: Arc<Profile>, outlet: &Outlet) {
        self.peer.set_latest(profile.clone());
        self.begin(request, profile, Reply::Line(outlet.clone()), outlet).await;
    }

    async fn take_too_long(&self, beginning: &Bytes, outlet: &Outlet) {
        let found = message::salvage(beginning);
        if found.kind == SalvageKind::Response {
            // Never answered; but whoever waits for it should know.
            self.state().awaits_end = found.id.is_none();
            self.fail(found.id.as_ref(), Fault::TooLong);
            return;
        }
        let reason = "the message is longer than the limit".to_owned();
        let malformed = Malformed { problem: Problem::Envelope, reason, id: found.id };
        self.refuse(malformed, &Reply::Line(outlet.clone())).await;
    }

    /// Some libraries write the id of a response last.
    fn take_end(&self, ending: &[u8]) {
        if std::mem::take(&mut self.state().awaits_end) {
            self.fail(message::salvage_end(ending).as_ref(), Fault::TooLong);
        }
    }

    /// Fails the question whose answer cannot be taken.
    fn fail(&self, id: Option<&Id>, fault: Fault) {
        if let Some(id) = id.and_then(Id::as_number) {
            self.peer.pending.fail(id, fault);
        }
    }

    async fn take_batch(self: &Arc<Self>, members: Vec<Result<Message, Malformed>>, outlet: &Outlet) {
        let batch = Batch::new(members.len(), outlet.clone());
        for (place, member) in members.into_iter().enumerate() {
            let reply = Reply::Batch(batch.clone(), place);
            match member {
                Ok(Message::Request(request)) if request.method() == "initialize" => {
                    let error = Error::new(Kind::InvalidRequest, "`initialize` must not be part of a batch");
                    self.reply_error(&reply, Some(&request.id), &error).await;
                }
                Ok(Message::Request(_)) | Err(_) => self.take(member, reply, outlet).await,
                Ok(_) => {
                    self.take(member, reply.clone(), outlet).await;
                    reply.omit();
                }
            }
        }
    }

    async fn take(self: &Arc<Self>, member: Result<Message, Malformed>, reply: Reply, outlet: &Outlet) {
        match member {
            Ok(message) => {
                self.state().storm = 0;
                match message {
                    Message::Request(request) => self.start(request, reply, outlet).await,
                    Message::Notification(note) => self.notification(&note).await,
                    Message::Response(response) => {
                        self.peer.pending.answer(response);
                    }
                }
            }
            Err(malformed) => self.refuse(malformed, &reply).await,
        }
    }

    async fn refuse(&self, malformed: Malformed, reply: &Reply) {
        let kind = match malformed.problem {
            Problem::Syntax => Kind::ParseError,
            Problem::Envelope => Kind::InvalidRequest,
            Problem::Response => {
                self.fail(malformed.id.as_ref(), Fault::Unreadable(malformed.reason));
                return reply.omit();
            }
        };
        let title = if kind == Kind::ParseError { "Parse error" } else { "Invalid request" };
        let error = Error::new(kind, format!("{title}: {}", malformed.reason));
        self.reply_error(reply, malformed.id.as_ref(), &error).await;
        let mut state = self.state();
        state.storm = state.storm.saturating_add(1);
    }

    async fn reply_error(&self, reply: &Reply, id: Option<&Id>, error: &Error) {
        let version = self.peer.version();
        reply.send(|out| reply::write_error(out, id, error, "", version)).await;
    }

    async fn start(self: &Arc<Self>, request: Request, reply: Reply, outlet: &Outlet) {
        let profile = match self.profile_of(&request) {
            Ok(profile) => profile,
            Err(error) => {
                let version = Version::LATEST;
                return reply.send(|out| reply::write_error(out, Some(&request.id), &error, "", version)).await;
            }
        };
        self.begin(request, profile, reply, outlet).await;
    }

    async fn begin(self: &Arc<Self>, request: Request, profile: Arc<Profile>, reply: Reply, outlet: &Outlet) {
        let key = request.id.key();
        let cancel = Arc::new(Cancel::default());
        let may_cancel = request.method() != "initialize";
        let entry = InFlight { abort: None, cancel: cancel.clone(), reply: reply.clone(), may_cancel };
        if let Err(error) = self.admit(&key, entry, &request, &profile) {
            return self.reply_error(&reply, Some(&request.id), &error).await;
        }
        let is_own = ["initialize", "ping", "shutdown"].contains(&request.method());
        let call = Call { request, peer: self.peer.clone(), profile, outlet: outlet.clone(), cancel };
        // Boxed at once: a task would move it several times.
        let mut answering = Box::pin(self.clone().answer(call, key.clone(), reply));
        // What changes the session must have done so before the next message is read.
        if (S::AT_ONCE || is_own) && has_ended(answering.as_mut()) {
            return;
        }
        // The lock is held until the handle is in its place, so that the task cannot end before.
        let mut state = self.state();
        let abort = tokio::spawn(answering).abort_handle();
        match state.in_flight.get_mut(&key) {
            Some(entry) => entry.abort = Some(abort),
            None => abort.abort(),
        }
    }

    fn profile_of(&self, request: &Request) -> Result<Arc<Profile>, Error> {
        if let Some(profile) = self.peer.session() {
            return Ok(profile);
        }
        match Profile::from_meta(request.params()).filter(|_| request.method() != "initialize") {
            Some(profile) => {
                let profile = match self.peer.profile() {
                    // Clients repeat themselves: one copy serves.
                    Some(known) if profile.as_ref().is_ok_and(|profile| *profile == *known) => known,
                    _ => Arc::new(profile?),
                };
                self.peer.set_latest(profile.clone());
                Ok(profile)
            }
            None if self.is_stateless || MODERN_ONLY.contains(&request.method()) => {
                Err(Error::invalid_params(format!("`_meta` must have `{}`", meta::PROTOCOL_VERSION)))
            }
            None => Ok(Arc::new(Profile::unknown())),
        }
    }

    /// Checks whether a request may begin, and notes it as begun.
    fn admit(&self, key: &IdKey, entry: InFlight, request: &Request, profile: &Profile) -> Result<(), Error> {
        let mut state = self.state();
        if state.in_flight.contains_key(key) {
            return Err(Error::new(Kind::InvalidRequest, "Invalid request: a request with this id is in flight"));
        }
        if !profile.version.is_modern() && !state.history.insert(key) {
            return Err(Error::new(Kind::InvalidRequest, "Invalid request: this id was used before in this session"));
        }
        if *self.stopping.borrow() {
            return Err(Error::new(Kind::ShuttingDown, "The server is shutting down"));
        }
        if state.in_flight.len() >= MAX_IN_FLIGHT {
            return Err(Error::new(Kind::Busy, format!("{MAX_IN_FLIGHT} requests are in flight already")));
        }
        let other_era: &[&str] = if profile.version.is_modern() { &LEGACY_ONLY } else { &MODERN_ONLY };
        if other_era.contains(&request.method()) {
            return Err(Error::method_not_found(request.method()));
        }
        state.in_flight.insert(key.clone(), entry);
        Ok(())
    }

    async fn answer(self: Arc<Self>, call: Call, key: IdKey, reply: Reply) {
        let id = call.request.id.clone();
        let version = call.version();
        // Of the few methods that newer versions answer in a special way, the rest need no name.
        let method = reply::known_method(call.method());
        let mut unanswered =
            Unanswered { session: &self, key, id: &id, reply: &reply, cancel: call.cancel.clone(), armed: true };
        let answer = self.dispatch(&call).await;
        reply.send(|out| reply::write(out, &id, answer, method, version, || self.service.info())).await;
        unanswered.armed = false;
        if method == "initialize" {
            self.peer.set_welcomed();
        }
    }

    async fn dispatch(&self, call: &Call) -> Answer {
        match call.method() {
            "initialize" => Box::pin(self.initialize(call)).await,
            "ping" => Answer::empty(),
            "shutdown" => {
                self.stop();
                Answer::empty()
            }
            "server/discover" => Box::pin(self.discover(call)).await,
            "subscriptions/listen" => Box::pin(self.listen(call)).await,
            _ => self.service.request(call).await,
        }
    }

    async fn initialize(&self, call: &Call) -> Answer {
        let profile = match Profile::from_initialize(call.params()) {
            Ok(profile) => Arc::new(profile),
            Err(error) => return Answer::Error(error),
        };
        self.peer.set_session(profile.clone());
        let description = self.service.describe(&self.peer, &profile).await;
        Answer::Result(reply::initialize_result(&description, profile.version))
    }

    async fn discover(&self, call: &Call) -> Answer {
        Answer::Result(reply::discover_result(&self.service.describe(&self.peer, &call.profile).await))
    }

    async fn listen(&self, call: &Call) -> Answer {
        let description = self.service.describe(&self.peer, &call.profile).await;
        let filter = match reply::listen_filter(call.params(), &description.capabilities) {
            Ok(filter) => filter,
            Err(error) => return Answer::Error(error),
        };
        let id = Bytes::copy_from_slice(call.request.id.as_json());
        let acknowledgement = reply::acknowledgement(&id, &filter);
        let uris = filter.uris.clone();
        // Heard from here on, told from the acknowledgement on: nothing falls between.
        self.peer.listen(id.clone(), filter, call.outlet.clone());
        let watching = Watching { service: self.service.clone(), peer: self.peer.clone(), id: id.clone(), uris };
        self.service.watch(&self.peer, &watching.uris, true).await;
        self.peer.acknowledge(&id, &acknowledgement);
        let mut stopping = self.stopping.subscribe();
        // An error means that the session is gone, and then so is the stream.
        let _ = stopping.wait_for(|stopping| *stopping).await;
        drop(watching);
        Answer::Result(reply::listen_result(&id))
    }

    async fn notification(&self, note: &Notification) {
        match note.method() {
            "notifications/cancelled" => self.cancel(note),
            "notifications/progress" => {
                if let Some((outlet, text)) = self.peer.pending.progress(note) {
                    // Without waiting: a server that does not read must not hold up what the client says to others.
                    outlet.try_send(|out| out.extend_from_slice(&text));
                }
            }
            method => {
                if method == "notifications/initialized" {
                    self.peer.set_initialized();
                }
                self.service.notification(&self.peer, note).await;
            }
        }
    }

    fn cancel(&self, note: &Notification) {
        let Ok([Some(id), reason]) = json::find(note.params(), ["requestId", "reason"]) else { return };
        let Some(id) = Id::read(Bytes::copy_from_slice(&note.params()[id])) else { return };
        let key = id.key();
        let mut state = self.state();
        if state.in_flight.get(&key).is_none_or(|entry| !entry.may_cancel) {
            return;
        }
        let Some(entry) = state.in_flight.remove(&key) else { return };
        drop(state);
        if let Some(reason) = reason {
            let _ = entry.cancel.reason.set(Bytes::copy_from_slice(&note.params()[reason]));
        }
        entry.cancel.done.store(true, Ordering::Release);
        entry.abort.inspect(AbortHandle::abort);
        entry.reply.omit();
        self.idle.notify_waiters();
    }

    /// Begins nothing new; what runs is finished.
    pub fn stop(&self) {
        self.stopping.send_replace(true);
        self.idle.notify_waiters();
    }

    /// Waits until the session was stopped and everything is answered.
    pub async fn drained(&self) {
        let mut stopping = self.stopping.subscribe();
        let _ = stopping.wait_for(|stopping| *stopping).await;
        loop {
            let idle = self.idle.notified();
            if self.state().in_flight.is_empty() {
                return;
            }
            idle.await;
        }
    }

    /// The client can no longer answer: whatever was asked of it fails.
    pub fn hang_up(&self) {
        self.peer.pending.close("the client has closed its side");
    }

    /// Drops everything that still runs; nobody waits for it any more.
    pub fn abandon(&self) {
        self.hang_up();
        let running: Vec<_> = self.state().in_flight.drain().collect();
        for (_, entry) in running {
            entry.cancel.done.store(true, Ordering::Release);
            entry.abort.inspect(AbortHandle::abort);
            entry.reply.omit();
        }
        self.idle.notify_waiters();
    }

    /// Whether nothing is being answered.
    pub fn is_idle(&self) -> bool {
        self.state().in_flight.is_empty()
    }
}

/// Reads one line or one HTTP body.
pub fn read(text: Bytes) -> Incoming {
    let is_spoilt = json::has_lone_surrogate(&text);
    match message::parse(text) {
        // No character can stand for half a pair, so this is text that cannot be in UTF-8. An answer to us is taken as it
        // is; whoever asked can tell what to make of it.
        Incoming::Single(Ok(Message::Response(response))) => Incoming::Single(Ok(Message::Response(response))),
        _ if is_spoilt => {
            let reason = "a string has half a surrogate pair".to_owned();
            Incoming::Single(Err(Malformed { problem: Problem::Syntax, reason, id: None }))
        }
        incoming => incoming,
    }
}

/// Polls a request that may need no waiting; says whether it is over. A panic counts as an end: dropping the rest answers.
fn has_ended(answering: Pin<&mut impl Future<Output = ()>>) -> bool {
    let mut context = Context::from_waker(Waker::noop());
    let polled = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| answering.poll(&mut context)));
    !matches!(polled, Ok(Poll::Pending))
}

/// Sees to it that a request is answered and forgotten even if its task panics.
struct Unanswered<'a, S: Service> {
    session: &'a Arc<Session<S>>,
    key: IdKey,
    id: &'a Id,
    reply: &'a Reply,
    cancel: Arc<Cancel>,
    armed: bool,
}

impl<S: Service> Drop for Unanswered<'_, S> {
    fn drop(&mut self) {
        if self.cancel.done.load(Ordering::Acquire) {
            return;
        }
        if self.armed {
            let error = Error::new(Kind::Internal, "Internal error: the request was dropped");
            let version = self.session.peer.version();
            self.reply.send_now(|out| reply::write_error(out, Some(self.id), &error, "", version));
        }
        let mut state = self.session.state();
        state.in_flight.remove(&self.key);
        if state.in_flight.is_empty() {
            self.session.idle.notify_waiters();
        }
    }
}

/// Ends a subscription however its request ends.
struct Watching<S: Service> {
    service: Arc<S>,
    peer: Arc<Peer>,
    id: Bytes,
    uris: Vec<String>,
}

impl<S: Service> Drop for Watching<S> {
    fn drop(&mut self) {
        self.peer.unlisten(&self.id);
        let (service, peer, uris) = (self.service.clone(), self.peer.clone(), std::mem::take(&mut self.uris));
        if !uris.is_empty()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(async move { service.watch(&peer, &uris, false).await });
        }
    }
}
