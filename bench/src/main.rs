//! Measures Rialto's server and gateway, over stdio and over HTTP, against servers and gateways written with the official
//! SDKs, and its Nostr provider against ContextVM's; context caches; and the ledger.
//!
//! One driver for all subjects: it starts the subject as a child process, talks JSON-RPC over its pipes and reads the
//! subject's own CPU time and memory from `/proc`. See `README.md` for how to run it and how to read the result.

mod all;
mod context;
mod drive;
mod growth;
mod http;
mod ledger;
mod measure;
mod nostr;
mod process;
mod row;
mod soak;
mod subject;
mod table;

use std::{env, error::Error, process::ExitCode};

pub type Failure = Box<dyn Error>;

const USAGE: &str = "\
usage: rialto-bench [--quick] [--json] [--rounds N] [--only TEXT]
       rialto-bench all [--help]
       rialto-bench growth [--help]
       rialto-bench soak [--calls N]
       rialto-bench http [--help]
       rialto-bench nostr [--help]
       rialto-bench context [--help]
       rialto-bench ledger [--help]

  --quick      two short rounds, to see that everything works
  --json       the figures as JSON instead of Markdown
  --rounds N   rounds over all subjects (5)
  --only TEXT  only subjects whose name contains TEXT
  --calls N    calls of the soak run (1000000)";

#[derive(Default)]
struct Options {
    soak: bool,
    quick: bool,
    json: bool,
    rounds: Option<usize>,
    only: Option<String>,
    calls: Option<usize>,
}

fn options() -> Result<Options, Failure> {
    let mut options = Options::default();
    let mut arguments = env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value\n\n{USAGE}"));
        match argument.as_str() {
            "soak" => options.soak = true,
            "--quick" => options.quick = true,
            "--json" => options.json = true,
            "--rounds" => options.rounds = Some(value()?.parse()?),
            "--only" => options.only = Some(value()?),
            "--calls" => options.calls = Some(value()?.parse()?),
            _ => return Err(format!("unknown argument {argument}\n\n{USAGE}").into()),
        }
    }
    Ok(options)
}

fn run() -> Result<(), Failure> {
    let part = env::args().nth(1);
    let arguments = env::args().skip(2);
    match part.as_deref() {
        Some("all") => return all::run(arguments),
        Some("growth") => return growth::run(arguments),
        Some("http") => return http::run(arguments),
        Some("nostr") => return nostr::run(arguments),
        Some("context") => return context::run(arguments),
        Some("ledger") => return ledger::run(arguments),
        // A server with many tools, as the gateway starts it when the cost of a catalogue is measured.
        Some(growth::SERVER) => return growth::serve(arguments),
        _ => {}
    }
    let options = options()?;
    let rialto = subject::build_rialto()?;
    if options.soak {
        return soak::run(&rialto, options.calls.unwrap_or(1_000_000));
    }
    let mut subjects = subject::all(&rialto);
    if let Some(only) = &options.only {
        subjects.retain(|subject| subject.name.contains(only.as_str()));
    }
    let effort = if options.quick { measure::Effort::QUICK } else { measure::Effort::FULL };
    let rounds = options.rounds.unwrap_or(effort.rounds);
    let results = measure::rounds(&subjects, effort, rounds);
    if options.json {
        println!("{:#}", table::json(&results));
    } else {
        print!("{}", table::markdown(&results, rounds));
    }
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
