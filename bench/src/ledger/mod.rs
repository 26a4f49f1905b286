//! Measures the ledger: paid jobs per second with durable commits, beside what the disk can do in the same minute, and
//! whether a job costs more when there are many.

mod disk;
mod fill;
mod job;

use std::{
    env, fs,
    path::{Path, PathBuf},
    process,
    sync::Arc,
    time::{Duration, Instant},
};

use rialto_ledger::{ledger::Ledger, sqlite::Sqlite};
use tokio::sync::Semaphore;

use crate::{Failure, process::cpu, table::machine};

const USAGE: &str = "\
usage: rialto-bench ledger [--quick] [--rounds N] [--directory PATH]

  --quick           few jobs, to see that everything works
  --rounds N        rounds over everything (3)
  --directory PATH  on the disk that is measured (the system's folder for temporary files)";

/// Jobs at once, and how many are measured.
const FLIGHTS: [(usize, u64); 3] = [(1, 150), (16, 1500), (64, 4000)];

/// Jobs that are there already.
const SIZES: [u64; 3] = [0, 100_000, 1_000_000];

/// Steps that a job takes.
const STEPS: f64 = 5.0;

struct Options {
    rounds: usize,
    /// A tenth of everything.
    quick: bool,
    directory: PathBuf,
}

fn options(mut arguments: impl Iterator<Item = String>) -> Result<Options, Failure> {
    let mut options = Options { rounds: 3, quick: false, directory: env::temp_dir() };
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
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    println!("{}; load {}; {} rounds, the worst of them.\n", machine(), load(), options.rounds);
    runtime.block_on(speed(&options))?;
    runtime.block_on(growth(&options))?;
    println!("Load at the end: {}.", load());
    Ok(())
}

async fn speed(options: &Options) -> Result<(), Failure> {
    let less = if options.quick { 10 } else { 1 };
    let (mut syncs, mut commits, mut next) = (Vec::new(), Vec::new(), 0);
    let mut rows: Vec<(String, Vec<f64>, Vec<f64>, Vec<f64>)> = Vec::new();
    let ways = FLIGHTS.map(|(flight, jobs)| (flight, jobs, Way::Grouped)).into_iter().chain([(64, 300, Way::OneByOne)]);
    let ways: Vec<_> = ways.collect();
    for _ in 0..options.rounds {
        let folder = Folder::new(&options.directory)?;
        let second = Duration::from_secs(2) / less;
        syncs.push(disk::syncs(&folder.0, second)?);
        commits.push(disk::commits(&folder.0, second)?);
        let single = commits[commits.len() - 1];
        let ledger: Arc<dyn Ledger> = Arc::new(Sqlite::open(&folder.0.join("ledger"))?);
        for (index, (flight, jobs, way)) in ways.iter().enumerate() {
            let jobs = jobs / u64::from(less);
            let cost = drive(&ledger, next, jobs, *flight, *way).await?;
            next += jobs;
            if rows.len() == index {
                let name = if *way == Way::Grouped { "Rialto" } else { "one transaction per step" };
                rows.push((format!("{name} | {flight}"), Vec::new(), Vec::new(), Vec::new()));
            }
            rows[index].1.push(cost.per_second);
            rows[index].2.push(cost.per_second / single);
            rows[index].3.push(cost.cpu_us);
        }
    }
    println!("The disk: {:.0} fdatasync/s, {:.0} single SQLite commits/s.\n", worst(&syncs), worst(&commits));
    println!(
        "| | jobs in flight | paid jobs/s | durable steps/s | jobs ÷ single commits of the same round | CPU µs/job |"
    );
    println!("|---|---:|---:|---:|---:|---:|");
    for (name, speed, ratio, cpu) in &rows {
        let (speed, ratio, cpu) = (worst(speed), worst(ratio), most(cpu));
        println!("| {name} | {speed:.0} | {:.0} | {ratio:.2} | {cpu:.0} |", speed * STEPS);
    }
    // 500 jobs/s where the disk does 344 single commits/s.
    let (ratio, target) = (worst(&rows[2].2), 500.0 / 344.0);
    let holds = if ratio >= target { "yes" } else { "no" };
    println!("\n| 64 in flight | measured | target | holds |\n|---|---:|---:|---|");
    println!("| jobs ÷ single commits | {ratio:.2} | ≥ {target:.2} | {holds} |\n");
    Ok(())
}

async fn growth(options: &Options) -> Result<(), Failure> {
    let less = if options.quick { 10 } else { 1 };
    println!(
        "| jobs in the ledger | file MB | CPU µs/job | bytes written/job | paid jobs/s |\n|---:|---:|---:|---:|---:|"
    );
    let folder = Folder::new(&options.directory)?;
    let directory = folder.0.join("ledger");
    let mut there = 0;
    for size in SIZES {
        let size = size / less;
        drop(Sqlite::open(&directory)?);
        fill::fill(&directory, there, size)?;
        there = size;
        let ledger: Arc<dyn Ledger> = Arc::new(Sqlite::open(&directory)?);
        let (mut cpu, mut bytes, mut speed) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..options.rounds as u64 {
            let jobs = 4000 / less;
            let from = (size + 1) * 1_000_000 + round * jobs;
            let cost = drive(&ledger, from, jobs, 64, Way::Grouped).await?;
            cpu.push(cost.cpu_us);
            bytes.push(cost.written);
            speed.push(cost.per_second);
        }
        let file = fs::metadata(rialto_ledger::sqlite::file(&directory))?.len() as f64 / 1e6;
        println!("| {size} | {file:.0} | {:.0} | {:.0} | {:.0} |", most(&cpu), most(&bytes), worst(&speed));
    }
    println!();
    Ok(())
}
