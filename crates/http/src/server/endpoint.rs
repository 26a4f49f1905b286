//! Which request is for whom.

use crate::server::counts::Counts;
use crate::server::events::position;
use crate::server::health::{self, Health};
use crate::server::response::{self, Body, Refusal, SESSION_ID};
use crate::server::sessions::{Held, Sessions};
use crate::server::{Options, access, headers};
use hyper::body::Incoming;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderMap};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode};
use rialto_mcp::outlet::{Outlet, push};
use rialto_mcp::server::Service;
use rialto_mcp::version::Version;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, watch};

/// How often what nobody uses is looked for.
const SWEEP: Duration = Duration::from_secs(10);

/// How often it is looked whether everything is answered, once we are to stop.
const WIND_UP_PAUSE: Duration = Duration::from_millis(20);

/// Stateless requests at once; far more than there are connections.
const MAX_RUNNING: u32 = 1 << 20;

/// Where MCP is spoken, and where clients of the oldest version look for it.
const MCP: &str = "/mcp";
const OLDEST: &str = "/sse";

pub(super) struct Endpoint<S: Service> {
    pub(super) service: Arc<S>,
    pub(super) options: Options,
    address: SocketAddr,
    pub(super) sessions: Arc<Sessions<S>>,
    pub(super) counts: Counts,
    pub(super) stop: watch::Receiver<bool>,
    health: Health,
    /// Taken from by each stateless request that runs.
    pub(super) running: Arc<Semaphore>,
    /// For stateless clients: what belongs to no request has nowhere to go.
    pub(super) nowhere: Outlet,
}

impl<S: Service> Endpoint<S> {
    pub(super) fn new(service: Arc<S>, options: Options, address: SocketAddr, stop: watch::Receiver<bool>) -> Self {
        Self {
            service,
            options,
            address,
            sessions: Sessions::new(),
            counts: Counts::default(),
            stop,
            health: Health::default(),
            running: Arc::new(Semaphore::new(MAX_RUNNING as usize)),
            nowhere: push().0,
        }
    }

    /// Ends what nobody uses, for ever.
    pub(super) async fn keep_house(&self) {
        loop {
            tokio::time::sleep(SWEEP).await;
            self.sessions.sweep();
        }
    }

    /// Begins nothing new, and waits until everything that runs is answered.
    pub(super) async fn wind_up(&self) {
        self.sessions.each().iter().for_each(|held| held.session.stop());
        loop {
            for held in self.sessions.each() {
                // Nobody can come back for what is kept, and answers must not wait for that.
                held.forget_unread();
                if held.session.is_idle() {
                    self.sessions.remove(&held.id);
                }
            }
            // None is held here meanwhile: a session that its client leaves must be able to end.
            if self.sessions.len() == 0 {
                break;
            }
            tokio::time::sleep(WIND_UP_PAUSE).await;
        }
        // Nobody closes it.
        let _ = self.running.acquire_many(MAX_RUNNING).await;
    }

    pub(super) async fn handle(self: &Arc<Self>, request: Request<Incoming>) -> Response<Body> {
        let (parts, body) = request.into_parts();
        // Before anything has been read there is only the header to tell the version by; without it, it is the last version
        // that did not know this header.
        let version = headers::version(&parts.headers).and_then(Result::ok).unwrap_or(Version::V2025_03_26);
        let response = self.route(parts, body).await.unwrap_or_else(|refusal| refusal.response(version));
        self.counts.answered(response.status().as_u16());
        response
    }

    async fn route(self: &Arc<Self>, parts: Parts, body: Incoming) -> Result<Response<Body>, Refusal> {
        access::check_place(&self.options, self.address, &parts.uri, &parts.headers)?;
        if parts.uri.path() == "/healthz" {
            return self.health(&parts).await;
        }
        access::check_token(&self.options, &parts.headers)?;
        match (parts.uri.path(), &parts.method) {
            (MCP, &Method::POST) => self.post(parts, body).await,
            (MCP, &Method::GET) => self.get(&parts),
            (MCP, &Method::DELETE) => self.delete(&parts.headers),
            (MCP, _) => Err(Refusal::method("GET, POST, DELETE")),
            (OLDEST, &Method::GET) => self.open_oldest(&parts.headers),
            (OLDEST, &Method::POST) => self.post(parts, body).await,
            (OLDEST, _) => Err(Refusal::method("GET, POST")),
            ("/metrics", &Method::GET) => Ok(response::plain(self.metrics())),
            ("/metrics", _) => Err(Refusal::method("GET")),
            _ => Err(Refusal::invalid(StatusCode::NOT_FOUND, format!("There is nothing here; MCP is at {MCP}"))),
        }
    }

