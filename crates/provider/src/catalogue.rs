//! What the service offers, as the MCP servers behind it say, with a compiled schema for each tool.

use rialto_hub::catalogue::Kind;
use rialto_hub::schema::{Refused, Schema};
use rialto_mcp::json;
use rialto_mcp::local::Local;
use rialto_mcp::reply::Answer;
use rialto_mcp::server::Service;
use rialto_payment::price::{Prices, Rule};
use rialto_wire::failure::{Code, Failure};
use rialto_wire::manifest::CONTENT_SCHEMA;
use rialto_wire::request::{Command, Execution};
use rialto_wire::service::{self, Wire};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, LazyLock};

/// No list is longer; a server that goes on for ever is not followed.
const MAX_ITEMS: usize = 20_000;
const MAX_PAGES: usize = 1_000;

/// The four lists: complete definitions, as JSON texts.
#[derive(Debug, Default, Clone)]
pub(crate) struct Catalogue {
    pub(crate) tools: Vec<Vec<u8>>,
    pub(crate) resources: Vec<Vec<u8>>,
    pub(crate) templates: Vec<Vec<u8>>,
    pub(crate) prompts: Vec<Vec<u8>>,
    schemas: HashMap<String, Schemas>,
}

/// What a tool takes, and what it gives.
#[derive(Debug, Clone)]
struct Schemas {
    input: Arc<Schema>,
    output: Result<Option<Arc<Schema>>, Refused>,
}

impl Schemas {
    /// The reason why a tool is not safe to offer, if it is not.
    fn compile(tool: &[u8]) -> Result<Self, Refused> {
        let input = Schema::compile(json::get(tool, "inputSchema").unwrap_or(b"{}"))?;
        let output = json::get(tool, "outputSchema").filter(|schema| *schema != b"null").map(Schema::compile);
        Ok(Self { input: Arc::new(input), output: output.transpose().map(|output| output.map(Arc::new)) })
    }
}

/// What a tool has promised to give.
#[derive(Debug, Clone)]
pub(crate) struct Output {
    /// It has a schema of its own, and gives what that describes.
    pub(crate) is_structured: bool,
    pub(crate) schema: Option<Arc<Schema>>,
}

/// What tools give that promise nothing.
static CONTENT: LazyLock<Option<Arc<Schema>>> =
    LazyLock::new(|| Schema::compile(CONTENT_SCHEMA.as_bytes()).ok().map(Arc::new));

impl Catalogue {
    /// Asks for all lists. Tools whose schema is not safe to run are left out; the second value tells which and why.
    pub(crate) async fn load<S: Service>(local: &Local<S>, prices: &Prices) -> (Self, Vec<String>) {
        let mut catalogue = Self {
            resources: list(local, Kind::Resources).await,
            templates: list(local, Kind::Templates).await,
            prompts: list(local, Kind::Prompts).await,
            ..Self::default()
        };
        let mut refused = Vec::new();
        for tool in list(local, Kind::Tools).await {
            let Some(name) = json::get_string(&tool, "name").map(|name| name.into_owned()) else { continue };
            match Schemas::compile(&tool) {
                Ok(schemas) => {
                    if let Err(reason) = &schemas.output {
                        refused.push(format!("tool `{name}` is not offered by message: its output schema: {reason}"));
                    }
                    catalogue.tools.push(priced(&tool, &prices.rule(&name)));
                    catalogue.schemas.insert(name, schemas);
                }
                Err(reason) => refused.push(format!("tool `{name}` is not offered: {reason}")),
            }
        }
        (catalogue, refused)
    }

