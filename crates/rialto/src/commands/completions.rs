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
    clap_complete::generate(arguments.shell, &mut visible(), "rialto", &mut script);
    output::bytes(&script)
}

/// The command line without its hidden commands, which the generators would offer to people.
fn visible() -> clap::Command {
    let whole = Cli::command();
    clap::Command::new("rialto")
        .version(env!("CARGO_PKG_VERSION"))
        .args(whole.get_arguments().cloned())
        .subcommands(whole.get_subcommands().filter(|command| !command.is_hide_set()).cloned())
}
