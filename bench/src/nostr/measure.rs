//! Rounds over all subjects, interleaved, so that a busy moment of the machine does not hit one subject alone.

use std::{path::Path, process, time::Duration};

use super::{
    drive::{CUSTOMERS, Session},
    server::Server,
    subject::{Maker, Subject},
    subscribed,
};
use crate::{
    Failure,
    process::{cpu, descendants, resident},
};

/// Calls that wait at the same time, one measurement for each.
pub const IN_FLIGHT: [usize; 3] = [1, 16, 64];

/// How much is measured in one round.
#[derive(Clone, Copy)]
pub struct Effort {
    pub rounds: usize,
    starts: usize,
    divisor: usize,
}

impl Effort {
    pub const FULL: Self = Self { rounds: 3, starts: 2, divisor: 1 };
    pub const QUICK: Self = Self { rounds: 1, starts: 1, divisor: 10 };

    /// Calls to warm up, then for each number in flight.
    fn calls(self, maker: Maker) -> (usize, [usize; 3]) {
        let (warm_up, calls) = match maker {
            Maker::Node => (200, [200, 600, 800]),
            Maker::Rialto | Maker::Rust => (1_000, [2_000, 6_000, 12_000]),
        };
        (warm_up / self.divisor, calls.map(|calls| calls / self.divisor))
    }
}

/// Everything measured, one value per round (start-up: one per start).
#[derive(Default)]
pub struct Figures {
    pub startup_ms: Vec<f64>,
    pub idle_mb: Vec<f64>,
    pub after_mb: Vec<f64>,
    pub levels: [Level; 3],
}

#[derive(Default)]
pub struct Level {
    pub p50_ms: Vec<f64>,
    pub p99_ms: Vec<f64>,
    pub per_second: Vec<f64>,
    /// CPU milliseconds per call of the provider, its MCP server, the relay and the driver.
    pub cpu_ms: [Vec<f64>; 4],
}

pub struct Measured {
    pub name: &'static str,
    pub outcome: Result<Box<Figures>, String>,
}

/// The relay between driver and provider.
pub struct Relay {
    pub url: String,
    /// None when it was running already.
    server: Option<Server>,
}

impl Relay {
    /// A new one, with an empty store and no limits that could throttle; or the one that is given.
    pub async fn start(rialto: &Path, given: Option<&str>) -> Result<Self, Failure> {
        if let Some(url) = given {
            return Ok(Self { url: url.to_owned(), server: None });
        }
        let words = ["relay", "--listen", "127.0.0.1:0", "--json"];
        let command: Vec<_> = [rialto.to_string_lossy().as_ref()].into_iter().chain(words).map(Into::into).collect();
        let server = Server::start(&command).await?;
        let url = server.ready["url"].as_str().ok_or("the relay does not say where it listens")?.to_owned();
        Ok(Self { url, server: Some(server) })
    }

    pub async fn stop(self) {
        if let Some(server) = self.server {
            server.stop().await;
        }
    }
}

/// What the rounds need to know.
pub struct Rounds<'a> {
    pub rialto: &'a Path,
    pub relay: Option<&'a str>,
    pub effort: Effort,
    pub rounds: usize,
}

impl Rounds<'_> {
    pub async fn run(&self, subjects: &[Subject]) -> Vec<Measured> {
        let outcome = |subject: &Subject| subject.missing.clone().map_or_else(|| Ok(Box::default()), Err);
        let mut results: Vec<_> =
            subjects.iter().map(|subject| Measured { name: subject.name, outcome: outcome(subject) }).collect();
        for round in 1..=self.rounds {
            for (subject, result) in subjects.iter().zip(&mut results) {
                let Ok(figures) = &mut result.outcome else { continue };
                eprint!("\rround {round}/{}: {:<50}", self.rounds, subject.name);
                if let Err(error) = self.one(subject, figures).await {
                    result.outcome = Err(error.to_string());
                }
            }
        }
        eprint!("\r{:70}\r", "");
        results
    }

    async fn one(&self, subject: &Subject, figures: &mut Figures) -> Result<(), Failure> {
        let relay = Relay::start(self.rialto, self.relay).await?;
        for _ in 0..self.effort.starts {
            figures.startup_ms.push(subscribed::measure(subject, &relay.url).await?.as_secs_f64() * 1e3);
        }
        let provider = Server::start(&subject.command(&relay.url)).await?;
        let done = self.calls(subject, &relay, &provider, figures).await;
        let done = done.map_err(|error| format!("{error}{}", provider.complaint()).into());
        provider.stop().await;
        relay.stop().await;
        done
    }

    async fn calls(
        &self,
        subject: &Subject,
        relay: &Relay,
        provider: &Server,
        figures: &mut Figures,
    ) -> Result<(), Failure> {
        let key = provider.ready["pubkey"].as_str().ok_or("the provider does not say its key")?;
        let mut session = Session::open(&relay.url, subject.dialect, key, CUSTOMERS).await?;
        // One call first: lazily started parts belong to the idle memory.
        let first = session.prepare(1, 1)?;
        let run = session.run(&first).await?;
        session.verify(&first, &run)?;
        figures.idle_mb.push(megabytes(resident(provider.pid)?));
        let (warm_up, calls) = self.effort.calls(subject.maker);
        let prepared = session.prepare(warm_up, 16)?;
        session.run(&prepared).await?;
        let relay = relay.server.as_ref().map(|server| server.pid);
        for ((in_flight, calls), level) in IN_FLIGHT.into_iter().zip(calls).zip(&mut figures.levels) {
            let prepared = session.prepare(calls, in_flight)?;
            let before = spent(provider.pid, relay)?;
            let mut run = session.run(&prepared).await?;
            let after = spent(provider.pid, relay)?;
            session.verify(&prepared, &run)?;
            let number = count(run.latencies.len());
            for ((values, before), after) in level.cpu_ms.iter_mut().zip(before).zip(after) {
                values.push(after.saturating_sub(before).as_secs_f64() * 1e3 / number);
            }
            run.latencies.sort_unstable();
            let at = |percent| milliseconds(run.latencies[run.latencies.len() * percent / 100]);
            level.p50_ms.push(at(50));
            level.p99_ms.push(at(99));
            level.per_second.push(number / run.elapsed.as_secs_f64());
        }
        figures.after_mb.push(megabytes(resident(provider.pid)?));
        Ok(())
    }
}

/// CPU time so far: the provider, what it started, the relay and this process.
pub fn spent(provider: u32, relay: Option<u32>) -> Result<[Duration; 4], Failure> {
    let children = descendants(provider).into_iter().filter_map(|pid| cpu(pid).ok()).sum();
    Ok([cpu(provider)?, children, relay.map_or(Ok(Duration::ZERO), cpu)?, cpu(process::id())?])
}

#[allow(clippy::cast_precision_loss, reason = "numbers of calls are far below 2^52")]
fn count(calls: usize) -> f64 {
    calls as f64
}

#[allow(clippy::cast_precision_loss, reason = "nanoseconds of a call are far below 2^52")]
fn milliseconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e6
}

#[allow(clippy::cast_precision_loss, reason = "KiB of memory are far below 2^52")]
pub fn megabytes(kib: u64) -> f64 {
    kib as f64 / 1024.0
}
