//! `rialto mcp`: the built-in MCP servers, over standard input and output.

use std::sync::Arc;

use clap::{Args, Subcommand};
use rialto_mcp::serve::serve;
use rialto_mcp::stdio;
use rialto_nostr_tools::Session;

use crate::commands::{nostr, wait_for};
use crate::environment::Environment;
use crate::example::Example;
use crate::failure::{Failure, Outcome};

const EXAMPLES: &str = "\
Examples:
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
    /// The canonical Nostr tools, with a signer that never shows the key
    #[command(after_help = NOSTR_EXAMPLES)]
    Nostr(Box<nostr::settings::Settings>),
}

pub(crate) fn run(arguments: &Arguments, environment: &Environment) -> Outcome {
    match &arguments.server {
        Server::Example => example(),
        Server::Nostr(settings) => nostr(settings, environment),
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

/// Serves the example tools until standard input ends.
fn example() -> Outcome {
    wait_for(async {
        serve(Arc::new(Example), stdio::streams())
            .await
            .map_err(|error| Failure::unexpected("the connection to the MCP host failed").because(&error))
    })
}
