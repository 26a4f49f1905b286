//! Runs rows, each in a process of its own, and prints what they measured.

use std::collections::VecDeque;
use std::panic::catch_unwind;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::time::Instant;

use clap::Args;
use serde_json::{Map, Value, json};
use torture::PROGRAM;
use torture::rows::{Row, Setting, Size, select};
use torture::score::Score;
use torture::several::words;

/// Set for the process of one row.
const INSIDE: &str = "TORTURE_INSIDE";

#[derive(Args)]
pub(crate) struct Run {
    /// The rows, as `torture list` names them; `all` for every one
    #[arg(required = true)]
    rows: Vec<String>,
    /// Include rows that need minutes
    #[arg(long)]
    long: bool,
    /// As much as the scoreboard says, not only what fits into every test run
    #[arg(long)]
    full: bool,
    /// Where all chance begins
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Run each row with so many seeds, and show the worst
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,
    /// Rows that run at the same time
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// One JSON object for each row
    #[arg(long)]
    json: bool,
    /// The program to torment; built from this repository when absent
    #[arg(long, value_name = "FILE")]
    rialto: Option<String>,
}

impl Run {
    pub(crate) fn run(self) -> ExitCode {
        match self.results() {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::FAILURE,
            Err(why) => {
                eprintln!("error: {why}");
                ExitCode::from(2)
            }
        }
    }

    fn results(&self) -> Result<bool, String> {
        let rows = select(&self.rows, self.long)?;
        if std::env::var_os(INSIDE).is_some() {
            for row in rows {
                println!("{}", json!(self.inside(&row)));
            }
            return Ok(true);
        }
        let program = match &self.rialto {
            Some(path) => path.clone(),
            None => build()?,
        };
        let begun = Instant::now();
        let (alone, together): (Vec<Row>, Vec<Row>) = rows.into_iter().partition(|row| row.is_alone);
        let results = Mutex::new(Vec::new());
        let all = Mutex::new(VecDeque::from(together));
        std::thread::scope(|scope| {
            for _ in 0..self.jobs.max(1) {
                scope.spawn(|| {
                    loop {
                        let Some(row) = take(&all) else { return };
                        self.one(&row, &program, &results);
                    }
                });
            }
        });
        alone.iter().for_each(|row| self.one(row, &program, &results));
        let results = results.into_inner().unwrap_or_default();
        let failed: Vec<&str> = results.iter().filter(|(_, passed)| !passed).map(|(id, _)| *id).collect();
        eprintln!(
            "{} of {} rows passed in {:.0} s{}",
            results.len() - failed.len(),
            results.len(),
            begun.elapsed().as_secs_f64(),
            if failed.is_empty() { String::new() } else { format!("; failed: {}", failed.join(", ")) }
        );
        Ok(failed.is_empty())
    }

