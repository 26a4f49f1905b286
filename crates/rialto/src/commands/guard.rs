//! `rialto __guard`: ends our child processes when we are gone. Hidden: only rialto starts it.

use clap::Args;

use crate::failure::Outcome;

/// The name under which rialto starts itself as a guard.
pub(crate) const NAME: &str = "__guard";

/// Watch over child processes
#[derive(Debug, Args)]
pub(crate) struct Arguments {}

pub(crate) fn run() -> Outcome {
    rialto_hub::guard::run(std::io::stdin().lock());
    Ok(())
}
