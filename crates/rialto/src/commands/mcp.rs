//! `rialto mcp`: the built-in MCP servers, over standard input and output.

use clap::{Args, Subcommand};

use crate::commands::not_wired;
use crate::failure::Outcome;
use crate::talk::Talk;

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

pub(crate) fn run(arguments: &Arguments, talk: &Talk) -> Outcome {
    match arguments.server {
        Server::Example => example(talk),
    }
}

/// Serves the example tools until standard input ends.
fn example(_talk: &Talk) -> Outcome {
    Err(not_wired("rialto mcp example"))
}
