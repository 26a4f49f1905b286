//! What is sent back over HTTP.

use crate::server::events::Reader;
use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, WWW_AUTHENTICATE};
use hyper::{Response, StatusCode};
use rialto_mcp::error::{Error, Kind};
use rialto_mcp::id::Id;
use rialto_mcp::reply;
use rialto_mcp::version::Version;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

pub(super) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");

/// A whole text, or events that come one by one.
pub(super) enum Body {
    Whole(Bytes),
    Events(Box<Reader>),
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Body::Whole(text) if text.is_empty() => Poll::Ready(None),
            Body::Whole(text) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(text))))),
            Body::Events(reader) => reader.poll_next(context).map(|text| text.map(|text| Ok(Frame::data(text)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Body::Whole(text) if text.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Body::Whole(text) => SizeHint::with_exact(text.len() as u64),
            Body::Events(_) => SizeHint::default(),
        }
    }
}

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
const PLAIN: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

pub(super) fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::Whole(Bytes::new()));
    *response.status_mut() = status;
    response
}

fn whole(status: StatusCode, kind: HeaderValue, text: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Body::Whole(text.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

pub(super) fn json(status: StatusCode, text: impl Into<Bytes>) -> Response<Body> {
    whole(status, JSON, text)
}

pub(super) fn plain(text: String) -> Response<Body> {
    whole(StatusCode::OK, PLAIN, text)
}

fn as_events(mut response: Response<Body>) -> Response<Body> {
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, EVENTS);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // Proxies would otherwise gather events before they pass them on.
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response
}

/// Events that are all known already.
pub(super) fn events_at_once(text: Bytes) -> Response<Body> {
    as_events(Response::new(Body::Whole(text)))
}

pub(super) fn events(reader: Reader) -> Response<Body> {
    as_events(Response::new(Body::Events(Box::new(reader))))
}

/// A request that is not taken: a status for HTTP, an error for MCP.
#[derive(Debug)]
pub(super) struct Refusal(Box<Details>);

#[derive(Debug)]
struct Details {
    status: StatusCode,
    error: Error,
    id: Option<Id>,
    header: Option<(HeaderName, HeaderValue)>,
    /// The version whose words are used, if that is known.
    version: Option<Version>,
}

impl Refusal {
    pub(super) fn of(status: StatusCode, error: Error) -> Self {
        Self(Box::new(Details { status, error, id: None, header: None, version: None }))
    }

    pub(super) fn new(status: StatusCode, kind: Kind, words: impl Into<String>) -> Self {
        Self::of(status, Error::new(kind, words))
    }

    pub(super) fn invalid(status: StatusCode, words: impl Into<String>) -> Self {
        Self::new(status, Kind::InvalidRequest, words)
    }

    pub(super) fn unauthorized(words: &str) -> Self {
        let mut refusal = Self::new(StatusCode::UNAUTHORIZED, Kind::AccessDenied, words);
        refusal.0.header = Some((WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"rialto\"")));
        refusal
    }

    pub(super) fn method(allowed: &'static str) -> Self {
        let words = format!("Method not allowed here; these are: {allowed}");
        let mut refusal = Self::invalid(StatusCode::METHOD_NOT_ALLOWED, words);
        refusal.0.header = Some((ALLOW, HeaderValue::from_static(allowed)));
        refusal
    }

    /// Says which request is refused.
    pub(super) fn to(mut self, id: Option<&Id>) -> Self {
        self.0.id = id.cloned();
        self
    }

    /// Says it as this version does, whatever the request claims to be.
    pub(super) fn in_words_of(mut self, version: Version) -> Self {
        self.0.version = Some(version);
        self
    }

    #[cfg(test)]
    pub(super) fn status(&self) -> StatusCode {
        self.0.status
    }

    pub(super) fn response(self, version: Version) -> Response<Body> {
        let Details { status, error, id, header, version: own } = *self.0;
        let mut response = json(status, reply::error_response(id.as_ref(), &error, own.unwrap_or(version)));
        response.headers_mut().extend(header);
        response
    }
}
