//! Runs the suite and reads what it has written down.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::findings::Findings;
use crate::peers::Peers;

/// What the suite is asked to run.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Selection {
    /// Every scenario that applies to a version.
    Everything(&'static str),
    /// What conformance to a version means, and the extensions beside.
    Requirements(&'static str),
}

impl Selection {
    fn arguments(self) -> Vec<&'static str> {
        match self {
            Self::Everything(version) => vec!["--suite", "all", "--spec-version", version],
            Self::Requirements(version) => vec!["--requirements", version],
        }
    }
}

fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("conformance").join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("the build directory is writable");
    folder
}

/// Runs one part of the suite against a server.
pub(crate) fn run(peers: &Peers, name: &str, url: &str, selection: Selection) -> Findings {
    let arguments = [&["server", "--url", url][..], &selection.arguments()].concat();
    run_with(peers, name, &arguments, "server-")
}

/// The same, against a client that is started for each scenario.
pub(crate) fn run_client(peers: &Peers, name: &str, command: &str, selection: Selection) -> Findings {
    let arguments = [&["client", "--command", command][..], &selection.arguments()].concat();
    run_with(peers, name, &arguments, "")
}

fn run_with(peers: &Peers, name: &str, arguments: &[&str], prefix: &str) -> Findings {
    let folder = scratch(name);
    let log = folder.join("log");
    let expected = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance/expected-failures.yml");
    let suite = peers.conformance_suite();
    let output = File::create(&log).expect("the build directory is writable");
    let status = Command::new(&suite[0])
        .args(&suite[1..])
        .args(arguments)
        .arg("--expected-failures")
        .arg(expected)
        .arg("-o")
        .arg(folder.join("out"))
        .env_remove("MCP_PEERS")
        .stdin(Stdio::null())
        .stderr(output.try_clone().expect("a file can be shared"))
        .stdout(output)
        .status()
        .unwrap_or_else(|error| panic!("{name}: {} cannot be started: {error}", suite[0]));
    Findings::read(&folder.join("out"), prefix, status.success(), &log)
}
