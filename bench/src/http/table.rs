//! The figures over HTTP as Markdown: CPU per call first, then what we promise.

use std::fmt::Write as _;

use super::subject::{OUR_GATEWAY, OURS, RMCP};
use crate::{
    measure::{Calls, Figures, Measured, Outcome},
    table::{Summary, cell, figures, high, low, machine, number},
};

/// What our server may need of what the Rust SDK's needs.
const TARGET: f64 = 0.5;

pub fn markdown(results: &[Measured], rounds: usize) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{}; {rounds} rounds; best / median.\n", machine());
    let calls = "CPU µs/call | p50 µs | p99 µs | calls/s";
    let _ = writeln!(
        text,
        "| subject | 1 connection: {calls} | 64 connections: {calls} | start-up ms | idle MB | after MB |"
    );
    let _ = writeln!(text, "|---|{}", "---:|".repeat(11));
    for Measured { name, outcome } in results {
        let _ = match outcome {
            Outcome::NotInstalled => writeln!(text, "| {name} | not installed {}", "|".repeat(11)),
            Outcome::Failed(error) => writeln!(text, "| {name} | failed: {error} {}", "|".repeat(11)),
            Outcome::Measured(figures) => {
                let Figures { startup_ms, sequential, pipelined, idle_mb, after_mb } = &**figures;
                let rest = [startup_ms, idle_mb, after_mb].map(|values| cell(low(values))).join(" | ");
                writeln!(text, "| {name} | {} | {} | {rest} |", cells(sequential), cells(pipelined))
            }
        };
    }
    let _ = writeln!(text, "\n| CPU per call | best | median | target | holds |\n|---|---:|---:|---:|---|");
    for (place, era) in ["sessions", "stateless"].into_iter().enumerate() {
        for (subject, ours, target) in [("echo", OURS[place], Some(TARGET)), ("gateway", OUR_GATEWAY[place], None)] {
            for (number_of, calls) in connections() {
                let Some(ratio) = ratio(results, ours, RMCP[place], calls) else { continue };
                let (best, median) = (number(ratio.best), number(ratio.median));
                let verdict = target.map_or(("–".to_owned(), "–"), |target| {
                    (format!("≤ {}", number(target)), if ratio.median <= target { "yes" } else { "no" })
                });
                let what = format!("{subject}, {era}, {number_of}: rialto ÷ rmcp's server");
                let _ = writeln!(text, "| {what} | {best} | {median} | {} | {} |", verdict.0, verdict.1);
            }
        }
    }
    text
}

type Pick = fn(&Figures) -> &Calls;

fn connections() -> [(&'static str, Pick); 2] {
    [("1 connection", |figures| &figures.sequential), ("64 connections", |figures| &figures.pipelined)]
}

fn cells(calls: &Calls) -> String {
    let Calls { p50_us, p99_us, cpu_us, per_second } = calls;
    [low(cpu_us), low(p50_us), low(p99_us), high(per_second)].map(cell).join(" | ")
}

fn ratio(results: &[Measured], ours: &str, theirs: &str, pick: Pick) -> Option<Summary> {
    let cpu = |name| figures(results, name).map(|figures| low(&pick(figures).cpu_us));
    let (ours, theirs) = cpu(ours).zip(cpu(theirs))?;
    Some(Summary { best: ours.best / theirs.best, median: ours.median / theirs.median })
}
