//! What the suite talks to: finds the answer to each method, and knows who has to hear of changes.

use super::seal::Seal;
use super::tasks::Tasks;
use super::{prompts, resources, tasks, tools};
use bytes::Bytes;
use rialto_mcp::call::Call;
use rialto_mcp::error::Error;
use rialto_mcp::mirror::Mirrored;
use rialto_mcp::peer::{Change, Peer, Profile};
use rialto_mcp::reply::Answer;
use rialto_mcp::server::{Description, Service};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};

/// What every server that the suite is run against offers.
pub(crate) static SURFACE: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../../../interop/conformance/surface.json")).unwrap_or_default()
});

const INFO: &[u8] =
    concat!("{\"name\":\"rialto-conformance\",\"version\":\"", env!("CARGO_PKG_VERSION"), "\"}").as_bytes();

/// The levels of log messages, least important first.
const LEVELS: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// The server.
pub(crate) struct Fixture {
    pub(crate) seal: Arc<Seal>,
    pub(crate) tasks: Arc<Tasks>,
    clients: Mutex<HashMap<u64, Client>>,
}

/// What is known of one client.
struct Client {
    peer: Weak<Peer>,
    /// The least important messages that it wants, if it has said.
    level: Option<usize>,
}

impl Fixture {
    pub(crate) fn new() -> Result<Self, ring::error::Unspecified> {
        let seal = Arc::new(Seal::new()?);
        let tasks = Arc::new(Tasks::new(seal.clone()));
        Ok(Self { seal, tasks, clients: Mutex::default() })
    }

    fn clients(&self) -> MutexGuard<'_, HashMap<u64, Client>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn meet(&self, peer: &Arc<Peer>) {
        self.clients().entry(peer.serial).or_insert_with(|| Client { peer: Arc::downgrade(peer), level: None });
    }

    /// Tells every client.
    pub(crate) fn changed(&self, change: &Change) {
        let peers: Vec<_> = self.clients().values().filter_map(|client| client.peer.upgrade()).collect();
        for peer in peers {
            peer.list_changed(change);
        }
    }

    /// Sends a log message, if the client wants it.
    pub(crate) async fn log(&self, call: &Call, level: &str, text: &str) {
        let rank = |level: &str| LEVELS.iter().position(|known| *known == level);
        let wanted = if call.version().is_modern() {
            let params: Value = serde_json::from_slice(call.params()).unwrap_or_default();
            params["_meta"][rialto_mcp::version::meta::LOG_LEVEL].as_str().and_then(rank)
        } else {
            Some(self.clients().get(&call.peer.serial).and_then(|client| client.level).unwrap_or(0))
        };
        if wanted.is_some_and(|wanted| rank(level) >= Some(wanted)) {
            let params = json!({ "level": level, "logger": "conformance", "data": text });
            call.notify("notifications/message", params.to_string().as_bytes()).await;
        }
    }

    fn set_level(&self, call: &Call, params: &Value) -> Result<Value, Error> {
        let level = text_of(params, "level")?;
        let rank = LEVELS.iter().position(|known| *known == level);
        let rank = rank.ok_or_else(|| Error::invalid_params(format!("Unknown level: {level}")))?;
        self.meet(&call.peer);
        if let Some(client) = self.clients().get_mut(&call.peer.serial) {
            client.level = Some(rank);
        }
        Ok(json!({}))
    }
}

impl Service for Fixture {
    fn info(&self) -> Bytes {
        Bytes::from_static(INFO)
    }

    async fn describe(&self, peer: &Arc<Peer>, profile: &Arc<Profile>) -> Description {
        self.meet(peer);
        let mut capabilities = json!({
            "tools": { "listChanged": true },
            "resources": { "subscribe": true, "listChanged": true },
            "prompts": { "listChanged": true },
            "completions": {},
            "logging": {},
        });
        if profile.version.is_modern() {
            capabilities["extensions"] = json!({ tasks::EXTENSION: {} });
        }
        Description {
            capabilities: capabilities.to_string().into_bytes(),
            info: self.info(),
            instructions: None,
            more: Vec::new(),
        }
    }

    async fn request(&self, call: &Call) -> Answer {
        let params: Value = serde_json::from_slice(call.params()).unwrap_or_default();
        match call.method() {
            "tools/list" => list(&params, "tools"),
            "tools/call" => value(tools::call(self, call, &params).await),
            "resources/list" => list(&params, "resources"),
            "resources/templates/list" => list(&params, "resourceTemplates"),
            "resources/read" => value(resources::read(&params).map_err(Answer::Error)),
            // Nothing here changes by itself, so there is nothing to remember.
            "resources/subscribe" | "resources/unsubscribe" => {
                value(resources::read(&params).map(|_| json!({})).map_err(Answer::Error))
            }
            "prompts/list" => list(&params, "prompts"),
            "prompts/get" => value(prompts::get(call, &params).await),
            "completion/complete" => value(prompts::complete(&params).map_err(Answer::Error)),
            "logging/setLevel" => value(self.set_level(call, &params).map_err(Answer::Error)),
            "tasks/get" | "tasks/update" | "tasks/cancel" if call.version().is_modern() => {
                value(self.tasks.request(call, &params).map_err(Answer::Error))
            }
            method => Answer::Error(Error::not_offered(method)),
        }
    }

    async fn mirrored(&self, _peer: &Arc<Peer>, _profile: &Arc<Profile>, tool: &str) -> Vec<Mirrored> {
        tools::mirrored(tool)
    }

    fn closed(&self, peer: &Arc<Peer>) {
        self.clients().remove(&peer.serial);
    }
}

/// A string among the members of an object.
pub(crate) fn text_of<'a>(object: &'a Value, name: &str) -> Result<&'a str, Error> {
    object[name].as_str().ok_or_else(|| Error::invalid_params(format!("`{name}` must be a string")))
}

fn value(result: Result<Value, Answer>) -> Answer {
    result.map_or_else(|answer| answer, |value| Answer::Result(value.to_string().into_bytes()))
}

/// A list of the surface, which fits one page.
fn list(params: &Value, key: &str) -> Answer {
    if params["cursor"].is_null() {
        value(Ok(json!({ key: SURFACE[key] })))
    } else {
        Answer::Error(Error::invalid_params("Invalid cursor"))
    }
}

/// A tool result of one text.
pub(crate) fn text(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}
