//! `rialto __guard`: runs beside a child process and ends it when its parent is gone. Hidden: only rialto starts it.

use std::ffi::OsString;

use clap::Args;

use crate::commands::not_wired;
use crate::failure::Outcome;

/// Watch over a child process
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    Err(not_wired("rialto __guard").cause(format!("{} arguments given", arguments.command.len())))
}
