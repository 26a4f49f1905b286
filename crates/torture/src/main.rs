//! `torture run all`: every experiment of the scoreboard, and whether Rialto kept its promises.
//!
//! Each row runs in a process of its own, so that none can disturb another and one that hangs is ended.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it is a program for people")]

mod running;
mod scoreboard;

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
        Command::Run(run) => run.run(),
        Command::Scoreboard(scoreboard) => scoreboard.run(),
        Command::Simulate(simulate) => simulate.run(),
    }
}