    /// Runs one row with every seed, and prints the worst.
    fn one(&self, row: &Row, program: &str, results: &Mutex<Vec<(&'static str, bool)>>) {
        let begun = Instant::now();
        let mut score = Score::default();
        let mut failed = Vec::new();
        for seed in self.seed..self.seed + self.seeds {
            let new = self.outside(row, program, seed);
            if !new.passes() {
                failed.push(seed);
            }
            score.merge(new);
        }
        let passed = failed.is_empty();
        let seconds = (begun.elapsed().as_secs_f64() * 10.0).round() / 10.0;
        let mut result = score.json();
        result.insert("row".into(), row.id.into());
        result.insert("about".into(), row.about.into());
        result.insert("pass".into(), passed.into());
        result.insert("seeds".into(), (self.seed..self.seed + self.seeds).collect::<Vec<_>>().into());
        result.insert("size".into(), if self.full { "full" } else { "quick" }.into());
        result.insert("seconds".into(), json!(seconds));
        if !passed {
            result.insert("failed_seeds".into(), failed.into());
        }
        let result = Value::from(result);
        println!("{}", if self.json { result.to_string() } else { readable(row, &result) });
        if let Ok(mut results) = results.lock() {
            results.push((row.id, passed));
        }
    }

    /// Runs one row in a process of its own.
    fn outside(&self, row: &Row, program: &str, seed: u64) -> Score {
        self.child(row, program, seed).unwrap_or_else(|why| {
            let mut score = Score::default();
            score.note(why);
            score
        })
    }

    fn child(&self, row: &Row, program: &str, seed: u64) -> Result<Score, String> {
        let own = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut command = Command::new(own);
        command.args(["run", row.id, "--seed", &seed.to_string(), "--rialto", program]).env(INSIDE, "1");
        command.env(PROGRAM, program).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if self.full {
            command.arg("--full");
        }
        let child = command.spawn().map_err(|error| error.to_string())?;
        let id = child.id();
        let (done, is_done) = std::sync::mpsc::channel();
        std::thread::spawn(move || done.send(child.wait_with_output()));
        let output = match is_done.recv_timeout(row.limit) {
            Ok(output) => output.map_err(|error| error.to_string())?,
            Err(_) => {
                let _ = Command::new("kill").args(["-9", &id.to_string()]).status();
                return Err(format!("not finished after {} minutes", row.limit.as_secs() / 60));
            }
        };
        let text = String::from_utf8_lossy(&output.stdout);
        let score = text.lines().last().and_then(|line| serde_json::from_str(line).ok());
        score.ok_or_else(|| {
            let said = String::from_utf8_lossy(&output.stderr);
            let last: Vec<&str> = said.lines().rev().take(30).collect();
            format!("it ended with {}: {}", output.status, last.into_iter().rev().collect::<Vec<_>>().join("\n"))
        })
    }

    /// The experiment itself.
    fn inside(&self, row: &Row) -> Score {
        let setting = Setting { seed: self.seed, size: if self.full { Size::Full } else { Size::Quick } };
        let run = row.run;
        catch_unwind(|| run(setting)).unwrap_or_else(|panic| {
            let mut score = Score::default();
            score.note(words(&*panic));
            score
        })
    }
}

fn take(all: &Mutex<VecDeque<Row>>) -> Option<Row> {
    all.lock().ok()?.pop_front()
}

/// Builds the program with the profile that this one was built with; gives its path.
fn build() -> Result<String, String> {
    eprintln!("building rialto");
    let mut command = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()));
    command.args(["build", "--quiet", "-p", "rialto", "--message-format=json"]);
    if !cfg!(debug_assertions) {
        command.arg("--release");
    }
    let output = command.stderr(Stdio::inherit()).output().map_err(|error| format!("cargo cannot be run: {error}"))?;
    if !output.status.success() {
        return Err("rialto cannot be built".to_owned());
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let messages = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut programs = messages.filter_map(|message| message["executable"].as_str().map(str::to_owned));
    programs.next_back().ok_or_else(|| "cargo named no program; run this inside the repository".to_owned())
}

/// Every figure with its target.
pub(crate) fn figures(result: &Value) -> Vec<String> {
    let empty = Map::new();
    let values = result["value"].as_object().unwrap_or(&empty);
    let bare = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let shown = |(name, value): (&String, &Value)| match &result["target"][name] {
        Value::Null => format!("{name} {}", bare(value)),
        target => format!("{name} {} ({})", bare(value), bare(target)),
    };
    values.iter().map(shown).collect()
}

/// One line of figures, and what else there is to say.
fn readable(row: &Row, result: &Value) -> String {
    let word = if result["pass"] == true { "pass" } else { "FAIL" };
    let mut text =
        format!("{word} {:<5} {} [{} s]\n       {}", row.id, row.about, result["seconds"], figures(result).join(", "));
    if let Some(seeds) = result.get("failed_seeds") {
        text.push_str(&format!("\n       failed with the seeds {seeds}"));
    }
    for note in result["notes"].as_array().into_iter().flatten() {
        text.push_str(&format!("\n       {}", note.as_str().unwrap_or_default().replace('\n', "\n       ")));
    }
    text
}
