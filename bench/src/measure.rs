//! Rounds over all subjects, interleaved, so that a busy moment of the machine does not hit one subject alone.

use std::{io, time::Instant};

use crate::{
    drive::Session,
    subject::{Speed, Subject},
};

/// How much is measured in one round.
#[derive(Clone, Copy)]
pub struct Effort {
    pub rounds: usize,
    starts: usize,
    divisor: usize,
}

impl Effort {
    pub const FULL: Self = Self { rounds: 5, starts: 5, divisor: 1 };
    pub const QUICK: Self = Self { rounds: 2, starts: 2, divisor: 10 };

    /// Calls to warm up, one after the other, and pipelined.
    fn calls(self, speed: Speed) -> [usize; 3] {
        let calls = match speed {
            Speed::Native => [2_000, 20_000, 100_000],
            Speed::Node => [2_000, 5_000, 30_000],
            Speed::Python => [200, 1_000, 4_000],
        };
        calls.map(|calls| calls / self.divisor)
    }
}

/// Everything measured, one value per round (start-up: one per start).
#[derive(Default)]
pub struct Figures {
    pub startup_ms: Vec<f64>,
    pub sequential: Calls,
    pub pipelined: Calls,
    pub idle_mb: Vec<f64>,
    pub after_mb: Vec<f64>,
}

#[derive(Default)]
pub struct Calls {
    pub p50_us: Vec<f64>,
    pub p99_us: Vec<f64>,
    pub cpu_us: Vec<f64>,
    pub per_second: Vec<f64>,
}

pub enum Outcome {
    Measured(Box<Figures>),
    NotInstalled,
    Failed(String),
}

pub struct Measured {
    pub name: &'static str,
    pub outcome: Outcome,
}

pub fn rounds(subjects: &[Subject], effort: Effort, rounds: usize) -> Vec<Measured> {
    let mut results: Vec<_> = subjects
        .iter()
        .map(|subject| {
            let installed = subject.needs.exists();
            let outcome = if installed { Outcome::Measured(Box::default()) } else { Outcome::NotInstalled };
            Measured { name: subject.name, outcome }
        })
        .collect();
    for round in 1..=rounds {
        for (subject, result) in subjects.iter().zip(&mut results) {
            let Outcome::Measured(figures) = &mut result.outcome else { continue };
            eprint!("\rround {round}/{rounds}: {:<50}", subject.name);
            if let Err(error) = one(subject, effort, figures) {
                result.outcome = Outcome::Failed(error.to_string());
            }
        }
    }
    eprint!("\r{:70}\r", "");
    results
}

#[allow(clippy::cast_precision_loss, reason = "KiB of memory are far below 2^52")]
fn megabytes(kib: u64) -> f64 {
    kib as f64 / 1024.0
}

fn one(subject: &Subject, effort: Effort, figures: &mut Figures) -> io::Result<()> {
    for _ in 0..effort.starts {
        let (_, startup) = Session::open(&subject.command)?;
        figures.startup_ms.push(startup.as_secs_f64() * 1e3);
    }
    let (mut session, startup) = Session::open(&subject.command)?;
    figures.startup_ms.push(startup.as_secs_f64() * 1e3);
    // One call first: lazily started parts belong to the idle memory.
    session.sequential(1)?;
    figures.idle_mb.push(megabytes(session.process.resident()?));
    let [warm_up, sequential, pipelined] = effort.calls(subject.speed);
    session.sequential(warm_up / 2)?;
    session.pipelined(warm_up / 2)?;
    timed(&mut session, &mut figures.sequential, |session| session.sequential(sequential))?;
    timed(&mut session, &mut figures.pipelined, |session| session.pipelined(pipelined))?;
    figures.after_mb.push(megabytes(session.process.resident()?));
    Ok(())
}

#[allow(clippy::cast_precision_loss, reason = "nanoseconds of a call and numbers of calls are far below 2^52")]
fn timed(
    session: &mut Session,
    figures: &mut Calls,
    calls: impl FnOnce(&mut Session) -> io::Result<Vec<u64>>,
) -> io::Result<()> {
    let cpu = session.process.cpu()?;
    let begin = Instant::now();
    let mut latencies = calls(session)?;
    let elapsed = begin.elapsed();
    let cpu = session.process.cpu()?.saturating_sub(cpu);
    latencies.sort_unstable();
    let number = latencies.len() as f64;
    figures.p50_us.push(latencies[latencies.len() / 2] as f64 / 1e3);
    figures.p99_us.push(latencies[latencies.len() * 99 / 100] as f64 / 1e3);
    figures.cpu_us.push(cpu.as_secs_f64() * 1e6 / number);
    figures.per_second.push(number / elapsed.as_secs_f64());
    Ok(())
}
