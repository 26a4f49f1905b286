//! Measures context caches: building them, the first answer of a new process, and answers of one that runs.
//!
//! Every answer over stdio is compared with what the command line prints for the same query.

mod corpus;
mod peer;
mod server;

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use crate::{
    Failure,
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

struct Options {
    sizes: Vec<usize>,
    calls: usize,
    rounds: usize,
    rialto: Option<PathBuf>,
}

fn options(mut arguments: impl Iterator<Item = String>) -> Result<Options, Failure> {
    let mut options = Options { sizes: Vec::new(), calls: 2000, rounds: 5, rialto: None };
    let mut quick = false;
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value\n\n{USAGE}"));
        match argument.as_str() {
            "--quick" => quick = true,
            "--documents" => options.sizes.push(value()?.parse()?),
            "--rialto" => options.rialto = Some(value()?.into()),
            _ => return Err(format!("unknown argument {argument}\n\n{USAGE}").into()),
        }
    }
    if quick {
        (options.calls, options.rounds) = (200, 2);
    }
    if options.sizes.is_empty() {
        options.sizes = if quick { vec![1000] } else { vec![10_000, 100_000] };
    }
    Ok(options)
}

/// A folder that is removed at the end.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub fn run(arguments: impl Iterator<Item = String>) -> Result<(), Failure> {
    let options = options(arguments)?;
    let rialto = options.rialto.clone().map_or_else(build_rialto, Ok)?;
    println!("{}; {} rounds; CPU is that of the whole process, all threads.\n", machine(), options.rounds);
    for size in &options.sizes {
        let scratch = Scratch(std::env::temp_dir().join(format!("rialto-bench-context-{}", std::process::id())));
        let bytes = write_corpus(&scratch.0.join("docs"), *size)?;
        measure(&Stage { rialto: &rialto, folder: &scratch.0, options: &options }, *size, bytes)?;
    }
    Ok(())
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
        let output = Command::new(program)
            .args(arguments)
            .current_dir(self.folder)
            .envs(self.homes())
            .stderr(Stdio::inherit())
            .output()?;
        let wall = begin.elapsed();
        if !output.status.success() {
            return Err(format!("{} {} failed", program.display(), arguments.join(" ")).into());
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

/// CPU time of all children that have ended; the kernel tells it in ticks of 10 ms.
fn children_cpu() -> io::Result<Duration> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    // The name in parentheses may hold spaces; cutime and cstime are the 14th and 15th field after it.
    let fields = stat.rsplit(") ").next().unwrap_or_default().split(' ').skip(13).take(2);
    Ok(Duration::from_millis(fields.filter_map(|field| field.parse::<u64>().ok()).sum::<u64>() * 10))
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

fn measure(stage: &Stage<'_>, size: usize, bytes: u64) -> Result<(), Failure> {
    let megabytes = bytes as f64 / 1e6;
    println!("## {size} documents, {megabytes:.1} MB\n\n| what | CPU ms | wall ms |\n|---|---:|---:|");
    let row = |what: &str, cpu: f64, wall: f64| println!("| {what} | {cpu:.3} | {wall:.3} |");
    let build = ["context", "build", "--sources", "docs", "--cache", "caches/c"];
    let (cpu, wall, _) = stage.command(&build)?;
    row("build", milliseconds(cpu), milliseconds(wall));
    let built = milliseconds(cpu);
    let (cpu, wall, _) = stage.command(&[&build[..], &["--force"]].concat())?;
    row("build again, nothing changed", milliseconds(cpu), milliseconds(wall));
    let (cpu, wall, _) = stage.command(&["context", "verify", "--cache", "caches/c"])?;
    row("verify", milliseconds(cpu), milliseconds(wall));
    let expected = expected(stage)?;

    let cold = |is_kept: bool| -> Result<(f64, f64), Failure> {
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
        Ok((median(&cpu), median(&wall)))
    };
    let (cpu, wall) = cold(false)?;
    row("first answer of a new process, no index kept", cpu, wall);
    let (cold_cpu, wall) = cold(true)?;
    row("first answer of a new process, index kept", cold_cpu, wall);

    let mut server = stage.server()?;
    for query in 0..QUERIES.len() {
        server.check(query, &expected)?;
    }
    let idle = server.process.resident()? as f64 / 1024.0;
    println!(
        "\n| a process that runs | in flight | CPU ms/call | p50 ms | p99 ms | calls/s |\n|---|---:|---:|---:|---:|---:|"
    );
    let mut warm_cpu = f64::MAX;
    for in_flight in [1, 16] {
        let mut rounds = Vec::new();
        for _ in 0..stage.options.rounds {
            rounds.push(server.calls(stage.options.calls, in_flight, &expected)?);
        }
        let of = |pick: fn(&server::Round) -> f64| median(&rounds.iter().map(pick).collect::<Vec<_>>());
        let cpu = of(|round| round.cpu_ms);
        warm_cpu = if in_flight == 1 { cpu } else { warm_cpu };
        let (p50, p99, rate) = (of(|round| round.p50_ms), of(|round| round.p99_ms), of(|round| round.per_second));
        println!("| resolve | {in_flight} | {cpu:.4} | {p50:.3} | {p99:.3} | {rate:.0} |");
    }
    let cpu = server.search(stage.options.calls / 4)?;
    println!("| search | 1 | {cpu:.4} | | | |");
    let after = server.process.resident()? as f64 / 1024.0;
    println!("\nResident memory: {idle:.1} MB after {} calls, {after:.1} MB after all.\n", QUERIES.len());

    println!("| {size} documents | measured | target | holds |\n|---|---:|---:|---|");
    let promise = |what: &str, value: f64, target: f64| {
        let holds = if value <= target { "yes" } else { "no" };
        println!("| {what} | {value:.3} | ≤ {target} | {holds} |");
    };
    if size <= 10_000 {
        promise("build, CPU ms", built, 3000.0);
        promise("first answer of a new process, CPU ms", cold_cpu, 150.0);
        promise("resolve in a process that runs, CPU ms", warm_cpu, 1.0);
    }
    promise("resident memory ÷ corpus", after / megabytes, 3.0);
    println!();
    if size > 10_000 {
        // It would take an hour.
        return Ok(());
    }
    peer::compare(stage, size, &peer::Ours { cold: cold_cpu, warm: warm_cpu }, &expected)
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
