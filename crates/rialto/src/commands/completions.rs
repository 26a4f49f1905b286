//! `rialto completions`: scripts that complete commands and flags in a shell.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::cli::Cli;
use crate::failure::Outcome;
use crate::output;

const EXAMPLES: &str = "\
Examples:
  rialto completions bash > ~/.local/share/bash-completion/completions/rialto
  rialto completions fish > ~/.config/fish/completions/rialto.fish
  rialto completions zsh > \"${fpath[1]}/_rialto\"";

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "rialto", &mut script);
    output::bytes(&script)
}
