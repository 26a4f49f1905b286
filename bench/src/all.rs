//! Everything in one run, and one table at its end.

use std::{
    path::{Path, PathBuf},
    time::Instant,
};

use serde_json::json;

use crate::{
    Failure, context, growth, http, ledger, measure, nostr,
    row::{self, Report},
    subject::{self, build_rialto},
    table,
};

const USAGE: &str = "\
usage: rialto-bench all [--quick] [--json] [--rialto FILE]

  --quick        few calls and small sizes, two to three minutes
  --json         the lines of the last table for a program, and nothing else
  --rialto FILE  a binary that is built already, such as one of another commit";

/// A part and what measures it.
type Part<'a> = (&'static str, Box<dyn Fn() -> Result<Report, Failure> + 'a>);

pub fn run(mut arguments: impl Iterator<Item = String>) -> Result<(), Failure> {
    let (mut quick, mut as_json, mut rialto) = (false, false, None);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--quick" => quick = true,
            "--json" => as_json = true,
            "--rialto" => {
                let file = arguments.next().ok_or_else(|| format!("{argument} needs a value\n\n{USAGE}"))?;
                rialto = Some(PathBuf::from(file));
            }
            _ => return Err(format!("unknown argument {argument}\n\n{USAGE}").into()),
        }
    }
    let rialto = rialto.map_or_else(build_rialto, Ok)?;
    let begin = Instant::now();
    let mut rows = Vec::new();
    for (name, measure) in parts(&rialto, quick) {
        eprintln!("{name}, after {} s", begin.elapsed().as_secs());
        let report = measure().map_err(|error| format!("{name}: {error}"))?;
        if !as_json {
            println!("# {name}\n\n{}", report.text);
        }
        rows.extend(report.rows);
    }
    let failing = rows.iter().filter(|row| row.holds() == Some(false)).count();
    let judged = rows.iter().filter(|row| row.holds().is_some()).count();
    let seconds = begin.elapsed().as_secs();
    if as_json {
        let rows = row::json(&rows);
        println!("{:#}", json!({ "machine": table::machine(), "seconds": seconds, "failing": failing, "rows": rows }));
    } else {
        println!("# All\n\n{}; {seconds} s.\n\n{}", table::machine(), row::markdown(&rows));
        println!("{} of {judged} promises hold.", judged - failing);
    }
    Ok(())
}

fn parts(rialto: &Path, quick: bool) -> Vec<Part<'_>> {
    vec![
        ("stdio", Box::new(move || Ok(stdio(rialto, quick)))),
        (
            "http",
            Box::new(move || {
                http::report(if quick { http::Effort::QUICK } else { http::Effort::FULL }, "", Some(rialto))
            }),
        ),
        ("nostr", Box::new(move || over_nostr(rialto, quick))),
        ("context", Box::new(move || context::report(&context::Options::new(quick), rialto))),
        ("ledger", Box::new(move || ledger::report(&ledger::Options::new(quick)))),
        ("growth", Box::new(move || growth::report(&growth::Options::new(quick), rialto))),
    ]
}

fn stdio(rialto: &Path, quick: bool) -> Report {
    let effort = if quick { measure::Effort::QUICK } else { measure::Effort::FULL };
    let results = measure::rounds(&subject::all(rialto), effort, effort.rounds);
    Report { text: table::markdown(&results, effort.rounds), rows: table::rows(&results) }
}

fn over_nostr(rialto: &Path, quick: bool) -> Result<Report, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let effort = if quick { nostr::Effort::QUICK } else { nostr::Effort::FULL };
    let rounds = nostr::Rounds { rialto, relay: None, effort, rounds: effort.rounds };
    let mut report = runtime.block_on(nostr::report(&rounds, ""));
    let parts = runtime.block_on(nostr::parts(rialto, quick, effort.rounds))?;
    report.text = format!("{}\n{}", report.text, parts.text);
    report.rows.extend(parts.rows);
    Ok(report)
}
