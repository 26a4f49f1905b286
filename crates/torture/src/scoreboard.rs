//! Writes the table of `docs/scoreboard.md` from what `torture run --json` printed.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::Value;
use torture::peers::{Evidence, known};

use crate::running::figures;

/// The table stands between these two lines.
const BEGIN: &str = "<!-- the table is written by `torture scoreboard` -->";
const END: &str = "<!-- end of the table -->";

#[derive(Args)]
pub(crate) struct Scoreboard {
    /// What `torture run --json` printed; of a row that occurs twice the last counts
    results: PathBuf,
    /// Replace the table in this file instead of printing it
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
}

impl Scoreboard {
    pub(crate) fn run(&self) -> ExitCode {
        match self.written() {
            Ok(()) => ExitCode::SUCCESS,
            Err(why) => {
                eprintln!("error: {why}");
                ExitCode::from(2)
            }
        }
    }

    fn written(&self) -> Result<(), String> {
        let failed = |path: &PathBuf, error: std::io::Error| format!("{}: {error}", path.display());
        let text = fs::read_to_string(&self.results).map_err(|error| failed(&self.results, error))?;
        let table = table(&text)?;
        let Some(path) = &self.write else {
            print!("{table}");
            return Ok(());
        };
        let old = fs::read_to_string(path).map_err(|error| failed(path, error))?;
        let (before, rest) = old.split_once(BEGIN).ok_or_else(|| format!("{} has no line {BEGIN}", path.display()))?;
        let (_, after) = rest.split_once(END).ok_or_else(|| format!("{} has no line {END}", path.display()))?;
        fs::write(path, format!("{before}{BEGIN}\n\n{table}\n{END}{after}")).map_err(|error| failed(path, error))
    }
}

fn table(results: &str) -> Result<String, String> {
    let mut rows: Vec<Value> = Vec::new();
    for line in results.lines().filter(|line| line.starts_with('{')) {
        let row: Value = serde_json::from_str(line).map_err(|error| format!("no result of a row: {error}"))?;
        rows.retain(|old| old["row"] != row["row"]);
        rows.push(row);
    }
    rows.sort_by_key(|row| row["row"].as_str().unwrap_or_default().to_owned());
    let mut text =
        "| row | what is done | measured (target) | | others | size, seeds, s |\n|---|---|---|---|---|---|\n"
            .to_owned();
    for row in &rows {
        let id = row["row"].as_str().unwrap_or_default();
        let others = known(id).map_or(String::new(), |(what, evidence)| match evidence {
            Evidence::Measured => what.to_owned(),
            Evidence::Read => format!("{what} *(read in source)*"),
        });
        let word = if row["pass"] == true { "pass" } else { "**FAIL**" };
        let seeds = row["seeds"].as_array().map_or(0, Vec::len);
        let _ = writeln!(
            text,
            "| {id} | {} | {} | {word} | {others} | {}, {seeds}, {} |",
            row["about"].as_str().unwrap_or_default(),
            told(row),
            row["size"].as_str().unwrap_or_default(),
            row["seconds"],
        );
    }
    Ok(text)
}

/// Every figure with its target, and for a row that failed what it said.
fn told(row: &Value) -> String {
    let mut all = figures(row);
    if row["pass"] != true {
        let notes = row["notes"].as_array().into_iter().flatten().filter_map(Value::as_str);
        all.extend(notes.map(|note| note.lines().next().unwrap_or_default().to_owned()));
    }
    all.join("; ").replace('|', "\\|")
}
