//! A client within the same process: typed answers, and no bytes in between.
//!
//! For wires that are not JSON-RPC themselves. Such a client has no capabilities, so that a server that wants to ask
//! something back is refused by the service.

use crate::call::{Call, Cancel};
use crate::error::{Error, Kind};
use crate::message::{self, Incoming, Message, Notification};
use crate::outlet::{Drain, Outlet, outlet};
use crate::peer::{Peer, Profile};
use crate::pending::Fault;
use crate::reply::Answer;
use crate::server::{Description, Service};
use crate::version::Version;
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// One such client.
#[derive(Debug)]
pub struct Local<S: Service> {
    service: Arc<S>,
    peer: Arc<Peer>,
    profile: Arc<Profile>,
    outlet: Outlet,
    next: AtomicU64,
}

/// What the service tells the client on its own account.
#[derive(Debug)]
pub struct Notes {
    drain: Drain,
    peer: Arc<Peer>,
    rest: Bytes,
}

impl<S: Service> Local<S> {
    /// Introduces a client; `info` is its `clientInfo` object.
    pub async fn open(service: Arc<S>, info: &str) -> (Self, Description, Notes) {
        let (outlet, drain) = outlet();
        let peer = Arc::new(Peer::new(outlet.clone()));
        let profile = Arc::new(Profile {
            version: Version::LATEST_LEGACY,
            capabilities: Bytes::from_static(b"{}"),
            info: Some(Bytes::copy_from_slice(info.as_bytes())),
            initialize: None,
        });
        peer.set_session(profile.clone());
        // From here on, changes during the introduction are told as well.
        peer.set_welcomed();
        peer.set_initialized();
        let description = service.describe(&peer, &profile).await;
        let notes = Notes { drain, peer: peer.clone(), rest: Bytes::new() };
        (Self { service, peer, profile, outlet, next: AtomicU64::new(1) }, description, notes)
    }

    /// Asks one thing. Dropping the future cancels it.
    pub async fn request(&self, method: &str, params: &[u8]) -> Answer {
        let mut text = Vec::with_capacity(params.len() + method.len() + 64);
        let id = self.next.fetch_add(1, Ordering::Relaxed).to_string();
        message::write_request(&mut text, id.as_bytes(), method, params);
        let Incoming::Single(Ok(Message::Request(request))) = message::parse(text.into()) else {
            return Answer::Error(Error::new(Kind::InvalidRequest, "the request cannot be put in JSON-RPC"));
        };
        let call = Call {
            request,
            peer: self.peer.clone(),
            profile: self.profile.clone(),
            outlet: self.outlet.clone(),
            cancel: Arc::new(Cancel::default()),
        };
        self.service.request(&call).await
    }
}

impl<S: Service> Drop for Local<S> {
    fn drop(&mut self) {
        self.service.closed(&self.peer);
    }
}

impl Notes {
    /// The next notification; `None` when the client is gone.
    pub async fn next(&mut self) -> Option<Notification> {
        loop {
            while let Some(end) = memchr::memchr(b'\n', &self.rest) {
                let line = self.rest.split_to(end + 1).slice(..end);
                match message::parse(line) {
                    Incoming::Single(Ok(Message::Notification(note))) => return Some(note),
                    Incoming::Single(Ok(Message::Request(request))) => {
                        // Nobody is here to answer questions.
                        if let Some(id) = request.id.as_number() {
                            self.peer.pending.fail(id, Fault::Closed("the caller cannot be asked".into()));
                        }
                    }
                    _ => {}
                }
            }
            self.rest = self.drain.take(Vec::new()).await?.into();
        }
    }
}
