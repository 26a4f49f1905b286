//! The figures over HTTP as Markdown: CPU per call first, then what we promise.

use std::fmt::Write as _;

use super::subject::{OUR_GATEWAY, OURS, PROXIES, RMCP, TYPESCRIPT};
use crate::{
    measure::{Calls, Figures, Measured, Outcome},
    row::{self, Kind, Row, Target},
    table::{cell, high, low, machine, values},
};

/// What ours may need of what is made with the Rust SDK.
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
    let _ = write!(text, "\n{}", row::markdown(&rows(results)));
    text
}

/// What we promise, as far as it was measured: our server against the SDKs' servers, our gateway against a gateway made of
/// the Rust SDK's parts, before the same server.
pub fn rows(results: &[Measured]) -> Vec<Row> {
    let mut rows = Vec::new();
    for (place, era) in ["sessions", "stateless"].into_iter().enumerate() {
        let servers = [RMCP[place], TYPESCRIPT[place]];
        for (subject, ours, others) in [("echo", OURS[place], servers), ("gateway", OUR_GATEWAY[place], PROXIES[place])]
        {
            for (connections, pick) in connections() {
                let what = format!("{subject}, {era}, CPU µs/call, {connections}");
                let peers = others.map(|name| (name, values(results, name, pick)));
                rows.push(
                    Row::new("http", what, Kind::Cpu, values(results, ours, pick))
                        .against(peers)
                        .target(Target::Ratio(TARGET)),
                );
            }
        }
    }
    rows.retain(|row: &Row| row.ours.as_ref().err().is_none_or(|reason| reason != "not measured"));
    rows
}

type Pick = fn(&Figures) -> &[f64];

fn connections() -> [(&'static str, Pick); 2] {
    [("1 connection", |figures| &figures.sequential.cpu_us), ("64 connections", |figures| &figures.pipelined.cpu_us)]
}

fn cells(calls: &Calls) -> String {
    let Calls { p50_us, p99_us, cpu_us, per_second } = calls;
    [low(cpu_us), low(p50_us), low(p99_us), high(per_second)].map(cell).join(" | ")
}
