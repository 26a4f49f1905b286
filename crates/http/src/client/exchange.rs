//! One message to the server, and everything that may come back for it.

use super::agent::{Trouble, collect};
use super::carrier::{Carrier, SESSION, Signal};
use super::endpoint::{Way, is_same_origin, to_uri};
use super::events::{Events, TooLong};
use super::mirror::Excluded;
use super::oauth::Challenge;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION};
use hyper::{Method, Request as HttpRequest, Response, StatusCode, Uri};
use rialto_mcp::client::Host;
use rialto_mcp::id::Id;
use rialto_mcp::json;
use rialto_mcp::line::DEFAULT_LIMIT;
use rialto_mcp::message::{self, Message, Request};
use rialto_mcp::pending::Fault;
use rialto_mcp::version::meta;
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use url::Url;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");
const EITHER: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");

/// Redirections that are followed for one message.
const MAX_HOPS: usize = 3;

/// How often one message is sent anew with another token.
const MAX_CHALLENGES: usize = 2;

/// The longest refusal that is read.
const MAX_REFUSAL: usize = 1024 * 1024;

/// The pause before a broken stream is taken up again, unless the server names another; it doubles up to the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// How often in a row taking up a stream again may fail or bring nothing.
const MAX_RESUMPTIONS: usize = 5;

/// A stream of events that lasted this long was a good one: the next pause is short again.
const LONG_STREAM: Duration = Duration::from_secs(10);

/// How long the end of a stream may take after the answer, so that its connection can be used again.
const END_OF_STREAM: Duration = Duration::from_millis(500);

/// Requests that change nothing: they are sent once more if a kept connection breaks under them.
const SAFE: [&str; 9] = [
    "completion/complete",
    "ping",
    "prompts/get",
    "prompts/list",
    "resources/list",
    "resources/read",
    "resources/templates/list",
    "server/discover",
    "tools/list",
];

/// A request on its way.
#[derive(Debug)]
pub(super) struct Ask {
    id: u64,
    text: Bytes,
    /// The version that a stateless request names.
    pub(super) version: Option<HeaderValue>,
    pub(super) is_introduction: bool,
    is_tool_list: bool,
    is_safe: bool,
    is_endless: bool,
}

impl Ask {
    pub(super) fn new(id: u64, text: Bytes, request: &Request) -> Self {
        let version = json::get(request.params(), "_meta")
            .and_then(|members| json::get_string(members, meta::PROTOCOL_VERSION))
            .and_then(|version| HeaderValue::from_str(&version).ok());
        let method = request.method();
        Self {
            id,
            text,
            version,
            is_introduction: method == "initialize",
            is_tool_list: method == "tools/list",
            is_safe: SAFE.contains(&method),
            is_endless: method == "subscriptions/listen",
        }
    }
}

/// Where a stream broke off, and when to come back.
#[derive(Debug, Default)]
struct Place {
    last_id: Option<Bytes>,
    retry: Option<Duration>,
}

/// How the reading of a stream ended.
enum Read {
    Answered,
    Ended(Arc<str>),
    TooLong,
}

impl<H: Host> Carrier<H> {
    /// Sends a request and hands everything that comes back for it to the client.
    pub(super) async fn exchange(self: &Arc<Self>, ask: &Ask, headers: &HeaderMap) -> Result<(), Fault> {
        let _permit = if ask.is_endless { None } else { self.at_once.acquire().await.ok() };
        let response = match self.post(&ask.text, headers).await {
            Err(Fault::Lost(_)) if ask.is_safe => self.post(&ask.text, headers).await?,
            other => other?,
        };
        let status = response.status();
        if status.is_success() {
            return self.answered(ask, response).await;
        }
        if status == StatusCode::NOT_FOUND && ask.version.is_none() && !ask.is_introduction && self.has_session() {
            return Err(self.session_gone().await);
        }
        self.refused(ask, response).await
    }

