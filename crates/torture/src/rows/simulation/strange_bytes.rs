//! R29: everything that reads what strangers send, fuzzed with `fuzz/run`.

use crate::rows::{Row, Setting};
use crate::score::Score;
use std::path::Path;
use std::process::{Command, Stdio};

pub(super) const ROW: Row = Row::new("R29", "coverage-guided fuzzing of every reader of strangers' bytes", run).long();

/// What the targets are made from.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz");

fn run(setting: Setting) -> Score {
    let folder = Path::new(FOLDER);
    let targets = std::fs::read_dir(folder.join("targets")).expect("the repository is there").count();
    let seconds: u32 = setting.choose(30, 3_600);
    let mut command = Command::new(folder.join("run"));
    let output = command.arg(seconds.to_string()).stdin(Stdio::null()).output().expect("fuzz/run can be started");
    let said = String::from_utf8_lossy(&output.stdout);
    let mut score = Score::default();
    let (mut done, mut inputs, mut corpus, mut crashes) = (0_usize, 0_u64, 0_u64, 0_usize);
    for line in said.lines() {
        let words: Vec<&str> = line.split([' ', ',']).filter(|word| !word.is_empty()).collect();
        match words.as_slice() {
            ["fuzz", _, tried, "inputs", .., "corpus", kept] => {
                done += 1;
                inputs += tried.parse::<u64>().unwrap_or(0);
                corpus += kept.parse::<u64>().unwrap_or(0);
            }
            ["fuzz", _, "crashed"] => crashes += 1,
            _ => {}
        }
    }
    score.none("crashes", crashes);
    score.exactly("targets", done, targets);
    score.tell("seconds each", f64::from(seconds));
    score.tell("inputs tried", inputs);
    score.tell("corpus", corpus);
    if !output.status.success() || done < targets {
        let lines: Vec<&str> = said.lines().collect();
        score.note(lines[lines.len().saturating_sub(60)..].join("\n"));
        score.note(String::from_utf8_lossy(&output.stderr).lines().rev().take(20).collect::<Vec<_>>().join("\n"));
    }
    score
}
