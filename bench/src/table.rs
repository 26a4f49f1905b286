//! The result as Markdown or JSON: a table, then the figures we promise and whether they hold.

use std::{fmt::Write as _, fs, thread};

use serde_json::{Value, json};

use crate::{
    measure::{Calls, Figures, Measured, Outcome},
    subject::{OUR_BOTH, OUR_GATEWAY, OUR_SERVER, RMCP_PIPES, RMCP_PROXIES},
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
    let _ = writeln!(text, "\n| promise | best | median | target | holds |\n|---|---:|---:|---:|---|");
    for Promise { what, value, target } in promises(results) {
        let holds = if value.median <= target { "yes" } else { "no" };
        let (best, median) = (number(value.best), number(value.median));
        let _ = writeln!(text, "| {what} | {best} | {median} | ≤ {} | {holds} |", number(target));
    }
    text
}

struct Promise {
    what: String,
    value: Summary,
    target: f64,
}

pub fn figures<'a>(results: &'a [Measured], wanted: &str) -> Option<&'a Figures> {
    results.iter().find(|result| result.name == wanted).and_then(|result| match &result.outcome {
        Outcome::Measured(figures) => Some(&**figures),
        _ => None,
    })
}

/// What we promise, as far as its subjects were measured.
fn promises(results: &[Measured]) -> Vec<Promise> {
    let mut promises = Vec::new();
    let mut promise = |what: &str, value: Option<Summary>, target| {
        promises.extend(value.map(|value| Promise { what: what.into(), value, target }));
    };
    let cpu = |name| figures(results, name).map(|figures| low(&figures.pipelined.cpu_us));
    let ratio = |ours: Option<Summary>, theirs: Option<Summary>| {
        let (ours, theirs) = ours.zip(theirs)?;
        Some(Summary { best: ours.best / theirs.best, median: ours.median / theirs.median })
    };
    // The better of both runtimes: the comparison must not flatter us.
    let proxy = RMCP_PROXIES.into_iter().filter_map(cpu).min_by(|a, b| a.median.total_cmp(&b.median));
    promise("echo, CPU per call, 64 in flight: rialto ÷ rmcp", ratio(cpu(OUR_SERVER), cpu(RMCP_PIPES)), 0.25);
    promise("gateway, CPU µs per call → rmcp echo", cpu(OUR_GATEWAY), 10.0);
    promise("gateway, CPU µs per call → rialto", cpu(OUR_BOTH), 10.0);
    promise("gateway, CPU per call: rialto ÷ typed rmcp proxy", ratio(cpu(OUR_GATEWAY), proxy), 0.25);
    for name in [OUR_SERVER, OUR_GATEWAY] {
        let measured = figures(results, name);
        promise(&format!("{name}: start-up ms"), measured.map(|figures| low(&figures.startup_ms)), 10.0);
        promise(&format!("{name}: idle MB"), measured.map(|figures| low(&figures.idle_mb)), 10.0);
    }
    promises
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
    let promise = |Promise { what, value, target }: &Promise| json!({ "what": what, "value": summary(*value), "target": target, "holds": value.median <= *target });
    json!({
        "machine": machine(),
        "subjects": results.iter().map(subject).collect::<Vec<_>>(),
        "promises": promises(results).iter().map(promise).collect::<Vec<_>>(),
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
