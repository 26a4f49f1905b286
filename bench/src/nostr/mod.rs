//! Measures a call over Nostr: Rialto's provider against ContextVM's SDKs, through one relay on the loopback.
//!
//! The driver is a raw customer of all of them; see `README.md` for how to run it and how to read the result.

mod drive;
mod floor;
mod link;
mod measure;
mod part;
mod peers;
mod server;
mod soak;
mod sockets;
mod subject;
mod subscribed;
mod table;
mod wire;

use std::path::{Path, PathBuf};

use tokio::runtime;

use crate::{Failure, drive::Session, process::cpu, row::Report, subject::build_rialto};
pub use measure::{Effort, Rounds};
pub use wire::Privacy;

const USAGE: &str = "\
usage: rialto-bench nostr [--quick] [--rounds N] [--only TEXT] [--relay URL] [--rialto FILE] [--soak CALLS] [--where]

  --quick        one short round, to see that everything works
  --rounds N     rounds over all subjects (3)
  --only TEXT    only subjects whose name contains TEXT
  --relay URL    a relay that runs already, instead of a new `rialto relay` for each measurement
  --rialto FILE  a binary that is built already, such as one of another commit
  --soak CALLS   plain calls to our provider, to see its memory
  --where        what the parts of a call cost alone, beside the whole";

#[derive(Default)]
struct Options {
    quick: bool,
    rounds: Option<usize>,
    only: Option<String>,
    relay: Option<String>,
    rialto: Option<PathBuf>,
    soak: Option<usize>,
    parts: bool,
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
            "--where" => options.parts = true,
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
    if options.parts {
        let rounds = options.rounds.unwrap_or(3);
        print!("{}", runtime.block_on(parts(&rialto, options.quick, rounds))?.text);
        return Ok(());
    }
    let effort = if options.quick { Effort::QUICK } else { Effort::FULL };
    let rounds = Rounds { rialto: &rialto, relay, effort, rounds: options.rounds.unwrap_or(effort.rounds) };
    print!("{}", runtime.block_on(report(&rounds, options.only.as_deref().unwrap_or_default())).text);
    Ok(())
}

/// Where the CPU of a call goes.
pub async fn parts(rialto: &Path, quick: bool, rounds: usize) -> Result<Report, Failure> {
    part::report(rialto, if quick { 1_200 } else { 12_000 }, rounds).await
}

/// Measures the subjects whose name contains `only`.
pub async fn report(rounds: &Rounds<'_>, only: &str) -> Report {
    let subjects = subject::all(rounds.rialto, |name| name.contains(only));
    let results = rounds.run(&subjects).await;
    let child = (0..5).filter_map(|_| Session::open(&subject::child(rounds.rialto)).ok());
    let child: Vec<_> = child.map(|(_, startup)| startup.as_secs_f64() * 1e3).collect();
    Report { text: table::markdown(&results, rounds.rounds, &child), rows: table::rows(&results, &child) }
}

/// CPU µs per call of our provider with so many customers, each with one call in flight: a figure for each round.
pub async fn cost(
    rialto: &Path,
    privacy: Privacy,
    customers: usize,
    calls: usize,
    rounds: usize,
) -> Result<Vec<f64>, Failure> {
    let wanted = if privacy == Privacy::Plain { subject::OUR_PLAIN } else { subject::OUR_SEALED };
    let subjects = subject::all(rialto, |name| name == wanted);
    let subject = subjects.first().ok_or("no such subject")?;
    let relay = measure::Relay::start(rialto, None).await?;
    let provider = server::Server::start(&subject.command(&relay.url)).await?;
    let key = provider.ready["pubkey"].as_str().ok_or("the provider does not say its key")?;
    let mut session = drive::Session::open(&relay.url, subject.dialect, key, customers).await?;
    let mut costs = Vec::new();
    // The first run warms up.
    for round in 0..=rounds {
        let prepared = session.prepare(if round == 0 { calls / 2 } else { calls }, customers)?;
        let before = cpu(provider.pid)?;
        let run = session.run(&prepared).await?;
        let spent = cpu(provider.pid)?.saturating_sub(before);
        session.verify(&prepared, &run)?;
        costs.push(spent.as_secs_f64() * 1e6 / run.latencies.len() as f64);
    }
    provider.stop().await;
    relay.stop().await;
    Ok(costs.split_off(1))
}
