//! MCP over HTTP: our server and gateway against servers written with the official SDKs, with 1 and with 64 connections.

mod client;
mod connection;
mod subject;
mod table;

use std::{
    error::Error,
    io,
    path::{Path, PathBuf},
    time::Instant,
};

use crate::{
    Failure,
    measure::{Calls, Figures, Measured, Outcome},
    process,
    row::Report,
    subject::Speed,
};
use client::Clients;
use subject::Subject;

const USAGE: &str = "\
usage: rialto-bench http [--quick] [--rounds N] [--only TEXT] [--rialto FILE]

  --quick        two short rounds, to see that everything works
  --rounds N     rounds over all subjects (5)
  --only TEXT    only subjects whose name contains TEXT
  --rialto FILE  a binary that is built already, such as one of another commit";

/// Connections of the second measurement, each of a client of its own with one call in flight.
const CONNECTIONS: usize = 64;

/// Calls to warm up, over one connection, and over many.
fn calls(speed: Speed, divisor: usize) -> [usize; 3] {
    let calls = match speed {
        Speed::Native => [1_000, 10_000, 50_000],
        Speed::Node | Speed::Python => [500, 2_000, 10_000],
    };
    calls.map(|calls| calls / divisor)
}

/// How much is measured.
#[derive(Clone, Copy)]
pub struct Effort {
    pub divisor: usize,
    pub rounds: usize,
}

impl Effort {
    pub const FULL: Self = Self { divisor: 1, rounds: 5 };
    pub const QUICK: Self = Self { divisor: 10, rounds: 2 };
}

pub fn run(mut arguments: impl Iterator<Item = String>) -> Result<(), Failure> {
    let (mut effort, mut rounds, mut only, mut rialto) = (Effort::FULL, None, String::new(), None);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value\n\n{USAGE}"));
        match argument.as_str() {
            "--quick" => effort = Effort::QUICK,
            "--rounds" => rounds = Some(value()?.parse()?),
            "--only" => only = value()?,
            "--rialto" => rialto = Some(PathBuf::from(value()?)),
            _ => return Err(format!("unknown argument {argument}\n\n{USAGE}").into()),
        }
    }
    effort.rounds = rounds.unwrap_or(effort.rounds);
    print!("{}", report(effort, &only, rialto.as_deref())?.text);
    Ok(())
}

pub fn report(effort: Effort, only: &str, rialto: Option<&Path>) -> Result<Report, Failure> {
    let subjects = subject::all(only, rialto)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut results: Vec<_> = subjects
        .iter()
        .map(|subject| {
            let is_there = subject.needs.exists();
            let outcome = if is_there { Outcome::Measured(Box::default()) } else { Outcome::NotInstalled };
            Measured { name: subject.name, outcome }
        })
        .collect();
    let Effort { divisor, rounds } = effort;
    for round in 1..=rounds {
        for (subject, result) in subjects.iter().zip(&mut results) {
            let Outcome::Measured(figures) = &mut result.outcome else { continue };
            eprint!("\rround {round}/{rounds}: {:<60}", subject.name);
            if let Err(error) = runtime.block_on(one(subject, divisor, figures)) {
                result.outcome = Outcome::Failed(error.to_string());
            }
        }
    }
    eprint!("\r{:80}\r", "");
    Ok(Report { text: table::markdown(&results, rounds), rows: table::rows(&results) })
}

/// CPU µs per call of our gateway with so many sessions, each on a connection of its own: a figure for each round.
pub async fn cost(rialto: &Path, clients: usize, calls: usize, rounds: usize) -> Result<Vec<f64>, Failure> {
    let subjects = subject::all(subject::OUR_GATEWAY[0], Some(rialto))?;
    let subject = subjects.first().ok_or("no such subject")?;
    let server = subject.start()?;
    let mut clients = Clients::open(server.address, subject.era, clients).await?;
    clients.call(calls / 2).await?;
    let mut figures = Calls::default();
    for _ in 0..rounds {
        timed(&server, &mut clients, calls, &mut figures).await?;
    }
    Ok(figures.cpu_us)
}

#[allow(clippy::cast_precision_loss, reason = "memory in KiB is far below 2^52")]
async fn one(subject: &Subject, divisor: usize, figures: &mut Figures) -> Result<(), Box<dyn Error>> {
    let begin = Instant::now();
    let server = subject.start()?;
    let mut one = Clients::open(server.address, subject.era, 1).await?;
    figures.startup_ms.push(begin.elapsed().as_secs_f64() * 1e3);
    one.call(1).await?;
    figures.idle_mb.push(server.resident()? as f64 / 1024.0);
    let [warm_up, sequential, concurrent] = calls(subject.speed, divisor);
    one.call(warm_up).await?;
    timed(&server, &mut one, sequential, &mut figures.sequential).await?;
    let mut many = Clients::open(server.address, subject.era, CONNECTIONS).await?;
    many.call(warm_up.max(CONNECTIONS)).await?;
    timed(&server, &mut many, concurrent, &mut figures.pipelined).await?;
    figures.after_mb.push(server.resident()? as f64 / 1024.0);
    Ok(())
}

#[allow(clippy::cast_precision_loss, reason = "nanoseconds of a call and numbers of calls are far below 2^52")]
async fn timed(
    server: &subject::Running,
    clients: &mut Clients,
    calls: usize,
    figures: &mut Calls,
) -> Result<(), io::Error> {
    let cpu = process::cpu(server.pid())?;
    let begin = Instant::now();
    let mut latencies = clients.call(calls).await?;
    let elapsed = begin.elapsed();
    let cpu = process::cpu(server.pid())?.saturating_sub(cpu);
    latencies.sort_unstable();
    let number = latencies.len() as f64;
    figures.p50_us.push(latencies[latencies.len() / 2] as f64 / 1e3);
    figures.p99_us.push(latencies[latencies.len() * 99 / 100] as f64 / 1e3);
    figures.cpu_us.push(cpu.as_secs_f64() * 1e6 / number);
    figures.per_second.push(number / elapsed.as_secs_f64());
    Ok(())
}
