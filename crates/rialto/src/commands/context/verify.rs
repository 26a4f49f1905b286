//! `rialto context verify`: whether everything in a cache is what its hashes say.

use std::path::PathBuf;

use clap::Args;
use rialto_context::error::Kind;
use rialto_context::verify::verify;

use super::{failure, invalid};
use crate::failure::Outcome;
use crate::output;
use crate::talk::{Format, Talk};

const EXAMPLES: &str = "\
Examples:
  rialto context verify --cache caches/docs
  rialto context verify --cache caches/docs --json";

/// Check everything in a cache
///
/// Reads every document and compares it with its hash, the manifest with its own, and looks for what does not belong there.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    /// The cache
    #[arg(long, value_name = "DIR")]
    cache: PathBuf,
}

pub(super) fn run(arguments: &Arguments, talk: &Talk) -> Outcome {
    let report = verify(&arguments.cache).map_err(failure)?;
    match talk.format {
        Format::Json => output::json(&report)?,
        Format::Text => {
            let lines: Vec<String> =
                report.problems.iter().map(|problem| format!("{}: {}\n", problem.file, problem.message)).collect();
            output::text(&lines.concat())?;
        }
    }
    match report.problems.len() {
        0 => {
            talk.info(&format!("Sound: {} documents, version {}", report.document_count, report.cache_version));
            Ok(())
        }
        1 => Err(invalid(Kind::CacheInvalid, "1 problem")),
        count => Err(invalid(Kind::CacheInvalid, &format!("{count} problems"))),
    }
}
