//! The other program that has version 0: asked the same, over the same pipes, from the cache that Rialto has built.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::{QUERIES, Stage, milliseconds, server::Server};
use crate::{Failure, subject::peers, table::median};

const NAME: &str = "mcp-context-server 0.1.0";

/// How to get it into the folder with the peers.
const INSTALL: &str = "cargo install --root DIR mcp-context-server@0.1.0 context-cli@0.1.0";

/// How many builds of each.
const BUILDS: usize = 3;

/// What Rialto needed for the same, in milliseconds of CPU time.
pub struct Ours {
    pub cold: f64,
    pub warm: f64,
}

fn program(name: &str) -> PathBuf {
    peers().join("context/bin").join(name)
}

/// Prints both and their ratios, or how to install the peer.
pub fn compare(stage: &Stage<'_>, size: usize, ours: &Ours, expected: &[String]) -> Result<(), Failure> {
    let (server, command) = (program("mcp-context-server"), program("context"));
    if !server.is_file() || !command.is_file() {
        let place = peers().join("context");
        println!("{NAME} is not installed; `{}`.\n", INSTALL.replace("DIR", &place.display().to_string()));
        return Ok(());
    }
    let [our_build, their_build] = builds(stage, &command)?;
    let resolve = ["resolve", "--cache", "caches/c", "--query", QUERIES[0], "--budget", &super::BUDGET.to_string()];
    let (cold, _, answer) = stage.run(&command, &resolve)?;
    if answer != expected[0].as_bytes() {
        return Err(format!("{NAME} prints another answer").into());
    }
    let warm = calls(stage, &server, expected)?;
    println!("| {size} documents, CPU ms | Rialto | {NAME} | times as much |\n|---|---:|---:|---:|");
    for (what, our, their) in [
        ("build", our_build, their_build),
        ("first answer of a new process", ours.cold, milliseconds(cold)),
        ("resolve in a process that runs", ours.warm, warm),
    ] {
        println!("| {what} | {our:.3} | {their:.0} | {:.1} |", their / our);
    }
    println!();
    Ok(())
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
