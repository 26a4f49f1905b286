//! `rialto mcp`: the built-in MCP servers, over standard input and output.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use rialto_context::server::{DEFAULT_TIMEOUT, Names, Offer, Options, Server as ContextServer};
use rialto_context::{Checking, Library};
use rialto_mcp::serve::serve;
use rialto_mcp::server::Service;
use rialto_mcp::stdio;
use rialto_nostr_tools::Session;

use crate::commands::{context, nostr, wait_for};
use crate::environment::{CONTEXT_TOOL_TIMEOUT_SECS, Environment};
use crate::example::Example;
use crate::failure::{Failure, Outcome};
use crate::talk::Talk;

const EXAMPLES: &str = "\
Examples:
  rialto mcp context --root caches
  rialto mcp example
  rialto mcp nostr --read-only
  rialto gateway --stdio -- rialto mcp example";

const EXAMPLE_EXAMPLES: &str = "\
Examples:
  rialto mcp example
  echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}' | rialto mcp example

In an MCP host:
  {\"mcpServers\": {\"example\": {\"command\": \"rialto\", \"args\": [\"mcp\", \"example\"]}}}";

const NOSTR_EXAMPLES: &str = "\
Examples:
  rialto mcp nostr --relay wss://relay.example
  rialto mcp nostr --read-only                     Nothing is changed, signed or published
  rialto mcp nostr --confirm                       The user is asked before anything is
  rialto mcp nostr --allow-kind 1 --allow-kind 7 --writes-per-minute 5
  rialto mcp nostr --deny-tool 'keys_*' --deny-tool events_delete

In an MCP host:
  {\"mcpServers\": {\"nostr\": {\"command\": \"rialto\", \"args\": [\"mcp\", \"nostr\"]}}}

Keys are made and given outside the host: rialto nostr keys";

/// Run a built-in MCP server over standard input and output
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    server: Server,
}

#[derive(Debug, Subcommand)]
enum Server {
    /// A small server to try things with
    #[command(after_help = EXAMPLE_EXAMPLES)]
    Example,
    Context(Context),
    /// The canonical Nostr tools, with a signer that never shows the key
    #[command(after_help = NOSTR_EXAMPLES)]
    Nostr(Box<nostr::settings::Settings>),
}

const CONTEXT_EXAMPLES: &str = "\
Examples:
  rialto mcp context --root caches
  rialto mcp context --root caches --tool-names underscore
  rialto serve -- rialto mcp context --root caches

In an MCP host:
  {\"mcpServers\": {\"context\": {\"command\": \"rialto\", \"args\": [\"mcp\", \"context\", \"--root\", \"/path/to/caches\"]}}}";

/// The caches in a folder: documents for a question, the same each time
#[derive(Debug, Args)]
#[command(after_help = CONTEXT_EXAMPLES)]
struct Context {
    /// The folder that the caches are in; CONTEXT_CACHE_ROOT if it is not given
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,

    /// How the tools are called in lists; both spellings are understood
    #[arg(long, value_enum, default_value_t = ToolNames::Dotted)]
    tool_names: ToolNames,

    /// What is offered
    #[arg(long, value_enum, default_value_t = Profile::Full)]
    profile: Profile,

    /// Read and check every document in each call
    #[arg(long)]
    strict: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ToolNames {
    /// context.resolve
    Dotted,
    /// context_resolve, for hosts that refuse dots
    Underscore,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Profile {
    /// Every tool, structured content, and documents as resources
    Full,
    /// Exactly the three tools of version 0
    V0,
}

pub(crate) fn run(arguments: &Arguments, environment: &Environment, talk: &Talk) -> Outcome {
    match &arguments.server {
        Server::Example => speak(Example),
        Server::Context(arguments) => speak(arguments.server(environment, talk)?),
        Server::Nostr(settings) => nostr(settings, environment),
    }
}

impl Context {
    fn server(&self, environment: &Environment, talk: &Talk) -> Result<ContextServer, Failure> {
        let root = context::root(self.root.as_ref(), environment)?;
        if !root.is_dir() {
            talk.warn(&format!("there is no folder {}; as long as that is so, no cache is found", root.display()));
        }
        let store = context::store(environment);
        let checking = if self.strict { Checking::All } else { Checking::Used };
        let timeout = match environment.raw(CONTEXT_TOOL_TIMEOUT_SECS) {
            None => DEFAULT_TIMEOUT,
            Some(text) => {
                text.to_str().and_then(|text| text.parse().ok()).map(Duration::from_secs).ok_or_else(|| {
                    Failure::config(format!(
                        "environment variable `{CONTEXT_TOOL_TIMEOUT_SECS}` must be a number of seconds"
                    ))
                })?
            }
        };
        let names = if self.tool_names == ToolNames::Underscore { Names::Underscore } else { Names::Dotted };
        let offer = if self.profile == Profile::V0 { Offer::V0 } else { Offer::Full };
        Ok(ContextServer::new(Library::new(&root, store, checking), Options { names, offer, timeout }))
    }
}

/// Serves the Nostr tools until standard input ends.
fn nostr(settings: &nostr::settings::Settings, environment: &Environment) -> Outcome {
    let options = settings.options(environment)?;
    wait_for(async {
        let session = Session::open(options).map_err(|error| nostr::failure(&error))?;
        serve(Arc::new(rialto_nostr_tools::Server::new(session)), stdio::streams())
            .await
            .map_err(|error| Failure::unexpected("the connection to the MCP host failed").because(&error))
    })
}

/// Serves until standard input ends.
fn speak(service: impl Service) -> Outcome {
    wait_for(async {
        serve(Arc::new(service), stdio::streams())
            .await
            .map_err(|error| Failure::unexpected("the connection to the MCP host failed").because(&error))
    })
}
