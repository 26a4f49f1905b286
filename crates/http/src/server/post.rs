//! `POST /mcp`: messages of every version.

use crate::server::endpoint::{Endpoint, accepts, is_json};
use crate::server::events::{Manner, Stream};
use crate::server::headers;
use crate::server::oldest::session_id;
use crate::server::response::{self, Body, Refusal, SESSION_ID};
use crate::server::sessions::Held;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body as _, Incoming as HttpBody};
use hyper::header::{HeaderMap, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Response, StatusCode};
use memchr::memmem::Finder;
use rialto_mcp::error::{Error, Kind};
use rialto_mcp::json;
use rialto_mcp::line::DEFAULT_LIMIT;
use rialto_mcp::message::{Incoming, Malformed, Message, Problem, Request};
use rialto_mcp::outlet::{Drain, Taken, exchange};
use rialto_mcp::server::{Service, Session, read};
use rialto_mcp::version::Version;
use std::any::Any;
use std::future::poll_fn;
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;

/// How long a client may pause within a body, and take for it in all.
const BODY_PAUSE: Duration = Duration::from_secs(10);
const BODY_TOTAL: Duration = Duration::from_secs(60);

/// How long an answer is waited for before the client gets a stream that shows signs of life.
const STREAM_AFTER: Duration = Duration::from_secs(1);

/// What happens first on the stream of a request.
enum First {
    /// One message, the answer, and no more.
    Answer(Vec<u8>),
    /// Messages; no more if `last`.
    Messages { text: Vec<u8>, last: bool },
    /// It ended without a word.
    Nothing,
    /// Nothing yet.
    Later,
    /// Nothing yet, and the client should come back for it.
    LetGo,
}

/// A stateless request while it runs. When its connection goes, so does it.
struct Running<S: Service> {
    service: Arc<S>,
    session: Arc<Session<S>>,
    _permit: Option<OwnedSemaphorePermit>,
}

impl<S: Service> Drop for Running<S> {
    fn drop(&mut self) {
        self.session.abandon();
        self.service.closed(self.session.peer());
    }
}

impl<S: Service> Endpoint<S> {
    pub(super) async fn post(self: &Arc<Self>, parts: Parts, body: HttpBody) -> Result<Response<Body>, Refusal> {
        if let Some(id) = session_id(&parts) {
            return self.post_oldest(id, &parts, body).await;
        }
        let headers = &parts.headers;
        if !is_json(headers) {
            return Err(Refusal::invalid(StatusCode::UNSUPPORTED_MEDIA_TYPE, "The body must be application/json"));
        }
        if !accepts(headers, "application/json") || !accepts(headers, "text/event-stream") {
            let words = "Not acceptable: clients must accept both application/json and text/event-stream";
            return Err(Refusal::invalid(StatusCode::NOT_ACCEPTABLE, words));
        }
        let incoming = read(read_body(body).await?);
        let body_version = match &incoming {
            Incoming::Single(Ok(Message::Request(request))) => headers::body_version(request.params()),
            _ => None,
        };
        if headers::is_stateless(headers, body_version.as_deref()) {
            let answered = self.post_stateless(headers, incoming).await;
            return answered.map_err(|refusal| refusal.in_words_of(Version::LATEST));
        }
        headers::check_version(headers)?;
        let version = headers::version(headers).and_then(Result::ok);
        match self.session_of(headers)? {
            Some(held) => self.post_in_session(&held, incoming).await,
            None => match incoming {
                Incoming::Single(Ok(Message::Request(request))) if request.method() == "initialize" => {
                    self.initialize(request).await
                }
                Incoming::Single(Err(malformed)) => Err(refusal(&malformed)),
                other => {
                    let id = if let Incoming::Single(Ok(Message::Request(request))) = &other {
                        Some(&request.id)
                    } else {
                        None
                    };
                    let words = "`Mcp-Session-Id` is missing: begin with `initialize`, or send a stateless request";
                    let refusal = Refusal::invalid(StatusCode::BAD_REQUEST, words).to(id);
                    Ok(refusal.response(version.unwrap_or(Version::V2025_03_26)))
                }
            },
        }
    }

