//! Measures context caches: building them, the first answer of a new process, and answers of one that runs.
//!
//! Every answer over stdio is compared with what the command line prints for the same query.

mod corpus;
mod peer;
mod server;

use std::{
    fmt::Write as _,
    fs, io,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use nix::sys::{
    resource::{UsageWho, getrusage},
    time::{TimeVal, TimeValLike as _},
};

use crate::{
    Failure,
    row::{self, Kind, Report, Row, Target},
    subject::build_rialto,
    table::{machine, median},
};
use corpus::{QUERIES, write_corpus};
use server::Server;

const USAGE: &str = "\
usage: rialto-bench context [--quick] [--documents N]... [--rialto FILE]

  --quick        a small corpus and few calls, to see that everything works
  --documents N  how many documents of about 2 KB (10000 and 100000)
  --rialto FILE  a binary that is built already, such as one of another commit";

/// What queries may spend.
const BUDGET: u64 = 4000;

pub struct Options {
    pub sizes: Vec<usize>,
    calls: usize,
    rounds: usize,
    rialto: Option<PathBuf>,
}

impl Options {
    pub fn new(quick: bool) -> Self {
        let (sizes, calls, rounds) = if quick { (vec![1000], 200, 2) } else { (vec![10_000, 100_000], 2000, 5) };
        Self { sizes, calls, rounds, rialto: None }
    }
}

fn options(mut arguments: impl Iterator<Item = String>) -> Result<Options, Failure> {
    let (mut sizes, mut quick, mut rialto) = (Vec::new(), false, None);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value\n\n{USAGE}"));
        match argument.as_str() {
            "--quick" => quick = true,
            "--documents" => sizes.push(value()?.parse()?),
            "--rialto" => rialto = Some(value()?.into()),
            _ => return Err(format!("unknown argument {argument}\n\n{USAGE}").into()),
        }
    }
    let usual = Options::new(quick);
    let sizes = if sizes.is_empty() { usual.sizes } else { sizes };
    Ok(Options { sizes, rialto, ..usual })
}

/// A folder that is removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        Self(std::env::temp_dir().join(format!("rialto-bench-context-{}", std::process::id())))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub fn run(arguments: impl Iterator<Item = String>) -> Result<(), Failure> {
    let options = options(arguments)?;
    let rialto = options.rialto.clone().map_or_else(build_rialto, Ok)?;
    print!("{}", report(&options, &rialto)?.text);
    Ok(())
}

pub fn report(options: &Options, rialto: &Path) -> Result<Report, Failure> {
    let text = format!("{}; {} rounds; CPU is that of the whole process, all threads.\n\n", machine(), options.rounds);
    let mut report = Report { text, rows: Vec::new() };
    for size in &options.sizes {
        eprint!("\r{size} documents{:40}", "");
        let scratch = Scratch::new();
        let bytes = write_corpus(&scratch.0.join("docs"), *size)?;
        measure(&Stage { rialto, folder: &scratch.0, options }, *size, bytes, &mut report)?;
    }
    eprint!("\r{:60}\r", "");
    Ok(report)
}

struct Stage<'a> {
    rialto: &'a Path,
    folder: &'a Path,
    options: &'a Options,
}

impl Stage<'_> {
    /// Runs a command of Rialto.
    fn command(&self, arguments: &[&str]) -> Result<(Duration, Duration, Vec<u8>), Failure> {
        self.run(self.rialto, arguments)
    }

    /// Runs a program in the folder; gives its CPU time, its wall time and what it printed.
    fn run(&self, program: &Path, arguments: &[&str]) -> Result<(Duration, Duration, Vec<u8>), Failure> {
        let (cpu, begin) = (children_cpu()?, Instant::now());
        let output = Command::new(program).args(arguments).current_dir(self.folder).envs(self.homes()).output()?;
        let wall = begin.elapsed();
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{} {} failed: {said}", program.display(), arguments.join(" ")).into());
        }
        Ok((children_cpu()? - cpu, wall, output.stdout))
    }

    /// Nothing of the user's is read or written.
    fn homes(&self) -> [(&'static str, PathBuf); 2] {
        [("XDG_CACHE_HOME", self.folder.join("cache")), ("XDG_STATE_HOME", self.folder.join("state"))]
    }

    fn server(&self) -> io::Result<Server> {
        let homes = self.homes().map(|(name, folder)| format!("{name}={}", folder.display()));
        let root = self.folder.join("caches").display().to_string();
        let command = [&self.rialto.display().to_string(), "mcp", "context", "--root", &root].map(ToOwned::to_owned);
        Server::start(&[&homes[..], &command].concat())
    }

    fn forget_indexes(&self) {
        let _ = fs::remove_dir_all(self.folder.join("cache"));
    }
}