    async fn answered(&self, ask: &Ask, response: Response<Incoming>) -> Result<(), Fault> {
        let session = response.headers().get(SESSION).cloned().filter(|_| ask.is_introduction);
        match media_type(response.headers()).as_deref() {
            Some("application/json") => {
                let body = collect(response.into_body(), DEFAULT_LIMIT).await.map_err(lost)?.ok_or(Fault::TooLong)?;
                self.deliver(ask, session, body).await;
                // Whatever it was, it was all.
                self.client.fail(ask.id, Fault::Unreadable("it holds no answer to the request".to_owned()));
                Ok(())
            }
            Some("text/event-stream") => self.follow(ask, session, response).await,
            // The answer comes on the stream.
            _ if self.oldest.get().is_some() => Ok(()),
            None => Err(Fault::Unreadable(format!("HTTP status {} without an answer", response.status().as_u16()))),
            Some(other) => Err(Fault::Unreadable(format!("it is {}, neither JSON nor events", other.escape_debug()))),
        }
    }

    /// Hands one message to the client, and keeps of it what later messages need.
    async fn deliver(&self, ask: &Ask, session: Option<HeaderValue>, mut text: Bytes) {
        if ask.is_introduction {
            self.note_session(session, &text);
        }
        if ask.is_tool_list && ask.version.is_some() {
            let (kept, excluded) = self.mirror.lock().unwrap_or_else(PoisonError::into_inner).learn(text);
            text = kept;
            for Excluded { tool, why } in excluded {
                self.host.warning(format!("tool `{}` is left out: {why}", tool.escape_debug()));
            }
        }
        self.client.receive(&self.host, text).await;
    }

    /// A status that means no. The reason may still be a message.
    async fn refused(self: &Arc<Self>, ask: &Ask, response: Response<Incoming>) -> Result<(), Fault> {
        let status = response.status();
        let is_json = media_type(response.headers()).as_deref() == Some("application/json");
        let body = collect(response.into_body(), MAX_REFUSAL).await.ok().flatten().unwrap_or_default();
        if is_json
            && let message::Incoming::Single(Ok(Message::Response(refusal))) = message::parse(body)
            && let Some(error) = refusal.error()
        {
            if ask.version.is_none() && status == StatusCode::BAD_REQUEST && self.has_session() && is_of_session(error)
            {
                return Err(self.session_gone().await);
            }
            // Refused before it was read, it may come without its id.
            let mut text = Vec::new();
            refusal.write(&mut text, &Id::number(ask.id));
            self.client.receive(&self.host, text.into()).await;
            return Ok(());
        }
        let fault = refusal(status);
        let may_be_oldest = matches!(status.as_u16(), 400 | 404 | 405) && self.remote.endpoint.way() == Way::Streamable;
        if ask.is_introduction && may_be_oldest && self.oldest.get().is_none() {
            // If it is not that either, the first refusal is the better reason.
            self.open_oldest().await.map_err(|_| fault)?;
            let response = self.post(&ask.text, &self.session_headers()).await?;
            if response.status().is_success() {
                return self.answered(ask, response).await;
            }
            return Err(refusal(response.status()));
        }
        Err(fault)
    }