    async fn health(&self, parts: &Parts) -> Result<Response<Body>, Refusal> {
        if ![Method::GET, Method::HEAD].contains(&parts.method) {
            return Err(Refusal::method("GET, HEAD"));
        }
        let is_trusted = access::check_token(&self.options, &parts.headers).is_ok();
        let checked = self.health.check(self.options.probe.as_ref()).await;
        let (is_well, report) = health::report(&checked, is_trusted);
        let status = if is_well { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        Ok(response::json(status, report.to_string()))
    }

    fn metrics(&self) -> String {
        let mut out = String::new();
        self.counts.write(&mut out, self.sessions.len());
        if let Some(gauges) = &self.options.gauges {
            gauges(&mut out);
        }
        out
    }

    /// The session that a request names.
    pub(super) fn session_of(&self, headers: &HeaderMap) -> Result<Option<Arc<Held<S>>>, Refusal> {
        let Some(id) = headers.get(SESSION_ID) else { return Ok(None) };
        let held = id.to_str().ok().and_then(|id| self.sessions.get(id));
        let gone = || Refusal::invalid(StatusCode::NOT_FOUND, "The session is not there (any more): initialize again");
        held.map(Some).ok_or_else(gone)
    }

    fn get(self: &Arc<Self>, parts: &Parts) -> Result<Response<Body>, Refusal> {
        let headers = &parts.headers;
        if !accepts(headers, "text/event-stream") {
            let words = "Not acceptable: the answer is text/event-stream";
            return Err(Refusal::invalid(StatusCode::NOT_ACCEPTABLE, words));
        }
        headers::check_version(headers)?;
        // Stateless clients have no such stream.
        if headers::version(headers).is_some_and(|version| version.is_ok_and(Version::is_modern)) {
            return Err(Refusal::method("POST"));
        }
        let Some(held) = self.session_of(headers)? else { return self.open_oldest(headers) };
        let version = held.session.peer().version();
        let place = match headers.get("last-event-id") {
            None => None,
            Some(id) => {
                // Not 404, which says that the whole session is gone.
                let unknown = || Refusal::invalid(StatusCode::BAD_REQUEST, "`Last-Event-ID` is not known (any more)");
                let (number, seen) = id.to_str().ok().and_then(position).ok_or_else(unknown)?;
                let stream = held.stream_of(number).filter(|stream| stream.reaches(seen)).ok_or_else(unknown)?;
                Some((stream, seen))
            }
        };
        let primes = place.is_none() && version >= Version::V2025_11_25;
        let (stream, seen) = place.unwrap_or_else(|| {
            let seen = held.push.sent();
            (held.push.clone(), seen)
        });
        Ok(response::events(stream.read(seen, primes, self.counts.stream(), None)))
    }

    fn delete(&self, headers: &HeaderMap) -> Result<Response<Body>, Refusal> {
        headers::check_version(headers)?;
        let Some(held) = self.session_of(headers)? else {
            return Err(Refusal::invalid(StatusCode::BAD_REQUEST, "`Mcp-Session-Id` is missing"));
        };
        self.sessions.remove(&held.id);
        Ok(response::empty(StatusCode::NO_CONTENT))
    }
}

/// Whether an `Accept` header, if there is one, takes this kind.
pub(super) fn accepts(headers: &HeaderMap, kind: &str) -> bool {
    let family = kind.split('/').next().unwrap_or_default();
    let mut values = headers.get_all(ACCEPT).iter().peekable();
    if values.peek().is_none() {
        return true;
    }
    let mut kinds = values.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    kinds.any(|value| {
        let value = value.split(';').next().unwrap_or_default().trim();
        value.eq_ignore_ascii_case(kind)
            || value == "*/*"
            || value.strip_suffix("/*").is_some_and(|value| value.eq_ignore_ascii_case(family))
    })
}

/// Whether a body is JSON.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/json")
}
