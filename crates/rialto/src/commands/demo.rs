//! `rialto demo`: everything at once on this machine, without a network.

use clap::Args;

use crate::commands::not_wired;
use crate::failure::Outcome;
use crate::talk::Talk;

const EXAMPLES: &str = "\
Examples:
  rialto demo
  rialto demo --json | head -n 1";

/// Show what rialto does, without a network
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {}

pub(crate) fn run(_arguments: &Arguments, _talk: &Talk) -> Outcome {
    Err(not_wired("rialto demo"))
}