    /// Reads the stream that a request was answered with, taking it up again where it broke off if that is possible.
    async fn follow(&self, ask: &Ask, session: Option<HeaderValue>, response: Response<Incoming>) -> Result<(), Fault> {
        let mut place = Place::default();
        let mut body = Some(response.into_body());
        let mut in_vain = 0;
        let mut words: Arc<str> = "the stream ended".into();
        loop {
            if let Some(body) = body.take() {
                let known = place.last_id.clone();
                match self.read(Some((ask, session.as_ref())), body, &mut place).await {
                    Read::Answered => return Ok(()),
                    Read::TooLong => return Err(Fault::TooLong),
                    Read::Ended(why) => words = why,
                }
                if place.last_id != known {
                    in_vain = 0;
                }
            }
            let Some(last_id) = place.last_id.clone().filter(|_| ask.version.is_none() && in_vain < MAX_RESUMPTIONS)
            else {
                return Err(Fault::Lost(words));
            };
            in_vain += 1;
            tokio::time::sleep(place.retry.unwrap_or(FIRST_PAUSE)).await;
            match self.open_stream(Some(&last_id)).await {
                Ok(response) if is_stream(&response) => body = Some(response.into_body()),
                Ok(response) if response.status() == StatusCode::NOT_FOUND && self.has_session() => {
                    // The request itself did reach the server.
                    self.session_gone().await;
                    return Err(Fault::Lost(words));
                }
                Ok(response) if response.status().is_client_error() => return Err(Fault::Lost(words)),
                Ok(_) => {}
                Err(fault @ Fault::Login(_)) => return Err(fault),
                Err(_) => {}
            }
        }
    }

