//! The client role: one connection to a server, in whichever era that server speaks.

use crate::error::{Error, Kind};
use crate::id::{Decimal, Id, IdKey};
use crate::json;
use crate::line::{self, Line, LineReader};
use crate::message::{self, Edit, Incoming, Malformed, Message, Notification, Problem, Request, Response, SalvageKind};
use crate::outlet::Outlet;
use crate::peer::{Profile, progress_token};
use crate::pending::{Asker, Fault, Patience, Pending, Reason};
use crate::reply::{self, Answer};
use crate::version::{Version, meta};
use bytes::Bytes;
use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::io::AsyncRead;
use tokio::task::AbortHandle;

/// How long a server may take to answer `server/discover` before it is taken for one that does not know it.
const PROBE: Patience = Patience { silence: Duration::from_secs(10), total: Duration::from_secs(10) };

/// Questions of one server that are open at once; more are refused.
const MAX_QUESTIONS: usize = 256;

/// Who takes what a server sends on its own account.
pub trait Host: Send + Sync + 'static {
    /// Answers a request; dropped when the server cancels it. `reason` will then hold why.
    fn request(&self, request: Request, reason: Reason) -> impl Future<Output = Answer> + Send;

    fn notification(&self, note: Notification) -> impl Future<Output = ()> + Send;

    /// Output that is no message, such as a log line on the wrong stream.
    fn stray(&self, text: &[u8]);

    /// Something on the way to the server that a person may want to know of.
    fn warning(&self, text: String) {
        let _ = text;
    }

    /// What the server says on its own account may have been missed for a while.
    fn missed(&self) {}
}

/// What a server told about itself.
#[derive(Debug, Clone)]
pub struct Welcome {
    pub version: Version,
    pub capabilities: Bytes,
    pub info: Option<Bytes>,
    pub instructions: Option<String>,
    /// The whole result as it was sent.
    pub result: Bytes,
}

impl Welcome {
    /// Whether the server declared a capability.
    pub fn can(&self, capability: &str) -> bool {
        json::get(&self.capabilities, capability).is_some_and(|value| value != b"null" && value != b"false")
    }
}