/// CPU time of all children that have ended.
fn children_cpu() -> io::Result<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let duration = |time: TimeVal| Duration::from_micros(u64::try_from(time.num_microseconds()).unwrap_or(0));
    Ok(duration(usage.user_time()) + duration(usage.system_time()))
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

fn measure(stage: &Stage<'_>, size: usize, bytes: u64, report: &mut Report) -> Result<(), Failure> {
    let megabytes = bytes as f64 / 1e6;
    let Report { text, rows } = report;
    let _ = writeln!(text, "## {size} documents, {megabytes:.1} MB\n\n| what | CPU ms | wall ms |\n|---|---:|---:|");
    let mut row = |what: &str, cpu: f64, wall: f64| {
        let _ = writeln!(text, "| {what} | {cpu:.3} | {wall:.3} |");
    };
    let build = ["context", "build", "--sources", "docs", "--cache", "caches/c"];
    let (cpu, wall, _) = stage.command(&build)?;
    row("build", milliseconds(cpu), milliseconds(wall));
    let built = milliseconds(cpu);
    let (cpu, wall, _) = stage.command(&[&build[..], &["--force"]].concat())?;
    row("build again, nothing changed", milliseconds(cpu), milliseconds(wall));
    let (cpu, wall, _) = stage.command(&["context", "verify", "--cache", "caches/c"])?;
    row("verify", milliseconds(cpu), milliseconds(wall));
    let expected = expected(stage)?;

    let cold = |is_kept: bool| -> Result<(Vec<f64>, f64), Failure> {
        let (mut cpu, mut wall) = (Vec::new(), Vec::new());
        for round in 0..stage.options.rounds {
            if !is_kept {
                stage.forget_indexes();
            }
            let begin = Instant::now();
            let mut server = stage.server()?;
            server.check(round % QUERIES.len(), &expected)?;
            wall.push(milliseconds(begin.elapsed()));
            cpu.push(milliseconds(server.process.cpu()?));
        }
        Ok((cpu, median(&wall)))
    };
    let (cpu, wall) = cold(false)?;
    row("first answer of a new process, no index kept", median(&cpu), wall);
    let (cold_cpu, wall) = cold(true)?;
    row("first answer of a new process, index kept", median(&cold_cpu), wall);

    let mut server = stage.server()?;
    for query in 0..QUERIES.len() {
        server.check(query, &expected)?;
    }
    let idle = server.process.resident()? as f64 / 1024.0;
    let _ = writeln!(
        text,
        "\n| a process that runs | in flight | CPU ms/call | p50 ms | p99 ms | calls/s |\n|---|---:|---:|---:|---:|---:|"
    );
    let mut warm_cpu = Vec::new();
    for in_flight in [1, 16] {
        let mut rounds = Vec::new();
        for _ in 0..stage.options.rounds {
            rounds.push(server.calls(stage.options.calls, in_flight, &expected)?);
        }
        let of = |pick: fn(&server::Round) -> f64| median(&rounds.iter().map(pick).collect::<Vec<_>>());
        let cpu = of(|round| round.cpu_ms);
        if in_flight == 1 {
            warm_cpu = rounds.iter().map(|round| round.cpu_ms).collect();
        }
        let (p50, p99, rate) = (of(|round| round.p50_ms), of(|round| round.p99_ms), of(|round| round.per_second));
        let _ = writeln!(text, "| resolve | {in_flight} | {cpu:.4} | {p50:.3} | {p99:.3} | {rate:.0} |");
    }
    let cpu = server.search(stage.options.calls / 4)?;
    let _ = writeln!(text, "| search | 1 | {cpu:.4} | | | |");
    let after = server.process.resident()? as f64 / 1024.0;
    let _ = writeln!(text, "\nResident memory: {idle:.1} MB after {} calls, {after:.1} MB after all.\n", QUERIES.len());

    let ours = peer::Ours { cold: median(&cold_cpu), warm: median(&warm_cpu) };
    // With more it would take an hour.
    let peer = if size <= 10_000 { peer::compare(stage, size, &ours, &expected, text)? } else { None };
    let mut own = Vec::new();
    let mut promise = |what: &str, kind, ours: Vec<f64>, theirs: Option<f64>, target: Option<f64>| {
        let theirs = theirs.map(|value| vec![value]).ok_or_else(|| peer::NOT_THERE.to_owned());
        let row = Row::new("context", format!("{size} documents, {what}"), kind, Ok(ours));
        own.push(row.against([(peer::NAME, theirs)]).target(target.map_or(Target::None, Target::AtMost)));
    };
    let is_promised = size <= 10_000;
    let promised = |target| is_promised.then_some(target);
    promise("build, CPU ms", Kind::Cpu, vec![built], peer.as_ref().map(|peer| peer.build), promised(3000.0));
    let first = peer.as_ref().map(|peer| peer.cold);
    promise("first answer of a new process, CPU ms", Kind::Cpu, cold_cpu, first, promised(150.0));
    promise("resolve, CPU ms/call", Kind::Cpu, warm_cpu, peer.as_ref().map(|peer| peer.warm), promised(1.0));
    let memory =
        Row::new("context", format!("{size} documents, memory ÷ corpus"), Kind::Memory, Ok(vec![after / megabytes]));
    own.push(memory.target(Target::AtMost(3.0)));
    let _ = writeln!(text, "{}", row::markdown(&own));
    rows.extend(own);
    Ok(())
}

