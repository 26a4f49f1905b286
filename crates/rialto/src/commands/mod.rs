//! The commands, one file each.

pub(crate) mod auth;
pub(crate) mod budget;
pub(crate) mod call;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod connect;
pub(crate) mod context;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod find;
pub(crate) mod gateway;
pub(crate) mod guard;
pub(crate) mod ledger;
pub(crate) mod man;
pub(crate) mod mcp;
pub(crate) mod nostr;
mod overview;
pub(crate) mod paths;
pub(crate) mod pins;
pub(crate) mod relay;
pub(crate) mod sandbox;
pub(crate) mod serve;
pub(crate) mod show;
pub(crate) mod use_services;
pub(crate) mod wallet;

use std::future::Future;
use std::path::PathBuf;

use crate::cli::Command;
use crate::environment::Environment;
use crate::failure::{Failure, Outcome};
use crate::talk::Talk;

/// Runs the command that was asked for.
pub(crate) fn run(command: Option<Command>, environment: &Environment, talk: &Talk) -> Outcome {
    match command {
        None => overview::run(talk),
        Some(Command::Serve(arguments)) => serve::run(*arguments, environment, talk),
        Some(Command::Find(arguments)) => find::run(&arguments, environment, talk),
        Some(Command::Show(arguments)) => show::run(&arguments, environment, talk),
        Some(Command::Call(arguments)) => call::run(&arguments, environment, talk),
        Some(Command::Use(arguments)) => use_services::run(&arguments, environment, talk),
        Some(Command::Wallet(arguments)) => wallet::run(&arguments, environment, talk),
        Some(Command::Budget(arguments)) => budget::run(&arguments, environment, talk),
        Some(Command::Pins(arguments)) => pins::run(&arguments, environment, talk),
        Some(Command::Ledger(arguments)) => ledger::run(&arguments, environment, talk),
        Some(Command::Gateway(arguments)) => gateway::run(arguments, environment, talk),
        Some(Command::Auth(arguments)) => auth::run(&arguments, environment, talk),
        Some(Command::Context(arguments)) => context::run(&arguments, environment, talk),
        Some(Command::Mcp(arguments)) => mcp::run(&arguments, environment, talk),
        Some(Command::Nostr(arguments)) => nostr::run(&arguments, environment, talk),
        Some(Command::Relay(arguments)) => relay::run(arguments, talk),
        Some(Command::Connect(arguments)) => connect::run(&arguments, environment, talk),
        Some(Command::Doctor(arguments)) => doctor::run(&arguments, environment, talk),
        Some(Command::Demo(arguments)) => demo::run(&arguments, environment, talk),
        Some(Command::Config(arguments)) => config::run(arguments, environment, talk),
        Some(Command::Paths(_)) => paths::run(environment, talk),
        Some(Command::Completions(arguments)) => completions::run(&arguments),
        Some(Command::Man(arguments)) => man::run(&arguments, talk),
        Some(Command::Guard(_)) => guard::run(),
        Some(Command::Sandbox(arguments)) => sandbox::run(arguments),
    }
}

/// Drives a command that waits for several things at once.
fn wait_for(outcome: impl Future<Output = Outcome>) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::unexpected("cannot start the runtime").because(&error))?;
    let outcome = runtime.block_on(outcome);
    // A thread that reads from a terminal cannot be ended; the process need not wait for it.
    runtime.shutdown_background();
    outcome
}

fn current_directory() -> Result<PathBuf, Failure> {
    std::env::current_dir().map_err(|error| Failure::unexpected("cannot find the current directory").because(&error))
}
