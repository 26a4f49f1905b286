//! A running program, and clients that use its wallets as a stranger's program would.

pub(crate) mod client;

use client::Client;
use rialto_relay::embedded::{Options, Relay};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// How long anything may take before a test gives up.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A relay, the program as a child process, and a client for each of its wallets.
#[derive(Debug)]
pub(crate) struct World {
    _relay: Relay,
    _program: Program,
    pub(crate) provider: Client,
    pub(crate) customer: Client,
}

impl World {
    pub(crate) async fn start() -> Self {
        let relay = Relay::start(Options::default()).await.unwrap();
        let url = relay.url();
        let (program, line) = tokio::task::spawn_blocking(move || Program::start(&["--relay", &url])).await.unwrap();
        let addresses: Value = serde_json::from_str(&line).unwrap();
        let provider = Client::connect(addresses["provider"].as_str().unwrap()).await;
        let customer = Client::connect(addresses["customer"].as_str().unwrap()).await;
        Self { _relay: relay, _program: program, provider, customer }
    }

    /// What both wallets have, provider first.
    pub(crate) async fn balances(&self) -> (u64, u64) {
        (self.provider.balance().await, self.customer.balance().await)
    }

    /// Waits until both wallets have what they should: a node learns of its new balance a moment after the payment.
    pub(crate) async fn until_balances(&self, expected: (u64, u64)) {
        until("the balances", async || (self.balances().await == expected).then_some(())).await;
    }
}

/// The program as a child process. It ends with the test, whatever happens.
#[derive(Debug)]
pub(crate) struct Program {
    child: Child,
    output: BufReader<ChildStdout>,
    /// Where its temporary files go: it cannot remove them when it is killed.
    temporary: TempDir,
}

impl Program {
    /// Starts it and waits for its first line.
    pub(crate) fn start(arguments: &[&str]) -> (Self, String) {
        let temporary = tempfile::tempdir().unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_rialto-lightning"))
            .args(arguments)
            .env("TMPDIR", temporary.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        (Self { child, output, temporary }, line)
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn close_input(&mut self) {
        drop(self.child.stdin.take());
    }

    /// What it has in the place for temporary files.
    pub(crate) fn temporary(&self) -> Vec<String> {
        names(self.temporary.path())
    }

    /// Waits for its end; returns what else it wrote.
    pub(crate) fn end(&mut self) -> (ExitStatus, String) {
        let mut rest = String::new();
        std::io::Read::read_to_string(&mut self.output, &mut rest).unwrap();
        (self.child.wait().unwrap(), rest)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Asks again and again until there is an answer.
pub(crate) async fn until<T>(what: &str, ask: impl AsyncFn() -> Option<T>) -> T {
    let asking = async {
        loop {
            if let Some(answer) = ask().await {
                return answer;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, asking).await.unwrap_or_else(|_| panic!("waited in vain for {what}"))
}

/// What is in a directory; nothing if there is none.
pub(crate) fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten();
    entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
}