/// Why a server could not be introduced to.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Unwelcome {
    #[error(transparent)]
    Fault(#[from] Fault),
    #[error("the server refused `{method}`: {message}")]
    Refused { method: &'static str, message: String },
    #[error("the server speaks no version that we know: {0}")]
    Version(String),
    #[error("the server's answer to `{0}` cannot be read")]
    Unreadable(&'static str),
}

/// The two ways to begin, in the order in which they are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    Legacy,
    Modern,
    LegacyThenModern,
    ModernThenLegacy,
}

/// One connection.
#[derive(Debug)]
pub struct Client {
    outlet: Outlet,
    pending: Pending,
    version: OnceLock<Version>,
    /// Requests of the server that we are answering.
    answering: Mutex<HashMap<IdKey, (AbortHandle, Reason)>>,
}

impl Client {
    pub fn new(outlet: Outlet) -> Arc<Self> {
        let pending = Pending::default();
        Arc::new(Self { outlet, pending, version: OnceLock::new(), answering: Mutex::default() })
    }

    /// The version that was agreed on; the oldest that fits before that.
    pub fn version(&self) -> Version {
        self.version.get().copied().unwrap_or(Version::V2025_06_18)
    }

    /// Where messages to the server are written.
    pub fn outlet(&self) -> &Outlet {
        &self.outlet
    }

    /// Fails everything that waits for this server, and will.
    pub fn close(&self, reason: &str) {
        self.pending.close(reason);
        // Its questions need no answer any more.
        for (_, (task, _)) in self.answering.lock().unwrap_or_else(PoisonError::into_inner).drain() {
            task.abort();
        }
    }

    /// Introduces `profile` to the server.
    pub async fn introduce(
        &self,
        profile: &Profile,
        opening: Opening,
        patience: Patience,
    ) -> Result<Welcome, Unwelcome> {
        let welcome = match opening {
            Opening::Legacy => self.initialize(profile, patience).await?,
            Opening::Modern => self.discover(profile, patience).await?,
            Opening::LegacyThenModern => match self.initialize(profile, patience).await {
                // If it refuses both, the reason it gave first is the better one.
                Err(refused @ (Unwelcome::Refused { .. } | Unwelcome::Fault(Fault::Status { .. }))) => {
                    self.discover(profile, patience).await.map_err(|_| refused)?
                }
                other => other?,
            },
            Opening::ModernThenLegacy => match self.discover(profile, PROBE).await {
                // Whoever is not there, or wants a login first, would not know the other era either.
                Err(Unwelcome::Fault(fault @ (Fault::Closed(_) | Fault::Unreachable(_) | Fault::Login(_)))) => {
                    return Err(fault.into());
                }
                Err(_) => self.initialize(profile, patience).await?,
                Ok(welcome) => welcome,
            },
        };
        let _ = self.version.set(welcome.version);
        Ok(welcome)
    }

    async fn initialize(&self, profile: &Profile, patience: Patience) -> Result<Welcome, Unwelcome> {
        let offered = if profile.version.is_modern() { Version::LATEST_LEGACY } else { profile.version };
        let params = initialize_params(profile, offered);
        let result = self.ask_result("initialize", &params, patience).await?;
        let told = json::get_string(&result, "protocolVersion").unwrap_or_default();
        let version = Version::parse(&told)
            .filter(|version| !version.is_modern())
            .ok_or_else(|| Unwelcome::Version(told.clone().into_owned()))?;
        self.notify("notifications/initialized", b"").await;
        Ok(welcome(version, &result, |result| json::get(result, "serverInfo")))
    }

    async fn discover(&self, profile: &Profile, patience: Patience) -> Result<Welcome, Unwelcome> {
        let params = json::with_meta(b"{}", &meta_members(profile));
        let mut response = self.request("server/discover", &params, patience).await?;
        // A server that refuses the version and then names it among those it supports is asked once more.
        if response.error().is_some_and(supports_latest) {
            response = self.request("server/discover", &params, patience).await?;
        }
        let result = result_of(&response, "server/discover")?;
        let versions = json::get(&result, "supportedVersions").unwrap_or(b"[]");
        let versions: Vec<String> =
            serde_json::from_slice(versions).map_err(|_| Unwelcome::Unreadable("server/discover"))?;
        if !versions.iter().any(|version| version == Version::LATEST.as_str()) {
            return Err(Unwelcome::Version(versions.join(", ")));
        }
        Ok(welcome(Version::LATEST, &result, |result| json::get(json::get(result, "_meta")?, meta::SERVER_INFO)))
    }

    async fn ask_result(&self, method: &'static str, params: &[u8], patience: Patience) -> Result<Bytes, Unwelcome> {
        let response = self.request(method, params, patience).await?;
        result_of(&response, method)
    }

    /// Sends a request of our own.
    pub async fn request(&self, method: &str, params: &[u8], patience: Patience) -> Result<Response, Fault> {
        let write = |out: &mut Vec<u8>, id: &Decimal| message::write_request(out, id.as_json(), method, params);
        self.pending.request(&self.outlet, patience, Asker::default(), write).await
    }

    /// Sends a request of our own and tells its id, by which notifications may refer to it.
    pub async fn request_noting(
        &self,
        method: &str,
        params: &[u8],
        patience: Patience,
        note: impl FnOnce(&Decimal),
    ) -> Result<Response, Fault> {
        let write = |out: &mut Vec<u8>, id: &Decimal| {
            note(id);
            message::write_request(out, id.as_json(), method, params);
        };
        self.pending.request(&self.outlet, patience, Asker::default(), write).await
    }

    /// Passes a client's request on, with `edits` in its params. Its progress token becomes one of ours.
    pub async fn forward(
        &self,
        request: &Request,
        edits: &[Edit<'_>],
        patience: Patience,
        asker: Asker,
    ) -> Result<Response, Fault> {
        let token = asker.progress.is_some().then(|| progress_token(request.params())).flatten();
        self.pending
            .request(&self.outlet, patience, asker, |out, id| {
                let Some(place) = token else { return request.write(out, id.as_json(), edits) };
                let mut all = edits.to_vec();
                let before = all.partition_point(|(other, _)| other.start < place.start);
                all.insert(before, (place, id.as_json()));
                request.write(out, id.as_json(), &all);
            })
            .await
    }

    /// Sends a request with params of our own making on behalf of a client. Progress tokens in `params` are replaced.
    pub async fn request_for(
        &self,
        method: &str,
        params: &[u8],
        patience: Patience,
        asker: Asker,
    ) -> Result<Response, Fault> {
        let token = asker.progress.is_some().then(|| progress_token(params)).flatten();
        self.pending
            .request(&self.outlet, patience, asker, |out, id| {
                let mut own = Vec::with_capacity(params.len());
                match token {
                    Some(place) => json::splice(&mut own, params, &[(place, id.as_json())]),
                    None => own.extend_from_slice(params),
                }
                message::write_request(out, id.as_json(), method, &own);
            })
            .await
    }

    /// Sends a notification.
    pub async fn notify(&self, method: &str, params: &[u8]) {
        // A server that is gone is noticed by whoever reads from it.
        let _ = self.outlet.send(|out| message::write_notification(out, method, params)).await;
    }

    /// Reads what the server sends until it ends.
    pub async fn run<H: Host>(self: &Arc<Self>, host: &Arc<H>, reader: impl AsyncRead + Unpin) -> io::Result<()> {
        let mut lines = LineReader::new(reader, line::DEFAULT_LIMIT);
        while let Some(line) = lines.next().await? {
            match line {
                Line::Text(text) => self.receive(host, text).await,
                Line::TooLong { beginning } => self.take_too_long(&beginning).await,
                Line::EndOfTooLong { ending } => self.take_end(host, &ending),
            }
        }
        Ok(())
    }

    /// Takes one message or batch of the server's, whichever way it came.
    pub async fn receive<H: Host>(self: &Arc<Self>, host: &Arc<H>, text: Bytes) {
        match message::parse(text.clone()) {
            Incoming::Single(member) => self.take(host, member, &text).await,
            Incoming::Batch(members) => {
                for member in members {
                    self.take(host, member, &text).await;
                }
            }
        }
    }

    /// Fails one request of ours; `false` if nobody waits for its answer.
    pub fn fail(&self, id: u64, fault: Fault) -> bool {
        self.pending.fail(id, fault)
    }

    /// Whether somebody still waits for the answer to a request of ours.
    pub fn is_waiting(&self, id: u64) -> bool {
        self.pending.is_waiting(id)
    }

    async fn take<H: Host>(self: &Arc<Self>, host: &Arc<H>, member: Result<Message, Malformed>, text: &Bytes) {
        match member {
            Ok(Message::Response(response)) => {
                self.pending.answer(response);
            }
            Ok(Message::Notification(note)) => match note.method() {
                // Progress on a request that is over concerns nobody.
                "notifications/progress" => {
                    if let Some((outlet, text)) = self.pending.progress(&note) {
                        // A client that is gone misses its progress; its request is being cancelled anyway.
                        outlet.tell(|out| out.extend_from_slice(&text)).await;
                    }
                }
                "notifications/cancelled" => self.cancelled(&note),
                _ => host.notification(note).await,
            },
            Ok(Message::Request(request)) => self.start(host, request).await,
            Err(malformed) => self.take_malformed(host, malformed, text).await,
        }
    }

    /// Not a message; but if it was meant as an answer, whoever waits for it should not wait on.
    async fn take_malformed<H: Host>(&self, host: &Arc<H>, malformed: Malformed, text: &Bytes) {
        let found = message::salvage(text);
        let id = malformed.id.or(found.id).or_else(|| message::salvage_end(text));
        match (found.kind, id) {
            (SalvageKind::Request, Some(id)) if malformed.problem == Problem::Envelope => {
                self.refuse(&id, format!("Invalid request: {}", malformed.reason)).await;
            }
            (SalvageKind::Response, Some(id)) if self.fail_unreadable(&id, &malformed.reason) => {}
            (SalvageKind::Unknown, Some(id)) if found.is_rpc && self.fail_unreadable(&id, &malformed.reason) => {}
            _ => host.stray(text),
        }
    }

    fn fail_unreadable(&self, id: &Id, reason: &str) -> bool {
        id.as_number().is_some_and(|id| self.pending.fail(id, Fault::Unreadable(reason.to_owned())))
    }

    async fn take_too_long(&self, beginning: &Bytes) {
        let found = message::salvage(beginning);
        match found.id {
            Some(id) if found.kind == SalvageKind::Request => {
                self.refuse(&id, "Invalid request: the message is longer than the limit".into()).await;
            }
            Some(id) => {
                id.as_number().map(|id| self.pending.fail(id, Fault::TooLong));
            }
            None => {}
        }
    }

    fn take_end<H: Host>(&self, host: &Arc<H>, ending: &Bytes) {
        let id = message::salvage_end(ending).as_ref().and_then(Id::as_number);
        if !id.is_some_and(|id| self.pending.fail(id, Fault::TooLong)) {
            host.stray(ending);
        }
    }

    async fn refuse(&self, id: &Id, reason: String) {
        let error = Error::new(Kind::InvalidRequest, reason);
        let _ = self.outlet.send(|out| reply::write_error(out, Some(id), &error, "", self.version())).await;
    }

    async fn start<H: Host>(self: &Arc<Self>, host: &Arc<H>, request: Request) {
        if request.method() == "ping" {
            let _ = self.outlet.send(|out| message::write_result(out, &request.id, b"{}")).await;
            return;
        }
        let key = request.id.key();
        let refusal = {
            let answering = self.answering.lock().unwrap_or_else(PoisonError::into_inner);
            if answering.contains_key(&key) {
                Some((Kind::InvalidRequest, "Invalid request: a request with this id is in flight"))
            } else if answering.len() >= MAX_QUESTIONS {
                Some((Kind::Busy, "too many questions are open already"))
            } else {
                None
            }
        };
        if let Some((kind, words)) = refusal {
            let error = Error::new(kind, words);
            let id = Some(&request.id);
            let _ = self.outlet.send(|out| reply::write_error(out, id, &error, "", self.version())).await;
            return;
        }
        let mut answering = self.answering.lock().unwrap_or_else(PoisonError::into_inner);
        let reason = Reason::default();
        let (client, host, done) = (self.clone(), host.clone(), key.clone());
        let task_reason = reason.clone();
        let task = tokio::spawn(async move {
            let id = request.id.clone();
            let _question = client.pending.question();
            let answer = host.request(request, task_reason).await;
            let version = client.version();
            let _ = client.outlet.send(|out| reply::write_plain(out, &id, answer, "", version)).await;
            client.answering.lock().unwrap_or_else(PoisonError::into_inner).remove(&done);
        });
        answering.insert(key, (task.abort_handle(), reason));
    }

    fn cancelled(&self, note: &Notification) {
        let Ok([Some(id), why]) = json::find(note.params(), ["requestId", "reason"]) else { return };
        let Some(id) = Id::read(Bytes::copy_from_slice(&note.params()[id])) else { return };
        let entry = self.answering.lock().unwrap_or_else(PoisonError::into_inner).remove(&id.key());
        if let Some((task, reason)) = entry {
            if let Some(why) = why {
                let _ = reason.set(Bytes::copy_from_slice(&note.params()[why]));
            }
            task.abort();
        }
    }
}

fn result_of(response: &Response, method: &'static str) -> Result<Bytes, Unwelcome> {
    match response.result() {
        Some(result) if result.first() == Some(&b'{') => Ok(Bytes::copy_from_slice(result)),
        Some(_) => Err(Unwelcome::Unreadable(method)),
        None => {
            let error = response.error().unwrap_or_default();
            let message = json::get_string(error, "message").unwrap_or_default().into_owned();
            Err(Unwelcome::Refused { method, message })
        }
    }
}

/// Whether an error says that our version is not supported, but lists it.
fn supports_latest(error: &[u8]) -> bool {
    let supported = json::get(error, "data").and_then(|data| json::get(data, "supported"));
    let versions: Vec<String> = supported.and_then(|list| serde_json::from_slice(list).ok()).unwrap_or_default();
    versions.iter().any(|version| version == Version::LATEST.as_str())
}

fn welcome(version: Version, result: &Bytes, info: impl FnOnce(&[u8]) -> Option<&[u8]>) -> Welcome {
    let capabilities = json::get(result, "capabilities").filter(|value| value.first() == Some(&b'{'));
    Welcome {
        version,
        capabilities: Bytes::copy_from_slice(capabilities.unwrap_or(b"{}")),
        info: info(result).map(Bytes::copy_from_slice),
        instructions: json::get_string(result, "instructions").map(std::borrow::Cow::into_owned),
        result: result.clone(),
    }
}

fn initialize_params(profile: &Profile, version: Version) -> Vec<u8> {
    if let Some(params) = &profile.initialize
        && let Ok([Some(place)]) = json::find(params, ["protocolVersion"])
    {
        let mut out = Vec::with_capacity(params.len());
        json::splice(&mut out, params, &[(place, &json::quoted(version.as_str()))]);
        return out;
    }
    let mut out = format!("{{\"protocolVersion\":\"{version}\",\"capabilities\":").into_bytes();
    out.extend_from_slice(&profile.capabilities);
    out.extend_from_slice(b",\"clientInfo\":");
    out.extend_from_slice(profile.info.as_deref().unwrap_or(OWN_INFO.as_bytes()));
    out.push(b'}');
    out
}

/// How we call ourselves where a client did not say who it is.
const OWN_INFO: &str = concat!("{\"name\":\"rialto\",\"version\":\"", env!("CARGO_PKG_VERSION"), "\"}");

/// The members of `_meta` that a stateless request needs, for a client with this profile.
pub fn meta_members(profile: &Profile) -> Vec<u8> {
    let mut out = Vec::new();
    json::push_member(&mut out, meta::PROTOCOL_VERSION.as_bytes(), &json::quoted(Version::LATEST.as_str()));
    json::push_member(&mut out, meta::CLIENT_CAPABILITIES.as_bytes(), &profile.capabilities);
    let info = profile.info.as_deref().unwrap_or(OWN_INFO.as_bytes());
    json::push_member(&mut out, meta::CLIENT_INFO.as_bytes(), info);
    out
}
