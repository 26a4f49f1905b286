//! Measures a call over Nostr: Rialto's provider against ContextVM's SDKs, through one relay on the loopback.
//!
//! The driver is a raw customer of all of them; see `README.md` for how to run it and how to read the result.

mod drive;
mod link;
mod measure;
mod peers;
mod server;
mod soak;
mod subject;
mod subscribed;
mod table;
mod wire;

use std::path::PathBuf;

use tokio::runtime;

use crate::{Failure, drive::Session, subject::build_rialto};

const USAGE: &str = "\
usage: rialto-bench nostr [--quick] [--rounds N] [--only TEXT] [--relay URL] [--rialto FILE] [--soak CALLS]

  --quick        one short round, to see that everything works
  --rounds N     rounds over all subjects (3)
  --only TEXT    only subjects whose name contains TEXT
  --relay URL    a relay that runs already, instead of a new `rialto relay` for each measurement
  --rialto FILE  a binary that is built already, such as one of another commit
  --soak CALLS   plain calls to our provider, to see its memory";

#[derive(Default)]
struct Options {
    quick: bool,
    rounds: Option<usize>,
    only: Option<String>,
    relay: Option<String>,
    rialto: Option<PathBuf>,
    soak: Option<usize>,
}

fn options(mut arguments: impl Iterator<Item = String>) -> Result<Options, Failure> {
    let mut options = Options::default();
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value\n\n{USAGE}"));
        match argument.as_str() {
            "--quick" => options.quick = true,
            "--rounds" => options.rounds = Some(value()?.parse()?),
            "--only" => options.only = Some(value()?),
            "--relay" => options.relay = Some(value()?),
            "--rialto" => options.rialto = Some(value()?.into()),
            "--soak" => options.soak = Some(value()?.parse()?),
            _ => return Err(format!("unknown argument {argument}\n\n{USAGE}").into()),
        }
    }
    Ok(options)
}

pub fn run(arguments: impl Iterator<Item = String>) -> Result<(), Failure> {
    let options = options(arguments)?;
    let rialto = options.rialto.map_or_else(build_rialto, Ok)?;
    // One thread: the driver must leave the other core to the subjects.
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    let relay = options.relay.as_deref();
    if let Some(calls) = options.soak {
        return runtime.block_on(soak::run(&rialto, relay, calls));
    }
    let wanted = |name: &str| options.only.as_ref().is_none_or(|only| name.contains(only.as_str()));
    let subjects = subject::all(&rialto, wanted);
    let effort = if options.quick { measure::Effort::QUICK } else { measure::Effort::FULL };
    let rounds = measure::Rounds { rialto: &rialto, relay, effort, rounds: options.rounds.unwrap_or(effort.rounds) };
    let results = runtime.block_on(rounds.run(&subjects));
    let child = (0..5).filter_map(|_| Session::open(&subject::child(&rialto)).ok());
    let child: Vec<_> = child.map(|(_, startup)| startup.as_secs_f64() * 1e3).collect();
    print!("{}", table::markdown(&results, rounds.rounds, &child));
    Ok(())
}
