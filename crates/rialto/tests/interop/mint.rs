//! A Cashu mint by others, for as long as it is needed.

#![allow(dead_code, reason = "not every test binary uses all of it")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A machine with much to do starts a Python program slowly.
const PATIENCE: Duration = Duration::from_secs(90);

/// Ends with its stdin, at the latest when the test does.
#[derive(Debug)]
pub(crate) struct Mint {
    pub(crate) url: String,
    inner: Mutex<(ChildStdin, Receiver<String>)>,
    child: Child,
}

impl Mint {
    /// Starts one, with options of `interop/python/mint.py`.
    pub(crate) fn start(command: &[String], options: &[&str]) -> Self {
        let (program, arguments) = command.split_first().expect("a command has a name");
        let mut child = Command::new(program)
            .args(arguments)
            .args(options)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the mint's Python is installed");
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        let (lines, said) = sync_channel(16);
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if lines.send(line).is_err() {
                    return;
                }
            }
        });
        let input = child.stdin.take().expect("it is piped");
        let ready = said.recv_timeout(PATIENCE).expect("the mint starts");
        let ready: serde_json::Value = serde_json::from_str(&ready).expect("it speaks JSON");
        let url = ready["ready"]["url"].as_str().expect("it says where it is").to_owned();
        Self { url, inner: Mutex::new((input, said)), child }
    }

    /// An invoice of this mint's has been paid (with `--manual`).
    pub(crate) fn pay(&self, invoice: &str) {
        self.say(&format!("pay {invoice}"));
    }

    /// How payments by this mint end: `SETTLED`, `PENDING` or `FAILED`.
    pub(crate) fn outgoing(&self, state: &str) {
        self.say(&format!("outgoing {state}"));
    }

    fn say(&self, line: &str) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        writeln!(inner.0, "{line}").expect("the mint lives");
        inner.1.recv_timeout(PATIENCE).expect("the mint answers");
    }
}

impl Drop for Mint {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