    async fn initialize(self: &Arc<Self>, request: Request) -> Result<Response<Body>, Refusal> {
        let held = Held::new(self.service.clone(), Manner::Kept);
        let (outlet, mut drain) = exchange();
        held.session.accept(Incoming::Single(Ok(Message::Request(request))), &outlet).await;
        let first = first(&mut drain, None).await;
        if held.session.peer().profile().is_some() {
            self.begin(&held)?;
            let id = HeaderValue::from_str(&held.id);
            let mut response = self.respond_in_session(&held, first, drain, StatusCode::OK);
            response.headers_mut().extend(id.ok().map(|id| (SESSION_ID, id)));
            return Ok(response);
        }
        Ok(self.respond_in_session(&held, first, drain, StatusCode::OK))
    }

    async fn post_in_session(
        self: &Arc<Self>,
        held: &Arc<Held<S>>,
        incoming: Incoming,
    ) -> Result<Response<Body>, Refusal> {
        let (outlet, mut drain) = exchange();
        let (answers, status) = match &incoming {
            Incoming::Single(Ok(Message::Request(_))) | Incoming::Batch(_) => (true, StatusCode::OK),
            Incoming::Single(Ok(_)) => (false, StatusCode::ACCEPTED),
            Incoming::Single(Err(malformed)) => (malformed.problem != Problem::Response, StatusCode::BAD_REQUEST),
        };
        held.session.accept(incoming, &outlet).await;
        if !answers {
            return Ok(response::empty(StatusCode::ACCEPTED));
        }
        drop(outlet);
        // A client that goes away while it waits has not cancelled: what it asked for goes on.
        let first = first(&mut drain, Some(STREAM_AFTER)).await;
        Ok(self.respond_in_session(held, first, drain, status))
    }

    fn respond_in_session(
        &self,
        held: &Arc<Held<S>>,
        first: First,
        drain: Drain,
        status: StatusCode,
    ) -> Response<Body> {
        let (text, last, stays) = match first {
            First::Answer(text) => return response::json(status, text),
            First::Nothing => return response::empty(StatusCode::ACCEPTED),
            First::Messages { text, last } => (text, last, true),
            First::Later => (Vec::new(), false, true),
            First::LetGo => (Vec::new(), false, false),
        };
        let stream = held.stream(drain);
        stream.fill(&text, last);
        let primes = held.session.peer().version() >= Version::V2025_11_25;
        let reader = stream.read(0, primes, self.counts.stream(), None);
        response::events(if stays { reader } else { reader.briefly() })
    }

    async fn post_stateless(
        self: &Arc<Self>,
        headers: &HeaderMap,
        incoming: Incoming,
    ) -> Result<Response<Body>, Refusal> {
        let (outlet, mut drain) = exchange();
        let session = Session::stateless(self.service.clone(), self.nowhere.clone());
        let permit = self.running.clone().try_acquire_owned().ok();
        let running = Running { service: self.service.clone(), session, _permit: permit };
        if *self.stop.borrow() {
            running.session.stop();
        }
        match incoming {
            Incoming::Single(Ok(Message::Request(request))) => {
                let profile = Arc::new(headers::check(headers, &request)?);
                if request.method() == "tools/call"
                    && let Some(tool) = json::get_string(request.params(), "name")
                {
                    let peer = running.session.peer();
                    let mirrored = self.service.mirrored(peer, &profile, &tool).await;
                    headers::check_arguments(headers, &request, &mirrored)?;
                }
                if request.method() == "subscriptions/listen" {
                    self.end_with_us(&running.session);
                }
                running.session.accept_stateless(request, profile, &outlet).await;
            }
            // This version has none that mean anything here.
            Incoming::Single(Ok(Message::Notification(_))) => return Ok(response::empty(StatusCode::ACCEPTED)),
            Incoming::Single(Ok(Message::Response(_))) => {
                let words = "Stateless clients answer with their next request, not with responses";
                return Err(Refusal::invalid(StatusCode::BAD_REQUEST, words));
            }
            Incoming::Single(Err(malformed)) => return Err(refusal(&malformed)),
            batch @ Incoming::Batch(_) => {
                self.end_with_us(&running.session);
                running.session.accept(batch, &outlet).await;
            }
        }
        drop(outlet);
        Ok(match first(&mut drain, Some(STREAM_AFTER)).await {
            First::Answer(text) => response::json(status_of(&text), text),
            First::Nothing => response::empty(StatusCode::ACCEPTED),
            First::Messages { text, last: true } => response::events_at_once(Stream::written(&text)),
            later => {
                let stream = Stream::new(0, Manner::Plain, drain);
                if let First::Messages { text, .. } = later {
                    stream.fill(&text, false);
                }
                let guard: Box<dyn Any + Send> = Box::new(running);
                response::events(stream.read(0, false, self.counts.stream(), Some(guard)))
            }
        })
    }

