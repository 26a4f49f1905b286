//! One request on its way to an answer: what a service sees of it, and what it can say meanwhile.

use crate::id::Decimal;
use crate::json;
use crate::message::{self, Request, Response};
use crate::outlet::Outlet;
use crate::peer::{ASK_PATIENCE, Peer, Profile, progress_token};
use crate::pending::{Asker, Fault, Progress, Reason};
use crate::version::Version;
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// One request, with everything needed to answer it.
#[derive(Debug, Clone)]
pub struct Call {
    pub request: Request,
    pub peer: Arc<Peer>,
    /// How the client presented itself for this request.
    pub profile: Arc<Profile>,
    pub(crate) outlet: Outlet,
    pub(crate) cancel: Arc<Cancel>,
}

#[derive(Debug, Default)]
pub(crate) struct Cancel {
    pub(crate) done: AtomicBool,
    pub(crate) reason: Reason,
}

impl Call {
    pub fn method(&self) -> &str {
        self.request.method()
    }

    pub fn params(&self) -> &[u8] {
        self.request.params()
    }

    pub fn version(&self) -> Version {
        self.profile.version
    }

    /// Sends a notification that belongs to this request.
    pub async fn notify(&self, method: &str, params: &[u8]) {
        // A client that is gone is noticed by its session.
        let _ = self.outlet.send(|out| message::write_notification(out, method, params)).await;
    }

    /// Reports progress, if the client wants to know.
    pub async fn progress(&self, progress: f64, total: Option<f64>, words: Option<&str>) {
        let Some(token) = progress_token(self.params()) else { return };
        let mut params = b"{\"progressToken\":".to_vec();
        params.extend_from_slice(&self.params()[token]);
        params.extend_from_slice(format!(",\"progress\":{progress}").as_bytes());
        if let Some(total) = total {
            params.extend_from_slice(format!(",\"total\":{total}").as_bytes());
        }
        if let Some(words) = words
            && self.version() >= Version::V2025_03_26
        {
            params.extend_from_slice(b",\"message\":");
            json::write_string(&mut params, words);
        }
        params.push(b'}');
        self.notify("notifications/progress", &params).await;
    }

    /// The stream that belongs to this request.
    pub fn outlet(&self) -> &Outlet {
        &self.outlet
    }

    /// Lets go of the client's connection, which it makes anew to get the rest: for long work. Only clients of 2025-11-25
    /// over HTTP know how to come back.
    pub fn let_go(&self) {
        if self.version() == Version::V2025_11_25 {
            self.outlet.let_go();
        }
    }

    /// Asks the client something on the server's own account.
    pub async fn ask(&self, method: &str, params: &[u8]) -> Result<Response, Fault> {
        let write = |out: &mut Vec<u8>, id: &Decimal| message::write_request(out, id.as_json(), method, params);
        self.peer.pending.request(&self.outlet, ASK_PATIENCE, Asker::default(), write).await
    }

    /// For passing the request on: where its progress goes, and why it was cancelled if it was.
    pub fn asker(&self) -> Asker {
        let token = progress_token(self.params());
        let progress = token.map(|place| Progress {
            token: Bytes::copy_from_slice(&self.params()[place]),
            outlet: self.outlet.clone(),
        });
        Asker { progress, reason: Some(self.cancel.reason.clone()) }
    }
}
