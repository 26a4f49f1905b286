//! The result over stdio as Markdown or JSON: a table, then what we promise and whether it holds.

use std::{fmt::Write as _, fs, thread};

use serde_json::{Value, json};

use crate::{
    measure::{Calls, Figures, Measured, Outcome},
    row::{self, Kind, Peer, Row, Target},
    subject::{OUR_BOTH, OUR_GATEWAY, OUR_SERVER, RMCP_PROXIES, SDKS},
};

/// The best and the median of the rounds.
#[derive(Clone, Copy)]
pub struct Summary {
    pub best: f64,
    pub median: f64,
}

pub fn low(values: &[f64]) -> Summary {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |index: usize| sorted.get(index).copied().unwrap_or(f64::NAN);
    Summary { best: at(0), median: at(sorted.len() / 2) }
}

/// For figures where more is better.
pub fn high(values: &[f64]) -> Summary {
    let negated: Vec<_> = values.iter().map(|value| -value).collect();
    let Summary { best, median } = low(&negated);
    Summary { best: -best, median: -median }
}

pub fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 1e4 => format!("{:.0} k", value / 1e3),
        size if size >= 1e3 => format!("{:.1} k", value / 1e3),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

pub fn cell(summary: Summary) -> String {
    format!("{} / {}", number(summary.best), number(summary.median))
}

fn calls_cells(calls: &Calls) -> String {
    let Calls { p50_us, p99_us, cpu_us, per_second } = calls;
    [low(p50_us), low(p99_us), low(cpu_us), high(per_second)].map(cell).join(" | ")
}

pub fn markdown(results: &[Measured], rounds: usize) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{}; {rounds} rounds; best / median.\n", machine());
    let calls = "p50 µs | p99 µs | CPU µs/call | calls/s";
    let pipelined = calls.replace("p50", "64 in flight: p50");
    let _ = writeln!(text, "| subject | start-up ms | one by one: {calls} | {pipelined} | idle MB | after MB |");
    let _ = writeln!(text, "|---|{}", "---:|".repeat(11));
    for Measured { name, outcome } in results {
        let _ = match outcome {
            Outcome::NotInstalled => writeln!(text, "| {name} | not installed {}", "|".repeat(11)),
            Outcome::Failed(error) => writeln!(text, "| {name} | failed: {error} {}", "|".repeat(11)),
            Outcome::Measured(figures) => {
                let Figures { startup_ms, sequential, pipelined, idle_mb, after_mb } = &**figures;
                let (one, many) = (calls_cells(sequential), calls_cells(pipelined));
                let start = cell(low(startup_ms));
                let memory = [idle_mb, after_mb].map(|values| cell(low(values))).join(" | ");
                writeln!(text, "| {name} | {start} | {one} | {many} | {memory} |")
            }
        };
    }
    let _ = write!(text, "\n{}", row::markdown(&rows(results)));
    text
}

/// One kind of figure of a subject, a value per round, or why there is none.
pub fn values(results: &[Measured], wanted: &str, pick: fn(&Figures) -> &[f64]) -> Result<Vec<f64>, String> {
    let result = results.iter().find(|result| result.name == wanted).ok_or("not measured")?;
    match &result.outcome {
        Outcome::Measured(figures) => Ok(pick(figures).to_vec()),
        Outcome::NotInstalled => Err("not installed".to_owned()),
        Outcome::Failed(error) => Err(format!("failed: {error}")),
    }
}

/// What we promise, as far as it was measured.
pub fn rows(results: &[Measured]) -> Vec<Row> {
    let peers = |names: &[&'static str], pick: fn(&Figures) -> &[f64]| -> Vec<Peer> {
        names.iter().map(|name| (*name, values(results, name, pick))).collect()
    };
    let row = |what: String, kind, ours: &str, others: &[&'static str], pick: fn(&Figures) -> &[f64]| {
        Row::new("stdio", what, kind, values(results, ours, pick)).against(peers(others, pick))
    };
    let many: fn(&Figures) -> &[f64] = |figures| &figures.pipelined.cpu_us;
    let one: fn(&Figures) -> &[f64] = |figures| &figures.sequential.cpu_us;
    let mut rows = Vec::new();
    for (subject, ours, others) in [("echo", OUR_SERVER, &SDKS[..]), ("gateway", OUR_GATEWAY, &RMCP_PROXIES[..])] {
        let what = format!("{subject}, CPU µs/call");
        rows.push(row(format!("{what}, 64 in flight"), Kind::Cpu, ours, others, many).target(Target::Ratio(0.25)));
        rows.push(row(format!("{what}, one by one"), Kind::Cpu, ours, others, one));
        let startup = row(format!("{subject}, start-up ms"), Kind::Wall, ours, others, |figures| &figures.startup_ms);
        rows.push(startup.target(Target::AtMost(10.0)));
        let idle = row(format!("{subject}, idle MB"), Kind::Memory, ours, others, |figures| &figures.idle_mb);
        rows.push(idle.target(Target::AtMost(10.0)));
    }
    for (name, ours) in [("rmcp echo", OUR_GATEWAY), ("rialto", OUR_BOTH)] {
        let what = format!("gateway → {name}, CPU µs/call, 64 in flight");
        rows.push(row(what, Kind::Cpu, ours, &[], many).target(Target::AtMost(10.0)));
    }
    rows.retain(|row| row.ours.as_ref().err().is_none_or(|reason| reason != "not measured"));
    rows
}

pub fn json(results: &[Measured]) -> Value {
    let summary = |Summary { best, median }: Summary| json!({ "best": best, "median": median });
    let calls = |calls: &Calls| {
        json!({
            "p50_us": summary(low(&calls.p50_us)),
            "p99_us": summary(low(&calls.p99_us)),
            "cpu_us_per_call": summary(low(&calls.cpu_us)),
            "calls_per_second": summary(high(&calls.per_second)),
        })
    };
    let subject = |Measured { name, outcome }: &Measured| match outcome {
        Outcome::NotInstalled => json!({ "name": name, "error": "not installed" }),
        Outcome::Failed(error) => json!({ "name": name, "error": error }),
        Outcome::Measured(figures) => json!({
            "name": name,
            "startup_ms": summary(low(&figures.startup_ms)),
            "sequential": calls(&figures.sequential),
            "pipelined": calls(&figures.pipelined),
            "idle_mb": summary(low(&figures.idle_mb)),
            "after_mb": summary(low(&figures.after_mb)),
        }),
    };
    json!({
        "machine": machine(),
        "subjects": results.iter().map(subject).collect::<Vec<_>>(),
        "rows": row::json(&rows(results)),
    })
}

/// The median of some values.
pub fn median(values: &[f64]) -> f64 {
    low(values).median
}

/// The best of some values of which more is better.
pub fn best_of_high(values: &[f64]) -> f64 {
    high(values).best
}

/// What the figures depend on: the processor, the kernel and how busy the machine is.
pub fn machine() -> String {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let cpuinfo = read("/proc/cpuinfo");
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("unknown processor");
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let kernel = read("/proc/sys/kernel/osrelease");
    let load = read("/proc/loadavg");
    let load = load.split(' ').next().unwrap_or_default();
    let model = model.trim_start_matches(['\t', ' ', ':']);
    format!("{model}, {cores} cores, Linux {}, load average {load} at the end", kernel.trim())
}
