//! This test program once more, as a process that can be killed, stopped and starved.
//!
//! What it is told comes in lines on its standard input, what it has to say goes in lines to its standard output; the harness
//! says things there too, and they are not listened to.

use crate::{sqlite_only, workers};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdout, Command, Stdio};

const ROLE: &str = "RIALTO_LEDGER_CHILD";

/// What we say begins like this.
const OURS: &str = "> ";

pub(crate) struct Process {
    child: Child,
    lines: BufReader<ChildStdout>,
}

/// Ends with its parent's test, whatever happens.
impl Drop for Process {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Process {
    pub(crate) fn start(role: &str, arguments: &[&str]) -> Self {
        // A file that may not grow is an error then, not the end.
        let mut command = Command::new("sh");
        command.args(["-c", "trap '' XFSZ; exec \"$@\"", "sh"]).arg(std::env::current_exe().unwrap());
        command.args(["--exact", "child::act", "--ignored", "--nocapture", "--test-threads=1"]);
        command.env(ROLE, format!("{role}\n{}", arguments.join("\n")));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    pub(crate) fn tell(&mut self, line: &str) {
        // It may have been killed.
        drop(writeln!(self.child.stdin.as_ref().unwrap(), "{line}"));
    }

    /// Nothing more will be told.
    pub(crate) fn hang_up(&mut self) {
        self.child.stdin = None;
    }

    /// The next line of its; `None` when it is gone.
    pub(crate) fn hear(&mut self) -> Option<String> {
        loop {
            let mut line = String::new();
            if self.lines.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            // The harness does not end its own line before ours.
            if let Some((_, ours)) = line.split_once(OURS)
                && line.ends_with('\n')
            {
                return Some(ours.trim_end().to_owned());
            }
        }
    }

    /// Kills it where it stands, and gives what it still had said.
    pub(crate) fn kill(mut self) -> Vec<String> {
        self.signal(Signal::KILL);
        std::iter::from_fn(|| self.hear()).collect()
    }
}

pub(crate) fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // If nobody listens any more there is nothing left to do.
    if out.write_all(format!("{OURS}{line}\n").as_bytes()).and_then(|()| out.flush()).is_err() {
        std::process::exit(0);
    }
}

#[test]
#[ignore = "only of use to the tests that start it"]
fn act() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let words: Vec<&str> = role.lines().collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    match words.as_slice() {
        ["writer", directory, from] => runtime.block_on(sqlite_only::write_for_ever(directory, from.parse().unwrap())),
        ["holder", directory] => sqlite_only::hold(directory),
        ["worker", address, log] => runtime.block_on(workers::work(address, log)),
        ["slow worker", address] => runtime.block_on(workers::work_slowly(address)),
        _ => panic!("an unknown role"),
    }
}
