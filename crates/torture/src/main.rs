//! `torture run all`: every experiment of the scoreboard, and whether Rialto kept its promises.
//!
//! Each row runs in a process of its own, so that none can disturb another and one that hangs is ended.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it is a program for people")]

mod running;
mod scoreboard;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use torture::rows::all;
use torture::simulation::{Setup, simulate};

#[derive(Parser)]
#[command(about = "Torments Rialto in every way its promises speak of, and keeps the score", max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show all rows
    List,
    /// Write the ledger of a new version of the tables, for R32
    Record {
        /// Where to
        folder: PathBuf,
        /// The program that has this version
        #[arg(long, value_name = "FILE")]
        rialto: PathBuf,
    },
    /// Run rows, and say which promises held
    Run(running::Run),
    /// Make the table of the scoreboard from what `run --json` printed
    Scoreboard(scoreboard::Scoreboard),
    /// Live through one world of R30 again, and tell what happened
    Simulate(Simulate),
}

#[derive(clap::Args)]
struct Simulate {
    /// The world
    #[arg(long)]
    seed: u64,
    /// Print all of its history, not only the end
    #[arg(long)]
    trace: bool,
    /// Requests of its customers
    #[arg(long, default_value_t = 50)]
    jobs: usize,
}

impl Simulate {
    fn run(&self) -> ExitCode {
        let outcome = simulate(Setup { seed: self.seed, jobs: self.jobs, mistake: None });
        print!("{}", outcome.trace.last(if self.trace { usize::MAX } else { 25 }));
        println!("history {:016x}, {:?}", outcome.trace.hash(), outcome.counts);
        match outcome.complaint {
            Some(complaint) => {
                println!("FAIL {complaint}");
                ExitCode::FAILURE
            }
            None => ExitCode::SUCCESS,
        }
    }
}

fn main() -> ExitCode {
    torture::play_if_asked();
    match Arguments::parse().command {
        Command::List => {
            for row in all() {
                println!("{:<5} {}{}", row.id, row.about, if row.is_long { " (long)" } else { "" });
            }
            ExitCode::SUCCESS
        }
        Command::Record { folder, rialto } => record(&folder, &rialto),
        Command::Run(run) => run.run(),
        Command::Scoreboard(scoreboard) => scoreboard.run(),
        Command::Simulate(simulate) => simulate.run(),
    }
}

/// In a process that knows the program from its start.
fn record(folder: &Path, rialto: &Path) -> ExitCode {
    if std::env::var_os(torture::PROGRAM).is_none() {
        let own = std::env::current_exe().and_then(|own| {
            std::process::Command::new(own).args(std::env::args_os().skip(1)).env(torture::PROGRAM, rialto).status()
        });
        return if own.is_ok_and(|status| status.success()) { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    println!("{}", torture::rows::crashes::record(folder).display());
    ExitCode::SUCCESS
}
