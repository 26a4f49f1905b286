//! The caches of a library as an MCP server.
//!
//! The text of an answer has the bytes of version 0 for every client. Newer clients get the same again as structured content,
//! schemas and annotations; documents can also be read as resources. Work is done on threads of its own, so many at a time and
//! so long at most; what nobody waits for any more is dropped.

mod resources;
mod tools;

use crate::error::{Error, Kind};
use crate::library::Library;
use crate::resident::Interrupt;
use bytes::Bytes;
use rialto_mcp::call::Call;
use rialto_mcp::error::{Error as McpError, Kind as McpKind};
use rialto_mcp::json;
use rialto_mcp::peer::{Peer, Profile};
use rialto_mcp::reply::Answer;
use rialto_mcp::server::{Description, Service};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

pub use tools::Names;

/// How many calls work at the same time; the others wait for their turn.
const AT_ONCE: usize = 4;

/// How long a call may take where nothing else is said.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// What is offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offer {
    /// Everything.
    Full,
    /// The three tools of version 0, with nothing around them that version 0 does not have.
    V0,
}

/// How a server presents itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    pub names: Names,
    pub offer: Offer,
    /// How long a call may take, waiting for its turn included.
    pub timeout: Duration,
}

/// The server.
#[derive(Debug)]
pub struct Server {
    library: Arc<Library>,
    options: Options,
    turns: Arc<Semaphore>,
}

impl Server {
    pub fn new(library: Library, options: Options) -> Self {
        Self { library: Arc::new(library), options, turns: Arc::new(Semaphore::new(AT_ONCE)) }
    }

    /// Does work on a thread when it is its turn. When nobody waits any more, the work is told.
    async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Library, &Interrupt) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let late = || Error::because(Kind::Internal, "it took too long");
        if self.options.timeout.is_zero() {
            return Err(late());
        }
        let (library, turns, interrupt) = (self.library.clone(), self.turns.clone(), Interrupt::default());
        let waiting = Waiting(interrupt.clone());
        let working = async {
            let turn = turns.acquire_owned().await;
            let done = tokio::task::spawn_blocking(move || {
                let result = work(&library, &interrupt);
                drop(turn);
                result
            });
            done.await.unwrap_or_else(|_| Err(Error::because(Kind::Internal, "the work was dropped")))
        };
        let result = tokio::time::timeout(self.options.timeout, working).await;
        drop(waiting);
        result.unwrap_or_else(|_| Err(late()))
    }
}

/// Interrupts the work when it is dropped.
struct Waiting(Interrupt);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.set();
    }
}

impl Service for Server {
    fn info(&self) -> Bytes {
        let version = env!("CARGO_PKG_VERSION");
        match self.options.offer {
            Offer::Full => format!(r#"{{"name":"rialto-context","title":"Context caches","version":"{version}"}}"#),
            Offer::V0 => format!(r#"{{"name":"mcp-context-server","version":"{version}"}}"#),
        }
        .into()
    }

    async fn describe(&self, _peer: &Arc<Peer>, _profile: &Arc<Profile>) -> Description {
        let (capabilities, instructions) = match self.options.offer {
            Offer::Full => (r#"{"tools":{},"resources":{}}"#, Some(tools::instructions(self.options.names))),
            Offer::V0 => (r#"{"tools":{}}"#, None),
        };
        Description { capabilities: capabilities.into(), info: self.info(), instructions, more: Vec::new() }
    }

    async fn request(&self, call: &Call) -> Answer {
        match (call.method(), self.options.offer) {
            ("tools/list", _) => whole(call, tools::list(self.options, call.version())),
            ("tools/call", _) => self.call_tool(call).await,
            ("resources/list", Offer::Full) => self.list_resources(call).await.into(),
            ("resources/templates/list", Offer::Full) => whole(call, resources::TEMPLATES.as_bytes().to_vec()),
            ("resources/read", Offer::Full) => self.read_resource(call).await.into(),
            (method, _) => Answer::Error(McpError::not_offered(method)),
        }
    }
}

/// A list that fits one page.
fn whole(call: &Call, list: Vec<u8>) -> Answer {
    match json::get(call.params(), "cursor") {
        None | Some(b"null") => Answer::Result(list),
        Some(_) => Answer::Error(McpError::invalid_params("Invalid cursor")),
    }
}

impl Server {
    async fn call_tool(&self, call: &Call) -> Answer {
        let Ok([Some(name), arguments]) = json::find(call.params(), ["name", "arguments"]) else {
            return Answer::Error(McpError::invalid_params("`name` must be given once"));
        };
        let Some(name) = json::string(&call.params()[name]) else {
            return Answer::Error(McpError::invalid_params("`name` must be a string"));
        };
        let Some(tool) = tools::Tool::named(&name, self.options.offer) else {
            let unknown = McpError::new(McpKind::ToolNotFound, format!("Unknown tool: {name}"));
            return Answer::Error(unknown.with("name", &*name));
        };
        let arguments = arguments.map_or(b"{}".as_slice(), |place| &call.params()[place]);
        let is_structured = self.options.offer == Offer::Full && tools::is_structured(call.version());
        let answer = match tool.task(arguments) {
            Ok(task) => {
                self.work(move |library, interrupt| {
                    let text = task.run(library, interrupt)?;
                    Ok(tools::success(&text, is_structured))
                })
                .await
            }
            Err(error) => Err(error),
        };
        Answer::Result(answer.unwrap_or_else(|error| tools::refusal(&error)))
    }
}