    /// Hears what the server says outside of its answers, for as long as the session lasts.
    pub(super) async fn listen(&self) {
        let mut place = Place::default();
        let mut pause = FIRST_PAUSE;
        let mut has_heard = false;
        loop {
            let begun = Instant::now();
            match self.open_stream(place.last_id.clone().as_ref()).await {
                Ok(response) if is_stream(&response) => {
                    // Without a place to come back to, nobody repeats what was said meanwhile.
                    if std::mem::replace(&mut has_heard, true) && place.last_id.is_none() {
                        self.host.missed();
                    }
                    if let Read::TooLong = self.read(None, response.into_body(), &mut place).await {
                        self.host.warning("a message on the server's stream was longer than the limit".to_owned());
                        place.last_id = None;
                    }
                }
                Ok(response) if response.status() == StatusCode::NOT_FOUND && self.has_session() => {
                    self.session_gone().await;
                    return;
                }
                // It has no such stream.
                Ok(response) if !response.status().is_server_error() => return,
                Err(Fault::Login(_)) => return,
                Ok(_) | Err(_) => {}
            }
            if begun.elapsed() >= LONG_STREAM {
                pause = FIRST_PAUSE;
            }
            tokio::time::sleep(place.retry.unwrap_or_default().max(pause)).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Reads events until the stream ends or the answer to `ask` has come.
    async fn read(&self, ask: Option<(&Ask, Option<&HeaderValue>)>, mut body: Incoming, place: &mut Place) -> Read {
        let mut events = Events::new(DEFAULT_LIMIT);
        let ended: Arc<str> = loop {
            let data = match body.frame().await {
                None => break "the stream ended".into(),
                Some(Err(error)) => break error.to_string().into(),
                Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
            };
            events.push(&data);
            loop {
                let event = match events.next() {
                    Err(TooLong) => return Read::TooLong,
                    Ok(None) => break,
                    Ok(Some(event)) => event,
                };
                if !event.is_message() {
                    continue;
                }
                let Some((ask, session)) = ask else {
                    self.client.receive(&self.host, event.data).await;
                    continue;
                };
                self.deliver(ask, session.cloned(), event.data).await;
                if !self.client.is_waiting(ask.id) {
                    let rest = async { while let Some(Ok(_)) = body.frame().await {} };
                    let _ = tokio::time::timeout(END_OF_STREAM, rest).await;
                    return Read::Answered;
                }
            }
            if let Some(id) = events.last_id() {
                place.last_id = Some(id.clone()).filter(|id| !id.is_empty());
            }
            place.retry = events.retry().or(place.retry);
        };
        Read::Ended(ended)
    }

    /// Asks for a stream of events.
    pub(super) async fn open_stream(&self, last_id: Option<&Bytes>) -> Result<Response<Incoming>, Fault> {
        let mut headers = self.session_headers();
        if let Some(id) = last_id.and_then(|id| HeaderValue::from_bytes(id).ok()) {
            headers.insert(LAST_EVENT_ID, id);
        }
        self.send(Method::GET, self.remote.endpoint.uri().clone(), &headers, Bytes::new()).await
    }

    /// Sends one message.
    pub(super) async fn post(&self, text: &Bytes, headers: &HeaderMap) -> Result<Response<Incoming>, Fault> {
        let uri = self.oldest.get().unwrap_or(self.remote.endpoint.uri()).clone();
        self.send(Method::POST, uri, headers, text.clone()).await
    }

    /// Sends one HTTP request, showing a token where there is one, and follows redirections within the same origin.
    pub(super) async fn send(
        &self,
        method: Method,
        mut uri: Uri,
        headers: &HeaderMap,
        body: Bytes,
    ) -> Result<Response<Incoming>, Fault> {
        let (mut hops, mut challenges) = (0, 0);
        loop {
            let mut request = HttpRequest::new(Full::new(body.clone()));
            *request.method_mut() = method.clone();
            *request.uri_mut() = uri.clone();
            *request.headers_mut() = headers.clone();
            if method == Method::POST {
                request.headers_mut().insert(ACCEPT, EITHER);
                request.headers_mut().insert(CONTENT_TYPE, JSON);
            } else {
                request.headers_mut().insert(ACCEPT, EVENT_STREAM);
            }
            let mut shown = None;
            if let Some(authorizer) = &self.remote.authorizer {
                shown = authorizer.token().await?;
                if let Some(token) = &shown {
                    request.headers_mut().insert(AUTHORIZATION, token.header.clone());
                }
            }
            let response = self.remote.agent.send(request).await.map_err(lost)?;
            match response.status() {
                StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT => {
                    hops += 1;
                    uri =
                        self.redirected(&uri, &response).filter(|_| hops <= MAX_HOPS).ok_or_else(|| Fault::Status {
                            status: response.status().as_u16(),
                            words: "it leads elsewhere, which is not followed".into(),
                        })?;
                }
                status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
                    let Some(authorizer) = &self.remote.authorizer else { return Ok(response) };
                    let Some(challenge) = Challenge::read(status, response.headers()) else { return Ok(response) };
                    challenges += 1;
                    if challenges > MAX_CHALLENGES {
                        return Ok(response);
                    }
                    authorizer.meet(&challenge, shown.as_ref()).await?;
                }
                _ => return Ok(response),
            }
        }
    }

    /// Where a redirection leads, if that is the same program: what we send is for no other.
    fn redirected(&self, from: &Uri, response: &Response<Incoming>) -> Option<Uri> {
        let location = response.headers().get(LOCATION)?.to_str().ok()?;
        let target = Url::parse(&from.to_string()).ok()?.join(location).ok()?;
        is_same_origin(self.remote.endpoint.url(), &target).then(|| to_uri(&target)).flatten()
    }

    pub(super) async fn run_beside(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.signal(Signal::Run(Box::pin(task))).await;
    }
}

/// Some servers say with 400 what 404 is for.
fn is_of_session(error: &[u8]) -> bool {
    let is_theirs = matches!(json::get(error, "code"), Some(b"-32000" | b"-32001"));
    is_theirs && json::get_string(error, "message").is_some_and(|words| words.to_ascii_lowercase().contains("session"))
}

pub(super) fn is_stream(response: &Response<Incoming>) -> bool {
    response.status() == StatusCode::OK && media_type(response.headers()).as_deref() == Some("text/event-stream")
}

fn media_type(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    Some(value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
}

pub(super) fn refusal(status: StatusCode) -> Fault {
    // Not a word of the body: it may repeat what we sent.
    Fault::Status { status: status.as_u16(), words: status.canonical_reason().unwrap_or_default().into() }
}

fn lost(trouble: Trouble) -> Fault {
    if trouble.is_unsent { Fault::Unreachable(trouble.words) } else { Fault::Lost(trouble.words) }
}
