//! The command line: the list of commands and the flags that all of them share.
//!
//! Each command keeps its own arguments and examples in its file under `commands/`.

use std::ffi::OsString;

use clap::{ColorChoice, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};

use crate::commands::{
    auth, budget, call, completions, config, connect, context, demo, doctor, find, gateway, guard, ledger, man, mcp,
    nostr, paths, pins, relay, sandbox, serve, show, use_services, wallet,
};
use crate::environment;
use crate::exit::Exit;
use crate::talk::Format;

/// The bridge between the Model Context Protocol and Nostr.
#[derive(Debug, Parser)]
#[command(name = "rialto", version, disable_help_subcommand = false, subcommand_required = false)]
#[command(after_help = EXAMPLES, after_long_help = long_help(), max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) shared: Shared,

    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// Flags that every command understands.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Shared options")]
pub(crate) struct Shared {
    /// Write data, talk and errors as JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// Say nothing but errors
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,

    /// Say more; twice for everything
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,

    /// When to use colour; auto is on a terminal, unless NO_COLOR is set
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t = Color::Auto)]
    pub(crate) color: Color,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Serve(Box<serve::Arguments>),
    Find(find::Arguments),
    Show(show::Arguments),
    Call(call::Arguments),
    Use(use_services::Arguments),
    Wallet(wallet::Arguments),
    Budget(budget::Arguments),
    Pins(pins::Arguments),
    Ledger(ledger::Arguments),
    Gateway(gateway::Arguments),
    Auth(auth::Arguments),
    Context(context::Arguments),
    Mcp(mcp::Arguments),
    Nostr(nostr::Arguments),
    Relay(relay::Arguments),
    Connect(connect::Arguments),
    Doctor(doctor::Arguments),
    Demo(demo::Arguments),
    Config(config::Arguments),
    Paths(paths::Arguments),
    Completions(completions::Arguments),
    Man(man::Arguments),
    #[command(hide = true, name = crate::commands::guard::NAME)]
    Guard(guard::Arguments),
    #[command(hide = true, name = rialto_hub::sandbox::ARGUMENT)]
    Sandbox(sandbox::Arguments),
}

const EXAMPLES: &str = "\
Examples:
  rialto demo                                     See what it does, without a network
  rialto serve -- npx -y some-server              Offer an MCP server on Nostr
  rialto find weather                             Find what others offer
  rialto call SERVICE TOOL key=value              Call one tool
  rialto connect claude-code SERVICE              Use a service in an MCP host
  rialto gateway --stdio --config mcp.json        Every server of an MCP host's file as one";

fn long_help() -> String {
    format!("{EXAMPLES}\n\n{}\n\n{}", Exit::help_section(), environment::help_section())
}

/// What must be known before the command line is understood, to report that it is not understood.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Early {
    pub(crate) format: Format,
    pub(crate) color: Color,
    /// The commands below `context` have exit codes of their own.
    pub(crate) is_context: bool,
}

impl Early {
    pub(crate) fn scan(arguments: &[OsString]) -> Self {
        let mut early = Self { format: Format::Text, color: Color::Auto, is_context: false };
        let mut command = None;
        let mut words = arguments.iter().skip(1).map(|word| word.to_string_lossy()).take_while(|word| word != "--");
        while let Some(word) = words.next() {
            let color = match word.split_once('=') {
                Some(("--color", value)) => Some(value.to_owned()),
                _ if word == "--color" => words.next().map(|value| value.into_owned()),
                _ => None,
            };
            if let Some(color) = color.and_then(|color| Color::from_str(&color, false).ok()) {
                early.color = color;
            }
            if word == "--json" {
                early.format = Format::Json;
            }
            if !word.starts_with('-') {
                command.get_or_insert(word);
            }
        }
        early.is_context = command.is_some_and(|command| command == "context");
        early
    }
}

impl Cli {
    pub(crate) fn read(arguments: &[OsString], color: Color) -> Result<Self, clap::Error> {
        let choice = match color {
            Color::Auto => ColorChoice::Auto,
            Color::Always => ColorChoice::Always,
            Color::Never => ColorChoice::Never,
        };
        let mut command = Cli::command().color(choice);
        let matches = command.try_get_matches_from_mut(arguments)?;
        Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::{Cli, Color, Early};
    use crate::talk::Format;

    #[test]
    fn definitions_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn early_flags_are_found_before_the_separator_only() {
        let scan = |line: &str| Early::scan(&line.split(' ').map(Into::into).collect::<Vec<_>>());
        let cases = [
            ("rialto --json x context", Format::Json, Color::Auto),
            ("rialto x --color=never", Format::Text, Color::Never),
            ("rialto x --color always --json", Format::Json, Color::Always),
            ("rialto gateway -- x --json --color=never", Format::Text, Color::Auto),
            ("rialto --color", Format::Text, Color::Auto),
        ];
        for (line, format, color) in cases {
            assert_eq!(scan(line), Early { format, color, is_context: false }, "{line}");
        }
        assert!(scan("rialto --color never -v context build").is_context);
    }
}
