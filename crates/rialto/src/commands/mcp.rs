//! `rialto mcp`: the built-in MCP servers, over standard input and output.

use std::sync::Arc;

use clap::{Args, Subcommand};
use rialto_mcp::serve::serve;
use rialto_mcp::stdio;

use crate::commands::wait_for;
use crate::example::Example;
use crate::failure::{Failure, Outcome};

const EXAMPLES: &str = "\
Examples:
  rialto mcp example
  rialto gateway --stdio -- rialto mcp example";

const EXAMPLE_EXAMPLES: &str = "\
Examples:
  rialto mcp example
  echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}' | rialto mcp example

In an MCP host:
  {\"mcpServers\": {\"example\": {\"command\": \"rialto\", \"args\": [\"mcp\", \"example\"]}}}";

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
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    match arguments.server {
        Server::Example => example(),
    }
}

/// Serves the example tools until standard input ends.
fn example() -> Outcome {
    wait_for(async {
        serve(Arc::new(Example), stdio::streams())
            .await
            .map_err(|error| Failure::unexpected("the connection to the MCP host failed").because(&error))
    })
}
