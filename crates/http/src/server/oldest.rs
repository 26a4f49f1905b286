//! Clients of 2024-11-05: one stream of events for everything that is said, and an address to post to.

use crate::server::endpoint::{Endpoint, is_json};
use crate::server::events::Manner;
use crate::server::post::read_body;
use crate::server::response::{self, Body, Refusal};
use crate::server::sessions::{Held, Sessions};
use hyper::body::Incoming;
use hyper::header::HeaderMap;
use hyper::http::request::Parts;
use hyper::{Response, StatusCode};
use rialto_mcp::error::Kind;
use rialto_mcp::server::{Service, read};
use std::sync::{Arc, Weak};

/// The key in the address that a client is told to post to.
const KEY: &str = "sessionId=";

/// Ends a session with its stream.
struct Ending<S: Service> {
    sessions: Weak<Sessions<S>>,
    id: String,
}

impl<S: Service> Drop for Ending<S> {
    fn drop(&mut self) {
        if let Some(sessions) = self.sessions.upgrade() {
            sessions.remove(&self.id);
        }
    }
}

/// The session that an address names.
pub(super) fn session_id(parts: &Parts) -> Option<&str> {
    parts.uri.query()?.split('&').find_map(|part| part.strip_prefix(KEY))
}

impl<S: Service> Endpoint<S> {
    /// Opens the stream, and with it the session.
    pub(super) fn open_oldest(self: &Arc<Self>, headers: &HeaderMap) -> Result<Response<Body>, Refusal> {
        if !super::endpoint::accepts(headers, "text/event-stream") {
            let words = "Not acceptable: the answer is text/event-stream";
            return Err(Refusal::invalid(StatusCode::NOT_ACCEPTABLE, words));
        }
        let held = Held::new(self.service.clone(), Manner::Plain);
        self.begin(&held)?;
        let ending = Ending { sessions: Arc::downgrade(&self.sessions), id: held.id.clone() };
        let reader = held.push.read(0, false, self.counts.stream(), Some(Box::new(ending)));
        let opening = format!("event: endpoint\ndata: /mcp?{KEY}{}\n\n", held.id);
        Ok(response::events(reader.opened_by(opening)))
    }

    /// Keeps a new session.
    pub(super) fn begin(&self, held: &Arc<Held<S>>) -> Result<(), Refusal> {
        if *self.stop.borrow() {
            let words = "The server is shutting down";
            return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, Kind::ShuttingDown, words));
        }
        if !self.sessions.put(held) {
            return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, Kind::Busy, "There are too many sessions"));
        }
        self.counts.session_begun();
        Ok(())
    }

    /// Takes a message; what is answered goes over the stream.
    pub(super) async fn post_oldest(&self, id: &str, parts: &Parts, body: Incoming) -> Result<Response<Body>, Refusal> {
        let gone = || Refusal::invalid(StatusCode::NOT_FOUND, "The session is not there (any more): connect again");
        let held = self.sessions.get(id).ok_or_else(gone)?;
        if !is_json(&parts.headers) {
            return Err(Refusal::invalid(StatusCode::UNSUPPORTED_MEDIA_TYPE, "The body must be application/json"));
        }
        let text = read_body(body).await?;
        held.session.accept(read(text), &held.outlet).await;
        Ok(response::empty(StatusCode::ACCEPTED))
    }
}
