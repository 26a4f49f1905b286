//! What a call costs as the work grows: more tools, more clients, more documents, more jobs.
//!
//! Each curve is CPU per unit over size. Its slope is the exponent of a power law through the points, by least squares in
//! logarithms: 0 is constant, 1 is proportional to the size. A curve that turns up at its end would hide in that, so the
//! slope of the last step is judged too.

mod catalogue;
mod clients;
mod curve;
mod documents;
mod plot;
mod serve;

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use crate::{
    Failure, ledger,
    row::{self, Kind, Report, Row, Target},
    subject::build_rialto,
    table::{machine, median, number},
};
use curve::Curve;
pub use serve::{SERVER, serve};

const USAGE: &str = "\
usage: rialto-bench growth [--quick] [--rounds N] [--only TEXT] [--plots DIR] [--rialto FILE]

  --quick        fewer calls and smaller sizes
  --rounds N     rounds over every size (3)
  --only TEXT    only curves of tools, clients, documents or jobs
  --plots DIR    draw each curve into this folder, as SVG
  --rialto FILE  a binary that is built already, such as one of another commit";

/// What the slope of the last step may be above the target of the whole: one step has more noise than all.
const LAST_STEP: f64 = 0.2;

pub struct Options {
    quick: bool,
    rounds: usize,
    only: String,
    plots: Option<PathBuf>,
}

impl Options {
    pub fn new(quick: bool) -> Self {
        Self { quick, rounds: if quick { 2 } else { 3 }, only: String::new(), plots: None }
    }

    /// Calls of a measurement, or the tenth of them.
    fn calls(&self, calls: usize) -> usize {
        if self.quick { calls / 10 } else { calls }
    }
}

pub fn run(mut arguments: impl Iterator<Item = String>) -> Result<(), Failure> {
    let (mut options, mut rounds, mut rialto) = (Options::new(false), None, None);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value\n\n{USAGE}"));
        match argument.as_str() {
            "--quick" => options = Options { only: options.only, plots: options.plots, ..Options::new(true) },
            "--rounds" => rounds = Some(value()?.parse()?),
            "--only" => options.only = value()?,
            "--plots" => options.plots = Some(value()?.into()),
            "--rialto" => rialto = Some(value()?.into()),
            _ => return Err(format!("unknown argument {argument}\n\n{USAGE}").into()),
        }
    }
    options.rounds = rounds.unwrap_or(options.rounds);
    let rialto: PathBuf = rialto.map_or_else(build_rialto, Ok)?;
    print!("{}", report(&options, &rialto)?.text);
    Ok(())
}

/// What measures the curves over one kind of size.
type Measure = fn(&Path, &Options) -> Result<Vec<Curve>, Failure>;

const KINDS: [(&str, Measure); 4] =
    [("tools", catalogue::curves), ("clients", clients::curves), ("documents", documents::curves), ("jobs", jobs)];

pub fn report(options: &Options, rialto: &Path) -> Result<Report, Failure> {
    let mut curves = Vec::new();
    for (_, measure) in KINDS.iter().filter(|(kind, _)| kind.contains(&options.only)) {
        curves.extend(measure(rialto, options)?);
    }
    eprint!("\r{:70}\r", "");
    let mut report =
        Report { text: format!("{}; {} rounds; medians.\n\n", machine(), options.rounds), rows: Vec::new() };
    for curve in &curves {
        report.text.push_str(&figures(curve));
        if let Some(folder) = &options.plots {
            fs::create_dir_all(folder)?;
            fs::write(folder.join(format!("growth-{}.svg", curve.file)), plot::svg(curve)?)?;
        }
        report.rows.extend(rows(curve));
    }
    report.text.push_str(&row::markdown(&report.rows));
    Ok(report)
}

/// The points of a curve as a table.
fn figures(curve: &Curve) -> String {
    let head: Vec<_> = curve.points.iter().map(|point| point.size.to_string()).collect();
    let cells: Vec<_> = curve.points.iter().map(|point| number(median(&point.rounds))).collect();
    let mut text = String::new();
    let _ =
        writeln!(text, "| {} | {} | slope |\n|---|{}---:|", curve.size, head.join(" | "), "---:|".repeat(head.len()));
    let slope = median(&curve.slopes());
    let _ = writeln!(text, "| {}, {} | {} | {slope:.2} |\n", curve.what, curve.unit, cells.join(" | "));
    text
}

fn rows(curve: &Curve) -> [Row; 2] {
    let whole = Row::new("growth", format!("{}: slope over {}", curve.what, curve.size), Kind::Cpu, Ok(curve.slopes()));
    let last = format!("{}: slope of the last step", curve.what);
    // One step is noisy: its median counts.
    let last = Row::new("growth", last, Kind::Cpu, Ok(vec![median(&curve.last_slopes())]));
    [whole.target(Target::AtMost(curve.target)), last.target(Target::AtMost(curve.target + LAST_STEP))]
}

/// A job of five durable steps, in a ledger that has many already.
fn jobs(_: &Path, options: &Options) -> Result<Vec<Curve>, Failure> {
    let sizes: &[u64] = if options.quick { &[1_000, 10_000, 100_000] } else { &[1_000, 10_000, 100_000, 1_000_000] };
    let mut curve = Curve {
        file: "jobs",
        what: "a paid job, 64 in flight",
        unit: "CPU µs/job",
        size: "jobs in the ledger",
        target: 0.1,
        points: Vec::new(),
    };
    let mut how = ledger::Options::new(options.quick);
    how.rounds = options.rounds;
    for grown in ledger::grown(&how, sizes)? {
        curve.push(usize::try_from(grown.size)?, grown.cpu_us);
    }
    Ok(vec![curve])
}