    /// Subscriptions, of which a batch may hold some, end by themselves only when we do.
    fn end_with_us(&self, session: &Arc<Session<S>>) {
        let (mut stop, session) = (self.stop.clone(), Arc::downgrade(session));
        tokio::spawn(async move {
            // Looks now and then whether there is still somebody to tell.
            while session.strong_count() > 0 {
                let waited = tokio::time::timeout(Duration::from_secs(60), stop.wait_for(|stop| *stop)).await;
                if waited.is_ok() {
                    break;
                }
            }
            if let Some(session) = session.upgrade() {
                session.stop();
            }
        });
    }
}

async fn first(drain: &mut Drain, patience: Option<Duration>) -> First {
    let taken = poll_fn(|context| drain.poll_take(context, &mut Vec::new()));
    let taken = match patience {
        Some(patience) => match tokio::time::timeout(patience, taken).await {
            Ok(taken) => taken,
            Err(_) => return First::Later,
        },
        None => taken.await,
    };
    match taken {
        Taken::Lines { mut text, last } => {
            let is_one = memchr::memchr(b'\n', &text) == Some(text.len() - 1);
            if is_one && last {
                text.pop();
                return First::Answer(text);
            }
            First::Messages { text, last }
        }
        Taken::LetGo => First::LetGo,
        Taken::End => First::Nothing,
    }
}

/// The status that goes with a stateless answer.
fn status_of(answer: &[u8]) -> StatusCode {
    static ERROR: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"error\""));
    if ERROR.find(answer).is_none() {
        return StatusCode::OK;
    }
    let code = json::get(answer, "error").and_then(|error| json::get(error, "code"));
    match code.and_then(|code| std::str::from_utf8(code).ok()?.parse::<i32>().ok()) {
        Some(-32601) => StatusCode::NOT_FOUND,
        Some(-32700 | -32600 | -32022..=-32020) => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}

/// The refusal of something that is no message.
fn refusal(malformed: &Malformed) -> Refusal {
    let (kind, title) = match malformed.problem {
        Problem::Syntax => (Kind::ParseError, "Parse error"),
        Problem::Envelope | Problem::Response => (Kind::InvalidRequest, "Invalid request"),
    };
    let error = Error::new(kind, format!("{title}: {}", malformed.reason));
    Refusal::of(StatusCode::BAD_REQUEST, error).to(malformed.id.as_ref())
}

/// Reads a body, up to the limit for one message.
pub(super) async fn read_body(mut body: HttpBody) -> Result<Bytes, Refusal> {
    let too_large = || {
        let words = format!("The message is longer than {DEFAULT_LIMIT} bytes");
        Refusal::invalid(StatusCode::PAYLOAD_TOO_LARGE, words)
    };
    if body.size_hint().lower() > DEFAULT_LIMIT as u64 {
        return Err(too_large());
    }
    let slow = || Refusal::invalid(StatusCode::REQUEST_TIMEOUT, "The body took too long");
    let whole = async {
        let mut first = Bytes::new();
        let mut rest = BytesMut::new();
        loop {
            let frame = tokio::time::timeout(BODY_PAUSE, body.frame()).await.map_err(|_| slow())?;
            let Some(frame) = frame else { break };
            let broken = |_| Refusal::invalid(StatusCode::BAD_REQUEST, "The body ends too early");
            let Ok(data) = frame.map_err(broken)?.into_data() else { continue };
            if first.len() + rest.len() + data.len() > DEFAULT_LIMIT {
                return Err(too_large());
            }
            // Most messages come in one piece, which then needs no copy.
            if first.is_empty() && rest.is_empty() {
                first = data;
            } else {
                if rest.is_empty() {
                    rest.extend_from_slice(&std::mem::take(&mut first));
                }
                rest.extend_from_slice(&data);
            }
        }
        Ok(if rest.is_empty() { first } else { rest.freeze() })
    };
    tokio::time::timeout(BODY_TOTAL, whole).await.unwrap_or_else(|_| Err(slow()))
}
