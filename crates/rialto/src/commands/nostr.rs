//! `rialto nostr`: what the operator of the Nostr tools does beside them: keys, the log, the registry.

mod keys;
mod log;
mod registry;
pub(crate) mod settings;

use clap::{Args, Subcommand};

use crate::environment::Environment;
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::talk::Talk;

const EXAMPLES: &str = "\
Examples:
  rialto nostr keys add work               Make a key for the Nostr tools
  rialto nostr keys                        Which keys there are
  rialto nostr log                         What was done with them
  rialto nostr registry check              Whether our server keeps the rules of the registry

Give the tools to an MCP host:
  rialto mcp nostr";

/// Look after the Nostr tools: keys, log, registry
///
/// The tools themselves are served by `rialto mcp nostr`. Secret keys are given here, so that no model sees them.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    subject: Subject,
}

#[derive(Debug, Subcommand)]
enum Subject {
    Keys(keys::Arguments),
    Log(log::Arguments),
    Registry(registry::Arguments),
}

pub(crate) fn run(arguments: &Arguments, environment: &Environment, talk: &Talk) -> Outcome {
    match &arguments.subject {
        Subject::Keys(arguments) => keys::run(arguments, environment, talk),
        Subject::Log(arguments) => log::run(arguments, environment, talk),
        Subject::Registry(arguments) => registry::run(arguments, talk),
    }
}

/// What a tool would have said, said to the operator.
pub(crate) fn failure(failure: &rialto_nostr_tools::Failure) -> Failure {
    let exit = match failure.reason {
        "not_allowed" | "no_signer" => Exit::NotAllowed,
        "invalid_input" | "not_found" => Exit::Usage,
        "relays" | "no_keyring" => Exit::Unreachable,
        "timeout" => Exit::Timeout,
        _ => Exit::Unexpected,
    };
    let told = Failure::new(exit, failure.message.clone()).code(failure.reason);
    match failure.reason {
        "no_keyring" => told.hint("a key can be kept in a sealed file instead: rialto nostr keys add LABEL --sealed"),
        _ => told,
    }
}
