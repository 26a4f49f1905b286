//! The result as Markdown: the calls, the processes, the peers relative to us, and the figures we promise.

use std::fmt::Write as _;

use super::{
    measure::{Figures, IN_FLIGHT, Level, Measured},
    subject::{OUR_PLAIN, OUR_SEALED, PLAIN_PEERS, SEALED_PEERS},
};
use crate::{
    row::{self, Kind, Row, Target},
    table::{best_of_high, machine, median},
};

fn two(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// The medians of one row: p50, p99, calls per second and the four CPU times.
fn medians(level: &Level) -> [f64; 7] {
    let [provider, child, relay, driver] = &level.cpu_ms;
    [&level.p50_ms, &level.p99_ms, &level.per_second, provider, child, relay, driver].map(|values| median(values))
}

pub fn markdown(results: &[Measured], rounds: usize, child: &[f64]) -> String {
    let mut text = format!("{}; {rounds} rounds; medians.\n\n", machine());
    calls(&mut text, results);
    processes(&mut text, results, child);
    ratios(&mut text, results);
    let _ = write!(text, "\n{}", row::markdown(&rows(results, child)));
    text
}

fn calls(text: &mut String, results: &[Measured]) {
    let cpu = "provider CPU ms/call | its MCP server | relay | driver";
    let _ = writeln!(
        text,
        "| subject | in flight | p50 ms | p99 ms | calls/s | best round | {cpu} |\n|---|{}",
        "---:|".repeat(9)
    );
    for Measured { name, outcome } in results {
        match outcome {
            Err(error) => {
                let error = error.replace('|', "/");
                let _ = writeln!(text, "| {name} | failed: {error} {}", "|".repeat(9));
            }
            Ok(figures) => {
                for (in_flight, level) in IN_FLIGHT.iter().zip(&figures.levels) {
                    let mut cells = medians(level).map(two).to_vec();
                    cells.insert(3, two(best_of_high(&level.per_second)));
                    let _ = writeln!(text, "| {name} | {in_flight} | {} |", cells.join(" | "));
                }
            }
        }
    }
}

fn processes(text: &mut String, results: &[Measured], child: &[f64]) {
    let _ = writeln!(text, "\n| subject | start-up to subscribed, ms | idle MB | after MB |\n|---|---:|---:|---:|");
    for Measured { name, outcome } in results {
        let Ok(figures) = outcome else { continue };
        let Figures { startup_ms, idle_mb, after_mb, .. } = &**figures;
        let cells = [startup_ms, idle_mb, after_mb].map(|values| two(median(values)));
        let _ = writeln!(text, "| {name} | {} |", cells.join(" | "));
    }
    let _ = writeln!(text, "| the MCP server alone, until it answers `initialize` | {} | | |", two(median(child)));
}

fn figures<'a>(results: &'a [Measured], wanted: &str) -> Option<&'a Figures> {
    results.iter().find(|result| result.name == wanted).and_then(|result| result.outcome.as_deref().ok())
}

/// Each peer divided by ours in the same privacy; for calls per second, ours divided by the peer's.
fn ratios(text: &mut String, results: &[Measured]) {
    let columns = "p50, 1 in flight | p50, 64 | fewer calls/s, 64 | provider CPU, 64 | start-up | after MB";
    let _ = writeln!(text, "\n| peer ÷ Rialto | {columns} |\n|---|{}", "---:|".repeat(6));
    for Measured { name, outcome } in results {
        let counterpart = if name.ends_with("sealed") { OUR_SEALED } else { OUR_PLAIN };
        let (Ok(peer), Some(own)) = (outcome, figures(results, counterpart)) else { continue };
        if *name == counterpart {
            continue;
        }
        let of = |figures: &Figures| {
            let [one, _, many] = [0, 1, 2].map(|level| medians(&figures.levels[level]));
            let after = [&figures.startup_ms, &figures.after_mb].map(|values| median(values));
            [one[0], many[0], 1.0 / many[2], many[3], after[0], after[1]]
        };
        let (peer, own) = (of(peer), of(own));
        let cells: Vec<_> = peer.iter().zip(own).map(|(peer, own)| format!("{} ×", two(peer / own))).collect();
        let _ = writeln!(text, "| {name} | {} |", cells.join(" | "));
    }
}

fn values(results: &[Measured], wanted: &str, pick: fn(&Figures) -> &[f64]) -> Result<Vec<f64>, String> {
    let result = results.iter().find(|result| result.name == wanted).ok_or("not measured")?;
    result.outcome.as_ref().map(|figures| pick(figures).to_vec()).map_err(Clone::clone)
}

/// What we promise, as far as it was measured.
pub fn rows(results: &[Measured], child: &[f64]) -> Vec<Row> {
    let row = |what: &str, kind, ours, others: [&'static str; 2], pick: fn(&Figures) -> &[f64]| {
        let peers = others.map(|name| (name, values(results, name, pick)));
        Row::new("nostr", what, kind, values(results, ours, pick)).against(peers)
    };
    let (plain, sealed) = (PLAIN_PEERS, SEALED_PEERS);
    let many: fn(&Figures) -> &[f64] = |figures| &figures.levels[2].cpu_ms[0];
    let own = values(results, OUR_PLAIN, |figures| &figures.startup_ms);
    let without_child = own.map(|values| values.into_iter().map(|value| value - median(child)).collect());
    let mut rows = vec![
        row("plain, CPU ms/call, 64 in flight", Kind::Cpu, OUR_PLAIN, plain, many).target(Target::Ratio(1.0)),
        row("plain, CPU ms/call, 64 in flight", Kind::Cpu, OUR_PLAIN, plain, many).target(Target::AtMost(0.3)),
        row("sealed, CPU ms/call, 64 in flight", Kind::Cpu, OUR_SEALED, sealed, many).target(Target::Ratio(1.0)),
        row("plain, idle MB", Kind::Memory, OUR_PLAIN, plain, |figures| &figures.idle_mb).target(Target::AtMost(30.0)),
        row("plain, MB after all calls", Kind::Memory, OUR_PLAIN, plain, |figures| &figures.after_mb),
        row("plain, p50 ms, 1 in flight", Kind::Wall, OUR_PLAIN, plain, |figures| &figures.levels[0].p50_ms)
            .target(Target::AtMost(1.0)),
        row("plain, calls/s, 64 in flight", Kind::Wall, OUR_PLAIN, plain, |figures| &figures.levels[2].per_second)
            .target(Target::AtLeast(3_000.0)),
        Row::new("nostr", "plain, start-up to subscribed without the MCP server's own, ms", Kind::Wall, without_child)
            .target(Target::AtMost(50.0)),
    ];
    rows.retain(|row| row.ours.as_ref().err().is_none_or(|reason| reason != "not measured"));
    rows
}
