//! `rialto context list`: the caches beneath a root.

use std::path::PathBuf;

use clap::Args;
use rialto_context::inspect::list;
use rialto_context::reply::{Layout, json};

use super::{failure, root};
use crate::environment::Environment;
use crate::failure::Outcome;
use crate::output;
use crate::talk::{Format, Talk};

const EXAMPLES: &str = "\
Examples:
  rialto context list --root caches
  CONTEXT_CACHE_ROOT=caches rialto context list --json";

/// List the caches in a folder
///
/// Every folder directly in it is listed, also one without a manifest; nothing is checked.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    /// The folder that the caches are in; CONTEXT_CACHE_ROOT if it is not given
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
}

pub(super) fn run(arguments: &Arguments, environment: &Environment, talk: &Talk) -> Outcome {
    let listing = list(&root(arguments.root.as_ref(), environment)?).map_err(failure)?;
    if talk.format == Format::Json {
        return output::text(&format!("{}\n", json(&listing, Layout::Compact).map_err(failure)?));
    }
    let mut rows = vec![vec!["NAME".to_owned(), "MANIFEST".to_owned()]];
    let word = |has_manifest: bool| if has_manifest { "yes" } else { "no" }.to_owned();
    rows.extend(listing.caches.into_iter().map(|cache| vec![cache.path, word(cache.has_manifest)]));
    output::text(&output::table(&rows))
}
