//! The other program that has version 0: asked the same, over the same pipes, from the cache that Rialto has built.

use std::{
    fmt::Write as _,
    fs, io,
    path::{Path, PathBuf},
};

use super::{QUERIES, Stage, milliseconds, server::Server};
use crate::{Failure, subject::peers, table::median};

pub const NAME: &str = "mcp-context-server 0.1.0";

/// Why there is nothing to compare with.
pub const NOT_THERE: &str = "not installed, or too slow for so many documents";

/// How to get it into the folder with the peers.
const INSTALL: &str = "cargo install --root DIR mcp-context-server@0.1.0 context-cli@0.1.0";

/// How many builds of each.
const BUILDS: usize = 3;

/// What Rialto needed for the same, in milliseconds of CPU time.
pub struct Ours {
    pub cold: f64,
    pub warm: f64,
}

/// What the peer needed, in milliseconds of CPU time.
pub struct Theirs {
    pub build: f64,
    pub cold: f64,
    pub warm: f64,
}

fn program(name: &str) -> PathBuf {
    peers().join("context/bin").join(name)
}

/// Writes both and their ratios, or how to install the peer.
pub fn compare(
    stage: &Stage<'_>,
    size: usize,
    ours: &Ours,
    expected: &[String],
    text: &mut String,
) -> Result<Option<Theirs>, Failure> {
    let (server, command) = (program("mcp-context-server"), program("context"));
    if !server.is_file() || !command.is_file() {
        let install = INSTALL.replace("DIR", &peers().join("context").display().to_string());
        let _ = writeln!(text, "{NAME} is not installed; `{install}`.\n");
        return Ok(None);
    }
    let [our_build, build] = builds(stage, &command)?;
    let resolve = ["resolve", "--cache", "caches/c", "--query", QUERIES[0], "--budget", &super::BUDGET.to_string()];
    let (cold, _, answer) = stage.run(&command, &resolve)?;
    if answer != expected[0].as_bytes() {
        return Err(format!("{NAME} prints another answer").into());
    }
    let theirs = Theirs { build, cold: milliseconds(cold), warm: calls(stage, &server, expected)? };
    let _ = writeln!(text, "| {size} documents, CPU ms | Rialto | {NAME} | times as much |\n|---|---:|---:|---:|");
    for (what, our, their) in [
        ("build", our_build, theirs.build),
        ("first answer of a new process", ours.cold, theirs.cold),
        ("resolve in a process that runs", ours.warm, theirs.warm),
    ] {
        let _ = writeln!(text, "| {what} | {our:.3} | {their:.0} | {:.1} |", their / our);
    }
    let _ = writeln!(text);
    Ok(Some(theirs))
}

/// CPU milliseconds of a build by Rialto and by the peer: medians of rounds in turn, each into a new folder, because what is
/// deleted costs whoever creates files next.
fn builds(stage: &Stage<'_>, command: &Path) -> Result<[f64; 2], Failure> {
    fs::create_dir_all(stage.folder.join("builds"))?;
    let mut times = [Vec::new(), Vec::new()];
    for round in 0..BUILDS {
        let (ours, theirs) = (format!("builds/ours{round}"), format!("builds/theirs{round}"));
        let (cpu, _, _) = stage.command(&["context", "build", "--sources", "docs", "--cache", &ours])?;
        times[0].push(milliseconds(cpu));
        let (cpu, _, _) = stage.run(command, &["build", "--sources", "docs", "--cache", &theirs])?;
        times[1].push(milliseconds(cpu));
    }
    Ok(times.map(|times| median(&times)))
}

/// CPU milliseconds of a call: the median over all queries, each asked once.
fn calls(stage: &Stage<'_>, server: &Path, expected: &[String]) -> io::Result<f64> {
    let root = format!("CONTEXT_CACHE_ROOT={}", stage.folder.join("caches").display());
    let mut server = Server::start(&[root, server.display().to_string()])?;
    let mut times = Vec::new();
    for query in 0..QUERIES.len() {
        // It works on threads that end when they have been idle for a while.
        let before = server.process.cpu_ticks()?;
        server.check(query, expected)?;
        times.push(milliseconds(server.process.cpu_ticks()? - before));
    }
    Ok(median(&times))
}