    /// Remembers the tools of servers that were there before and now offer nothing at all: those are down, and a call to
    /// them should be told so, instead of that there is no such tool.
    pub(crate) fn remember(&mut self, before: &Self) {
        let current: HashSet<&str> = self.schemas.keys().map(|name| server_of(name)).collect();
        let is_down = |name: &str| !current.contains(server_of(name));
        let lost: Vec<_> = before.schemas.iter().filter(|(name, _)| is_down(name)).collect();
        let lost: Vec<_> = lost.into_iter().map(|(name, schema)| (name.clone(), schema.clone())).collect();
        self.schemas.extend(lost);
    }

    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.tools == other.tools
            && self.resources == other.resources
            && self.templates == other.templates
            && self.prompts == other.prompts
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.tools.iter().filter_map(|tool| json::get_string(tool, "name")).map(|name| name.into_owned()).collect()
    }

    /// The list that a command asks for, and its key.
    pub(crate) fn list(&self, command: Command) -> Option<(&'static str, &[Vec<u8>])> {
        match command {
            Command::ListTools => Some((Kind::Tools.key(), &self.tools)),
            Command::ListResources => Some((Kind::Resources.key(), &self.resources)),
            Command::ListResourceTemplates => Some((Kind::Templates.key(), &self.templates)),
            Command::ListPrompts => Some((Kind::Prompts.key(), &self.prompts)),
            _ => None,
        }
    }

    /// The tools that can be called by message: what they give can be checked.
    pub(crate) fn checked(&self) -> Vec<Vec<u8>> {
        let is_checked = |tool: &&Vec<u8>| {
            let schemas = json::get_string(tool, "name").and_then(|name| self.schemas.get(name.as_ref()));
            schemas.is_some_and(|schemas| schemas.output.is_ok())
        };
        self.tools.iter().filter(is_checked).cloned().collect()
    }

    /// What a tool has promised to give.
    pub(crate) fn output(&self, tool: &str) -> Output {
        let own = self.schemas.get(tool).and_then(|schemas| schemas.output.clone().ok().flatten());
        Output { is_structured: own.is_some(), schema: own.or_else(|| CONTENT.clone()) }
    }

    /// Whether a tool is offered over this wire and takes these arguments.
    pub(crate) fn admit(&self, execution: &Execution, wire: Wire) -> Result<(), Failure> {
        let is_offered = |schemas: &&Schemas| wire == Wire::Dvmcp || schemas.output.is_ok();
        let Some(schemas) = self.schemas.get(&execution.name).filter(is_offered) else {
            let name: String = execution.name.chars().take(128).collect();
            return Err(Failure::new(Code::UnknownTool, format!("there is no tool `{name}`")));
        };
        schemas
            .input
            .check(&execution.value)
            .map_err(|misfit| Failure::new(Code::InvalidInput, misfit.message).at(misfit.pointer))
    }
}

/// A definition that says what the tool costs, and only if it costs something.
fn priced(tool: &[u8], rule: &Rule) -> Vec<u8> {
    match serde_json::to_string(rule) {
        Ok(price) if !rule.is_free() => service::priced(tool, &price),
        _ => service::without_price(tool),
    }
}

/// The server's part of a tool's name; nothing if there is only one server.
fn server_of(name: &str) -> &str {
    name.split_once("__").map_or("", |(server, _)| server)
}

/// All items of one list, page by page; none if there is no such list.
async fn list<S: Service>(local: &Local<S>, kind: Kind) -> Vec<Vec<u8>> {
    let mut items = Vec::new();
    let mut params = b"{}".to_vec();
    for _ in 0..MAX_PAGES {
        let answer = local.request(kind.method(), &params).await;
        let result = match &answer {
            Answer::Result(result) => result.as_slice(),
            Answer::Response(response) => response.result().unwrap_or(b"{}"),
            Answer::Error(_) => b"{}",
        };
        let array = json::get(result, kind.key()).unwrap_or(b"[]");
        let places = json::elements(array).unwrap_or_default();
        items.extend(places.into_iter().map(|place| array[place].to_vec()).filter(|item| item.first() == Some(&b'{')));
        let cursor = json::get(result, "nextCursor").filter(|cursor| cursor.first() == Some(&b'"'));
        let Some(cursor) = cursor.filter(|_| items.len() < MAX_ITEMS) else { break };
        params = [b"{\"cursor\":".as_slice(), cursor, b"}"].concat();
    }
    items
}
