//! Measures the ledger: paid jobs per second with durable commits, beside what the disk can do in the same minute, and
//! whether a job costs more when there are many.

mod disk;
mod fill;
mod job;

use std::{
    env,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process,
    sync::Arc,
    time::{Duration, Instant},
};

use rialto_ledger::{ledger::Ledger, sqlite::Sqlite};
use tokio::sync::Semaphore;

use crate::{
    Failure,
    process::cpu,
    row::{self, Kind, Report, Row, Target},
    table::machine,
};

const USAGE: &str = "\
usage: rialto-bench ledger [--quick] [--rounds N] [--directory PATH]

  --quick           few jobs, to see that everything works
  --rounds N        rounds over everything (3)
  --directory PATH  on the disk that is measured (the system's folder for temporary files)";

/// Jobs at once, and how many are measured.
const FLIGHTS: [(usize, u64); 3] = [(1, 150), (16, 1500), (64, 4000)];

/// Jobs that are there already.
const SIZES: [u64; 3] = [0, 100_000, 1_000_000];

/// The same code when it is given one step at a time, which is what programs without group commit do.
const ONE_BY_ONE: &str = "one transaction per step";

/// Steps that a job takes.
const STEPS: f64 = 5.0;

pub struct Options {
    pub rounds: usize,
    /// A tenth of everything.
    pub quick: bool,
    directory: PathBuf,
}

impl Options {
    pub fn new(quick: bool) -> Self {
        Self { rounds: 3, quick, directory: env::temp_dir() }
    }

    /// By what everything is divided.
    fn less(&self) -> u64 {
        if self.quick { 10 } else { 1 }
    }
}

fn options(mut arguments: impl Iterator<Item = String>) -> Result<Options, Failure> {
    let mut options = Options::new(false);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value\n\n{USAGE}"));
        match argument.as_str() {
            "--quick" => options.quick = true,
            "--rounds" => options.rounds = value()?.parse()?,
            "--directory" => options.directory = value()?.into(),
            _ => return Err(format!("unknown argument {argument}\n\n{USAGE}").into()),
        }
    }
    Ok(options)
}

/// Whether a transaction may hold the steps of several jobs.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Grouped,
    /// What is usually done: each step is a transaction of its own.
    OneByOne,
}

struct Cost {
    per_second: f64,
    cpu_us: f64,
    written: f64,
}

/// Takes `jobs` jobs from the request to the answer, `flight` at once.
async fn drive(ledger: &Arc<dyn Ledger>, from: u64, jobs: u64, flight: usize, way: Way) -> Result<Cost, Failure> {
    let permits = Arc::new(Semaphore::new(if way == Way::OneByOne { 1 } else { flight.max(1) }));
    let (cpu_before, written_before) = (cpu(process::id())?, written()?);
    let start = Instant::now();
    let mut workers = Vec::new();
    for worker in 0..flight as u64 {
        let (ledger, permits) = (ledger.clone(), permits.clone());
        workers.push(tokio::spawn(async move {
            let mut number = from + worker;
            while number < from + jobs {
                job::run(&*ledger, number, &permits).await?;
                number += flight as u64;
            }
            Ok::<_, String>(())
        }));
    }
    for worker in workers {
        worker.await??;
    }
    let took = start.elapsed();
    let cpu = cpu(process::id())?.saturating_sub(cpu_before);
    Ok(Cost {
        per_second: jobs as f64 / took.as_secs_f64(),
        cpu_us: cpu.as_secs_f64() * 1e6 / jobs as f64,
        written: (written()? - written_before) as f64 / jobs as f64,
    })
}

/// Bytes that this process had the disk write.
fn written() -> Result<u64, Failure> {
    let text = fs::read_to_string("/proc/self/io")?;
    let line = text.lines().find_map(|line| line.strip_prefix("write_bytes: ")).ok_or("no write_bytes")?;
    Ok(line.trim().parse()?)
}

fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or_default().to_owned()
}

fn worst(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

fn most(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

/// A folder of its own, gone afterwards.
struct Folder(PathBuf);

impl Folder {
    fn new(above: &Path) -> Result<Self, Failure> {
        let path = above.join(format!("rialto-bench-ledger-{}", process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub fn run(arguments: impl Iterator<Item = String>) -> Result<(), Failure> {
    let options = options(arguments)?;
    let sizes = SIZES.map(|size| size / options.less());
    let mut report = report(&options)?;
    growth(&mut report.text, &grown(&options, &sizes)?);
    println!("{}Load at the end: {}.", report.text, load());
    Ok(())
}

/// The ledger beside its disk.
pub fn report(options: &Options) -> Result<Report, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let rounds = options.rounds;
    let mut text = format!("{}; load {}; {rounds} rounds, the worst of them.\n\n", machine(), load());
    let rows = runtime.block_on(speed(options, &mut text))?;
    let _ = writeln!(text, "\n{}", row::markdown(&rows));
    Ok(Report { text, rows })
}

/// One line of the first table, with a figure for each round.
#[derive(Default)]
struct Line {
    name: String,
    speed: Vec<f64>,
    ratio: Vec<f64>,
    cpu: Vec<f64>,
}

async fn speed(options: &Options, text: &mut String) -> Result<Vec<Row>, Failure> {
    let (mut syncs, mut commits, mut next) = (Vec::new(), Vec::new(), 0);
    let ways = FLIGHTS.map(|(flight, jobs)| (flight, jobs, Way::Grouped)).into_iter().chain([(64, 300, Way::OneByOne)]);
    let ways: Vec<_> = ways.collect();
    let name = |way| if way == Way::Grouped { "Rialto" } else { ONE_BY_ONE };
    let lines = ways.iter().map(|(flight, _, way)| format!("{} | {flight}", name(*way)));
    let mut lines: Vec<_> = lines.map(|name| Line { name, ..Line::default() }).collect();
    for round in 1..=options.rounds {
        eprint!("\rround {round}/{}: ledger{:40}", options.rounds, "");
        let folder = Folder::new(&options.directory)?;
        let time = Duration::from_secs(2) / u32::try_from(options.less())?;
        syncs.push(disk::syncs(&folder.0, time)?);
        let ledger: Arc<dyn Ledger> = Arc::new(Sqlite::open(&folder.0.join("ledger"))?);
        for (line, (flight, jobs, way)) in lines.iter_mut().zip(&ways) {
            let jobs = jobs / options.less();
            // The disk changes from second to second: it is asked right before and right after.
            let before = disk::commits(&folder.0, time / 2)?;
            let cost = drive(&ledger, next, jobs, *flight, *way).await?;
            let single = f64::midpoint(before, disk::commits(&folder.0, time / 2)?);
            next += jobs;
            commits.push(single);
            line.speed.push(cost.per_second);
            line.ratio.push(cost.per_second / single);
            line.cpu.push(cost.cpu_us);
        }
    }
    eprint!("\r{:60}\r", "");
    let _ =
        writeln!(text, "The disk: {:.0} fdatasync/s, {:.0} single SQLite commits/s.\n", worst(&syncs), worst(&commits));
    let columns = "paid jobs/s | durable steps/s | jobs ÷ single commits of the same moment | CPU µs/job";
    let _ = writeln!(text, "| | jobs in flight | {columns} |\n|---|---:|---:|---:|---:|---:|");
    for Line { name, speed, ratio, cpu } in &lines {
        let (speed, ratio, cpu) = (worst(speed), worst(ratio), most(cpu));
        let _ = writeln!(text, "| {name} | {speed:.0} | {:.0} | {ratio:.2} | {cpu:.0} |", speed * STEPS);
    }
    let (ours, single) = (&lines[2], &lines[3]);
    let row = |what, kind, pick: fn(&Line) -> &[f64]| {
        let row = Row::new("ledger", what, kind, Ok(pick(ours).to_vec()));
        row.against([(ONE_BY_ONE, Ok(pick(single).to_vec()))])
    };
    let ratio =
        Row::new("ledger", "jobs ÷ single commits of the disk, 64 in flight", Kind::Wall, Ok(ours.ratio.clone()));
    Ok(vec![
        row("CPU µs/job of five durable steps, 64 in flight", Kind::Cpu, |line| &line.cpu).target(Target::Ratio(0.5)),
        row("paid jobs/s, 64 in flight", Kind::Wall, |line| &line.speed).target(Target::AtLeast(500.0)),
        // 500 jobs/s where the disk does 344 single commits/s.
        ratio.target(Target::AtLeast(500.0 / 344.0)),
    ])
}

/// CPU µs of what a provider notes of a call that costs nothing, with 64 calls at once.
pub async fn free_job() -> Result<f64, Failure> {
    let folder = Folder::new(&env::temp_dir())?;
    let ledger = Sqlite::open(&folder.0.join("ledger"))?;
    let (turns, warm_up, together) = (100, 10, 64);
    let mut before = Duration::ZERO;
    for turn in 0..warm_up + turns {
        if turn == warm_up {
            before = cpu(process::id())?;
        }
        let numbers = turn * together..(turn + 1) * together;
        let (begun, done): (Vec<_>, Vec<_>) = numbers.map(job::free_steps).map(<(_, _)>::from).unzip();
        let ids = done.iter().map(|step| step.id).collect();
        ledger.commit(begun).await?;
        ledger.commit(done).await?;
        ledger.sent(ids).await?;
    }
    Ok((cpu(process::id())? - before).as_secs_f64() * 1e6 / (turns * together) as f64)
}

/// What a job costs when so many are there already: a figure for each round.
pub struct Grown {
    pub size: u64,
    file_mb: f64,
    pub cpu_us: Vec<f64>,
    bytes: Vec<f64>,
    speed: Vec<f64>,
}

pub fn grown(options: &Options, sizes: &[u64]) -> Result<Vec<Grown>, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let folder = Folder::new(&options.directory)?;
    let directory = folder.0.join("ledger");
    let mut there = 0;
    let mut all = Vec::new();
    for &size in sizes {
        eprint!("\rledger with {size} jobs{:40}", "");
        drop(Sqlite::open(&directory)?);
        fill::fill(&directory, there, size)?;
        there = size;
        let ledger: Arc<dyn Ledger> = Arc::new(Sqlite::open(&directory)?);
        let mut grown = Grown { size, file_mb: 0.0, cpu_us: Vec::new(), bytes: Vec::new(), speed: Vec::new() };
        for round in 0..options.rounds as u64 {
            let jobs = 4000 / options.less();
            let from = (size + 1) * 1_000_000 + round * jobs;
            let cost = runtime.block_on(drive(&ledger, from, jobs, 64, Way::Grouped))?;
            grown.cpu_us.push(cost.cpu_us);
            grown.bytes.push(cost.written);
            grown.speed.push(cost.per_second);
        }
        grown.file_mb = fs::metadata(rialto_ledger::sqlite::file(&directory))?.len() as f64 / 1e6;
        all.push(grown);
    }
    eprint!("\r{:60}\r", "");
    Ok(all)
}

fn growth(text: &mut String, all: &[Grown]) {
    let columns = "file MB | CPU µs/job | bytes written/job | paid jobs/s";
    let _ = writeln!(text, "| jobs in the ledger | {columns} |\n|---:|---:|---:|---:|---:|");
    for Grown { size, file_mb, cpu_us, bytes, speed } in all {
        let (cpu, bytes, speed) = (most(cpu_us), most(bytes), worst(speed));
        let _ = writeln!(text, "| {size} | {file_mb:.0} | {cpu:.0} | {bytes:.0} | {speed:.0} |");
    }
    let _ = writeln!(text);
}