/// What it costs with so many documents, in µs of CPU: a figure for each round.
pub struct Grown {
    /// Building, per document.
    pub build_us: Vec<f64>,
    /// An answer to a query that one document matches.
    pub one_us: Vec<f64>,
    /// An answer, as the mean of all queries.
    pub all_us: Vec<f64>,
}

pub fn grown(rialto: &Path, size: usize, calls: usize, rounds: usize) -> Result<Grown, Failure> {
    let scratch = Scratch::new();
    write_corpus(&scratch.0.join("docs"), size)?;
    let options = Options { calls, rounds, ..Options::new(true) };
    let stage = Stage { rialto, folder: &scratch.0, options: &options };
    let mut grown = Grown { build_us: Vec::new(), one_us: Vec::new(), all_us: Vec::new() };
    // A small cache is built some times. What is deleted costs whoever creates files next, so everything stays until the end.
    let builds = (500 / size).clamp(1, 5);
    for round in 0..rounds {
        let mut spent = Duration::ZERO;
        for number in 0..builds {
            let cache =
                if (round, number) == (0, 0) { "caches/c".to_owned() } else { format!("more/{round}-{number}") };
            fs::create_dir_all(scratch.0.join(if cache.starts_with('m') { "more" } else { "caches" }))?;
            spent += stage.command(&["context", "build", "--sources", "docs", "--cache", &cache])?.0;
        }
        grown.build_us.push(spent.as_secs_f64() * 1e6 / (builds * size) as f64);
    }
    let expected = expected(&stage)?;
    let mut server = stage.server()?;
    // Above 1,000, a number is in the heading of its document and nowhere else.
    let last = (size - 1).to_string();
    server.only(&last, &format!("document-{last}.md"), 10)?;
    for query in 0..QUERIES.len() {
        server.check(query, &expected)?;
    }
    for _ in 0..rounds {
        grown.one_us.push(server.only(&last, &format!("document-{last}.md"), calls)? * 1e3);
        grown.all_us.push(server.calls(calls, 1, &expected)?.cpu_ms * 1e3);
    }
    Ok(grown)
}

/// What the command line prints for each query.
fn expected(stage: &Stage<'_>) -> Result<Vec<String>, Failure> {
    let budget = BUDGET.to_string();
    let answer = |query: &&str| -> Result<String, Failure> {
        let arguments = ["context", "resolve", "--cache", "caches/c", "--query", query, "--budget", &budget];
        Ok(String::from_utf8(stage.command(&arguments)?.2)?)
    };
    QUERIES.iter().map(answer).collect()
}
