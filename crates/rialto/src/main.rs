//! The `rialto` binary. This file is one screen: understand the command line, run one command, turn its outcome into an
//! exit code.

mod arguments;
mod buyer;
mod cli;
mod commands;
mod config;
mod environment;
mod example;
mod exit;
mod failure;
mod identity;
mod ledger;
mod money;
mod one_server;
mod output;
mod paths;
mod relays;
mod remotes;
mod secret_file;
mod signals;
mod suggest;
mod talk;
mod wallet;
mod wires;

use std::ffi::OsString;
use std::process::ExitCode;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::cli::{Cli, Color, Early, Shared};
use crate::environment::Environment;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::talk::{Format, Level, Listener, Paint, Talk, write_talk};

fn main() -> ExitCode {
    leave_no_dump();
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let early = Early::scan(&arguments);
    let exit = match Cli::read(&arguments, early.color) {
        Ok(cli) => run(cli),
        Err(error) => refuse(&error, &early),
    };
    exit.into()
}

/// Keys and wallets are in our memory; a crash must not write them to disk. Whoever needs the dump of a server can raise its limit
/// again.
fn leave_no_dump() {
    let limit = getrlimit(Resource::Core);
    // Nothing depends on it that could be told to anybody here.
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), ..limit });
}

fn run(cli: Cli) -> Exit {
    let environment = Environment::of_process();
    let talk = talk_for(&cli.shared, &environment);
    for unknown in environment.unknown_names() {
        talk.warn(&unknown);
    }
    match commands::run(cli.command, &environment, &talk) {
        Ok(()) => Exit::Ok,
        Err(failure) => {
            report(&failure, talk.format, talk.paint);
            failure.exit
        }
    }
}

fn report(failure: &Failure, format: Format, paint: Paint) {
    match format {
        Format::Text => write_talk(&failure.to_text(paint)),
        Format::Json => write_talk(&failure.to_json()),
    }
}

/// Flags say how much is said; without them `RIALTO_LOG` does.
fn talk_for(shared: &Shared, environment: &Environment) -> Talk {
    let paint = match shared.color {
        Color::Auto => Paint::automatic(environment, Listener::of_stderr()),
        Color::Always => Paint::Always,
        Color::Never => Paint::Never,
    };
    let format = if shared.json { Format::Json } else { Format::Text };
    let mut talk = Talk { level: Level::Info, paint, format };
    let asked = environment.raw(environment::LOG).map(|value| value.to_string_lossy().into_owned());
    let named = asked.as_ref().map(|asked| Level::NAMES.iter().find(|(name, _)| name == asked));
    talk.level = match (shared.quiet, shared.verbose, named) {
        (true, _, _) => Level::Quiet,
        (_, 1, _) => Level::Verbose,
        (_, 2.., _) => Level::Debug,
        (_, _, Some(Some((_, level)))) => *level,
        (_, _, Some(None)) => {
            let names: Vec<&str> = Level::NAMES.iter().map(|(name, _)| *name).collect();
            talk.warn(&format!("environment variable `{}` must be one of {}", environment::LOG, names.join(", ")));
            Level::Info
        }
        (_, _, None) => Level::Info,
    };
    talk
}

/// Help and version are data; anything else that clap stops for is wrong usage.
fn refuse(error: &clap::Error, early: &Early) -> Exit {
    if !error.use_stderr() {
        // A reader that went away is no error.
        let _ = error.print();
        return Exit::Ok;
    }
    let exit = if early.is_context { Exit::Context(1) } else { Exit::Usage };
    match early.format {
        Format::Text => {
            let _ = error.print();
        }
        Format::Json => {
            let text = error.render().to_string();
            let message = text.lines().next().unwrap_or_default();
            let message = message.strip_prefix("error: ").unwrap_or(message);
            let tip = text.lines().find_map(|line| line.trim_start().strip_prefix("tip: "));
            let failure = Failure::new(exit, message).code(Exit::Usage.code());
            report(&failure.hint(tip.unwrap_or("rialto --help")), early.format, Paint::Never);
        }
    }
    exit
}
