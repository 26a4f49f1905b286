//! `rialto context inspect`: what a cache says about itself.

use std::path::PathBuf;

use clap::Args;
use rialto_context::inspect::inspect_folder;
use rialto_context::reply::{Layout, json};

use super::failure;
use crate::failure::Outcome;
use crate::output;
use crate::talk::{Format, Talk};

const EXAMPLES: &str = "\
Examples:
  rialto context inspect --cache caches/docs";

/// Show what a cache says about itself
///
/// `total_bytes` is the size of its documents, and `valid` means that all of them are there. `rialto context verify`
/// looks into them.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    /// The cache
    #[arg(long, value_name = "DIR")]
    cache: PathBuf,
}

pub(super) fn run(arguments: &Arguments, talk: &Talk) -> Outcome {
    let inspection = inspect_folder(&arguments.cache).map_err(failure)?;
    let layout = if talk.format == Format::Json { Layout::Compact } else { Layout::Pretty };
    output::text(&format!("{}\n", json(&inspection, layout).map_err(failure)?))
}
