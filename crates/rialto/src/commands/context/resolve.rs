//! `rialto context resolve`: the documents of a cache that a query and a budget select.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use rialto_context::error::Kind;
use rialto_context::library::resolve_folder;
use rialto_context::reply::{Layout, json};

use super::{failure, invalid, store};
use crate::environment::Environment;
use crate::failure::Outcome;
use crate::output;

const EXAMPLES: &str = "\
Examples:
  rialto context resolve --cache caches/docs --query 'path traversal' --budget 4000
  rialto context resolve --cache caches/docs --query deployment --budget 4000 --format pretty";

/// Select documents for a query
///
/// Documents are taken in the order of the share of their words that are words of the query, while they fit into the budget
/// (a token is four bytes). Each comes with the reason for its place.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    /// The cache
    #[arg(long, value_name = "DIR")]
    cache: PathBuf,

    /// What the documents should be about; may be empty
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    query: OsString,

    /// How many tokens the documents may have together
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    budget: String,

    /// How the answer is laid out
    #[arg(long, value_enum, default_value_t = Answer::Json)]
    format: Answer,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Answer {
    /// On one line
    Json,
    /// For people
    Pretty,
}

pub(super) fn run(arguments: &Arguments, environment: &Environment) -> Outcome {
    let query = arguments.query.to_str().ok_or_else(|| invalid(Kind::InvalidQuery, "it is not UTF-8"))?;
    let budget: u64 = arguments
        .budget
        .parse()
        .map_err(|_| invalid(Kind::InvalidBudget, "it is not a whole number from 0 to 18446744073709551615"))?;
    let store = store(environment);
    let resolution = resolve_folder(&arguments.cache, query, budget, store.as_ref()).map_err(failure)?;
    let layout = if arguments.format == Answer::Pretty { Layout::Pretty } else { Layout::Compact };
    output::text(&format!("{}\n", json(&resolution, layout).map_err(failure)?))
}
