//! `rialto config`: look at the configuration, check it, write a first one.

mod check;
mod init;
mod show;

use clap::{Args, Subcommand};

use crate::environment::Environment;
use crate::failure::Outcome;
use crate::talk::Talk;

const EXAMPLES: &str = "\
Examples:
  rialto config init
  rialto config check
  rialto config show --origin

Layers, the upper one wins:
  flag, environment (RIALTO_*), project file (rialto.toml from here upward),
  user file (see `rialto paths`), default. Files given by --config or RIALTO_CONFIG
  are read instead of the project and user file.";

/// Look at the configuration, check it, write a first one
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Show(show::Arguments),
    Check(check::Arguments),
    Init(init::Arguments),
}

pub(crate) fn run(arguments: Arguments, environment: &Environment, talk: &Talk) -> Outcome {
    match arguments.action {
        Action::Show(arguments) => show::run(arguments, environment, talk),
        Action::Check(arguments) => check::run(arguments, environment, talk),
        Action::Init(arguments) => init::run(&arguments, talk),
    }
}
