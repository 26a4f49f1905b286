//! `rialto context`: caches of documents that answer the same question with the same bytes.
//!
//! These commands have exit codes of their own, 0 to 7, because other programs with the same commands have them.

mod build;
mod inspect;
mod list;
mod resolve;
mod verify;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use rialto_context::Store;
use rialto_context::error::{Error, Kind};

use crate::environment::Environment;
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::paths::Directories;
use crate::talk::Talk;

const EXAMPLES: &str = "\
Examples:
  rialto context build --sources docs --cache caches/docs
  rialto context resolve --cache caches/docs --query 'path traversal' --budget 4000
  rialto mcp context --root caches

Exit codes of these commands:
  0  done
  1  wrong usage
  2  the query is invalid
  3  the budget is invalid
  4  the cache does not exist
  5  the cache exists but is invalid
  6  something could not be read or written
  7  internal error";

/// Build caches of documents, and select from them
///
/// A cache is made of the Markdown files below a folder. The same cache, query and budget give the same bytes, on every
/// machine; `rialto mcp context` gives the same answers to an MCP host.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Build(build::Arguments),
    Resolve(resolve::Arguments),
    Inspect(inspect::Arguments),
    Verify(verify::Arguments),
    List(list::Arguments),
}

pub(crate) fn run(arguments: &Arguments, environment: &Environment, talk: &Talk) -> Outcome {
    match &arguments.command {
        Command::Build(arguments) => build::run(arguments, environment, talk),
        Command::Resolve(arguments) => resolve::run(arguments, environment),
        Command::Inspect(arguments) => inspect::run(arguments, talk),
        Command::Verify(arguments) => verify::run(arguments, talk),
        Command::List(arguments) => list::run(arguments, environment, talk),
    }
}

/// Where indexes are kept between runs.
pub(crate) fn store(environment: &Environment) -> Option<Store> {
    let directories = Directories::find(environment)?;
    Store::open(&directories.cache.join("context"), &directories.state.join("context.key"))
}

/// The root that was named, or the one of the environment.
pub(crate) fn root(given: Option<&PathBuf>, environment: &Environment) -> Result<PathBuf, Failure> {
    let named = given.cloned().or_else(|| environment.raw(crate::environment::CONTEXT_CACHE_ROOT).map(PathBuf::from));
    named.ok_or_else(|| {
        Failure::new(Exit::Context(1), "there is no root: neither --root nor CONTEXT_CACHE_ROOT is given")
            .code("usage")
            .hint("--root DIR, the folder that your caches are in")
    })
}

/// An error in the words that version 0 froze, with what is known of its cause.
fn failure(error: Error) -> Failure {
    let failure = Failure::new(Exit::Context(error.kind.exit()), error.kind.message()).code(error.kind.code());
    match error.detail {
        Some(detail) => failure.cause(detail),
        None => failure,
    }
}

fn invalid(kind: Kind, cause: &str) -> Failure {
    failure(Error { kind, detail: Some(cause.to_owned()) })
}
