//! The MCP server.

use crate::session::Session;
use crate::tool::{Entry, Turn};
use rialto_mcp::call::Call;
use rialto_mcp::error::{Error, Kind};
use rialto_mcp::json;
use rialto_mcp::peer::{Peer, Profile};
use rialto_mcp::reply::Answer;
use rialto_mcp::server::{Description, Service};
use rialto_mcp::version::Version;
use serde_json::{Value, json};
use std::sync::Arc;

const INFO: &[u8] = concat!(
    "{\"name\":\"rialto-nostr\",\"title\":\"Rialto: Nostr tools\",\"version\":\"",
    env!("CARGO_PKG_VERSION"),
    "\"}"
)
.as_bytes();

const CAPABILITIES: &str = r#"{"tools":{}}"#;

/// The tools of one session, offered to MCP hosts.
#[derive(Debug)]
pub struct Server {
    session: Session,
    tools: Vec<Entry>,
    /// The list as clients get it.
    list: Vec<u8>,
}

impl Server {
    pub fn new(session: Session) -> Self {
        let mut tools = crate::tools();
        tools.retain(|tool| session.guard.offers(&tool.about));
        let definitions: Vec<Value> = tools.iter().map(Entry::definition).collect();
        let list = json!({ "tools": definitions }).to_string().into_bytes();
        Self { session, tools, list }
    }

    async fn call_tool(&self, call: &Call) -> Answer {
        let name = json::get_string(call.params(), "name");
        let Some(name) = name else {
            return Answer::Error(Error::invalid_params("`name` must be given once, as a string"));
        };
        let Some(tool) = self.tools.iter().find(|tool| tool.about.name == name) else {
            return Answer::Error(Error::new(Kind::ToolNotFound, format!("Unknown tool: {name}")).with("name", &*name));
        };
        let arguments = match json::get(call.params(), "arguments") {
            None | Some(b"null") => Value::Object(serde_json::Map::new()),
            Some(text) => serde_json::from_slice(text).unwrap_or(Value::Null),
        };
        let turn = Turn { session: &self.session, call };
        match tool.run(arguments, &turn).await {
            Ok(output) => Answer::Result(result(&output, call.version())),
            Err(failure) => failure.answer(call.version()),
        }
    }
}

/// A result: the JSON as text for everybody, and structured for those who know that.
fn result(output: &Value, version: Version) -> Vec<u8> {
    let content = [json!({ "type": "text", "text": output.to_string() })];
    let mut result = json!({ "content": content });
    if version >= Version::V2025_06_18 && output.is_object() {
        result["structuredContent"] = output.clone();
    }
    result.to_string().into_bytes()
}

impl Service for Server {
    const AT_ONCE: bool = false;

    fn info(&self) -> bytes::Bytes {
        bytes::Bytes::from_static(INFO)
    }

    async fn describe(&self, _peer: &Arc<Peer>, _profile: &Arc<Profile>) -> Description {
        Description { capabilities: CAPABILITIES.into(), info: self.info(), instructions: None, more: Vec::new() }
    }

    async fn request(&self, call: &Call) -> Answer {
        match call.method() {
            "tools/list" => match json::get(call.params(), "cursor") {
                None | Some(b"null") => Answer::Result(self.list.clone()),
                Some(_) => Answer::Error(Error::invalid_params("Invalid cursor")),
            },
            "tools/call" => self.call_tool(call).await,
            method => Answer::Error(Error::not_offered(method)),
        }
    }
}
