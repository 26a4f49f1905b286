//! What servers send on their own account: questions for a client's user or model, changes, log messages.

use crate::bridge::Ask;
use crate::catalogue::Kind;
use crate::event::Event;
use crate::hub::Hub;
use crate::link::{Active, Attribution, Link};
use bytes::Bytes;
use rialto_mcp::client::Host;
use rialto_mcp::error::{self, Error};
use rialto_mcp::json;
use rialto_mcp::message::{Notification, Request};
use rialto_mcp::peer::{Change, progress_token};
use rialto_mcp::pending::{Asker, Progress, Reason};
use rialto_mcp::reply::Answer;
use std::sync::{Arc, Weak};
use tokio::sync::oneshot;

/// The hub's ear to one server.
#[derive(Debug)]
pub(crate) struct Upstream {
    pub(crate) hub: Weak<Hub>,
    pub(crate) link: Arc<Link>,
}

impl Host for Upstream {
    async fn request(&self, request: Request, reason: Reason) -> Answer {
        let Some(hub) = self.hub.upgrade() else { return Answer::Error(gone("the hub is stopping")) };
        let active = match self.link.attributed() {
            Attribution::Call(active) => active,
            Attribution::Idle => match hub.only_peer() {
                Some((peer, profile)) => Active { peer, profile, outlet: None, asks: None },
                None => return Answer::Error(unsupported(request.method(), "no client is there to be asked")),
            },
            Attribution::Ambiguous => {
                return Answer::Error(unsupported(
                    request.method(),
                    "several clients are being served: it is unclear whom to ask",
                ));
            }
        };
        if let Some(capability) = needed_capability(request.method())
            && !active.profile.can(capability)
        {
            return Answer::Error(unsupported(request.method(), &format!("the client does not support {capability}")));
        }
        if !active.profile.version.is_modern() {
            let progress = progress_token(request.params()).map(|place| Progress {
                token: Bytes::copy_from_slice(&request.params()[place]),
                outlet: self.link.client.outlet().clone(),
            });
            let asker = Asker { progress, reason: Some(reason) };
            return match active.peer.forward_request(&request, asker, active.outlet.as_ref()).await {
                Ok(response) => Answer::Response(response),
                Err(fault) => Answer::Error(gone(&fault.to_string())),
            };
        }
        let Some(asks) = active.asks else {
            return Answer::Error(unsupported(request.method(), "no call is running that could carry the question"));
        };
        let (answer, answered) = oneshot::channel();
        if asks.send(Ask { request, answer }).await.is_err() {
            return Answer::Error(gone("the call has ended"));
        }
        answered.await.unwrap_or_else(|_| Answer::Error(gone("the client gave no answer")))
    }

    async fn notification(&self, note: Notification) {
        let Some(hub) = self.hub.upgrade() else { return };
        if note.method() == "notifications/subscriptions/acknowledged" {
            self.link.acknowledge(&note);
            if self.link.take_missed() {
                self.link.source.look_again(&self.link, &hub);
            }
            return;
        }
        if self.link.is_outdated(&note) {
            return;
        }
        let kinds: &[Kind] = match note.method() {
            "notifications/tools/list_changed" => &[Kind::Tools],
            "notifications/prompts/list_changed" => &[Kind::Prompts],
            "notifications/resources/list_changed" => &[Kind::Resources, Kind::Templates],
            "notifications/resources/updated" => {
                if let Some(uri) = json::get_string(note.params(), "uri") {
                    let change = Change::Updated { uri: uri.into_owned() };
                    hub.updated(&self.link, &change, &note).await;
                }
                return;
            }
            _ => return hub.pass_on(&self.link, &note).await,
        };
        self.link.source.list_changed(&self.link, &hub, kinds);
    }

    fn warning(&self, text: String) {
        self.link.source.warn(text);
    }

    fn missed(&self) {
        if let Some(hub) = self.hub.upgrade() {
            self.link.source.look_again(&self.link, &hub);
        }
    }

    fn stray(&self, text: &[u8]) {
        const SHOWN: usize = 200;
        // A server that writes nothing else must not fill a log: after the first few, only each doubling is told.
        const FIRST: u64 = 16;
        let count = self.link.count_stray();
        if count > FIRST && !count.is_power_of_two() {
            return;
        }
        if let Some(hub) = self.hub.upgrade() {
            let line: String = String::from_utf8_lossy(text).chars().take(SHOWN).collect();
            hub.events().tell(Event::Stray { server: self.link.source.plan.name.clone(), count, line });
        }
    }
}

/// The capability that a client must have declared to be asked this.
pub(crate) fn needed_capability(method: &str) -> Option<&'static str> {
    match method {
        "sampling/createMessage" => Some("sampling"),
        "elicitation/create" => Some("elicitation"),
        "roots/list" => Some("roots"),
        _ => None,
    }
}

/// The error for a question that cannot be put.
pub(crate) fn unsupported(method: &str, why: &str) -> Error {
    let kind = match method {
        "sampling/createMessage" => error::Kind::SamplingUnsupported,
        _ => error::Kind::ClientCapabilityMissing,
    };
    Error::new(kind, format!("{method} is not supported: {why}"))
}

fn gone(why: &str) -> Error {
    Error::new(error::Kind::Unavailable, why)
}
