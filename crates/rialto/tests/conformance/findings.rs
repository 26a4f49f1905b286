//! What the suite found, check by check.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// One check.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Check {
    pub(crate) id: String,
    pub(crate) status: String,
}

/// The checks of each scenario, and whether the suite was content.
#[derive(Debug)]
pub(crate) struct Findings {
    pub(crate) scenarios: BTreeMap<String, Vec<Check>>,
    is_content: bool,
    complaints: String,
    log: PathBuf,
}

/// The time at the end of a folder's name, as in `-2026-11-15T19-51-43-976Z`.
const TIME: usize = "-2026-11-15T19-51-43-976Z".len();

impl Findings {
    /// Reads the folder that the suite writes, with one folder for each scenario.
    pub(crate) fn read(folder: &Path, prefix: &str, is_content: bool, log: &Path) -> Self {
        let mut scenarios = BTreeMap::new();
        let mut complaints = String::new();
        let mut folders = vec![(folder.to_owned(), String::new())];
        // Names of scenarios may have slashes in them.
        while let Some((folder, above)) = folders.pop() {
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                let name = format!("{above}{}", entry.file_name().to_string_lossy());
                let Ok(text) = fs::read(entry.path().join("checks.json")) else {
                    folders.push((entry.path(), format!("{name}/")));
                    continue;
                };
                let name = name.strip_prefix(prefix).unwrap_or(&name);
                let scenario = name[..name.len().saturating_sub(TIME)].to_owned();
                let checks: Vec<Value> = serde_json::from_slice(&text).expect("checks are a list");
                for check in &checks {
                    if ["FAILURE", "WARNING"].iter().any(|bad| check["status"] == *bad) {
                        let _ = writeln!(
                            complaints,
                            "{scenario}: {} {}: {}",
                            check["id"], check["status"], check["errorMessage"]
                        );
                    }
                }
                let word = |check: &Value, key: &str| check[key].as_str().unwrap_or_default().to_owned();
                let checks = checks.iter().map(|check| Check { id: word(check, "id"), status: word(check, "status") });
                scenarios.insert(scenario, checks.collect());
            }
        }
        Self { scenarios, is_content, complaints, log: log.to_owned() }
    }

    /// Fails unless nothing was found wrong, in exactly as many scenarios and checks as there are.
    pub(crate) fn expect(&self, scenarios: usize, checks: usize) {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<_> = log.lines().collect();
        let tail = lines[lines.len().saturating_sub(30)..].join("\n");
        assert!(self.complaints.is_empty(), "the suite complains:\n{}", self.complaints);
        assert!(self.is_content, "the suite is not content:\n{tail}");
        assert_eq!(self.scenarios.len(), scenarios, "scenarios that were run:\n{tail}");
        assert_eq!(self.passed(), checks, "checks that passed:\n{tail}");
    }

    pub(crate) fn passed(&self) -> usize {
        self.scenarios.values().flatten().filter(|check| check.status == "SUCCESS").count()
    }

    /// Fails unless a check of a scenario passed.
    pub(crate) fn expect_passed(&self, scenario: &str, check: &str) {
        let checks = self.scenarios.get(scenario).map_or(&[][..], Vec::as_slice);
        let has_passed = checks.iter().any(|found| found.id == check && found.status == "SUCCESS");
        assert!(has_passed, "{scenario}: {check} has not passed: {checks:?}");
    }

    /// Where two runs differ, one line for each place. What merely happened on the way is left out.
    pub(crate) fn differences(&self, other: &Self) -> String {
        let mut found = String::new();
        let names: std::collections::BTreeSet<_> = self.scenarios.keys().chain(other.scenarios.keys()).collect();
        for name in names {
            let (ours, theirs) = (verdicts(self, name), verdicts(other, name));
            if ours != theirs {
                let _ = writeln!(found, "{name}\n    directly: {ours:?}\n    through:  {theirs:?}");
            }
        }
        if !found.is_empty() {
            found = format!("{found}{}{}", self.complaints, other.complaints);
        }
        found
    }
}

/// Whether an answer without notifications comes as a stream or as JSON is for each server to choose, and so for the gateway.
/// The suite checks the stream if there is one.
const CHOICE: &str = "server-sse-streams-functional";

fn verdicts(findings: &Findings, scenario: &str) -> Option<Vec<Check>> {
    let checks = findings.scenarios.get(scenario)?.iter();
    let checks = checks.filter(|check| check.status != "INFO" && check.id != CHOICE);
    let mut checks: Vec<_> = checks.cloned().collect();
    checks.sort();
    Some(checks)
}
