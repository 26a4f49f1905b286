//! A stage for the real gateway: the test plays its client and all its servers, with real processes and raw lines.

pub mod door;
pub mod gateway;
pub mod line;
pub mod puppet;
pub mod runner;
pub mod server;
pub mod wire;

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use gateway::Gateway;
use rustix::process::{Pid, Signal, kill_process};
use server::Server;

/// Everything that was said, in the order in which the test saw it.
#[derive(Debug, Clone)]
pub struct Transcript {
    start: Instant,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Transcript {
    pub fn add(&self, who: &str, what: &str) {
        const SHOWN: usize = 600;
        const KEPT: usize = 4000;
        let shown: String = what.chars().take(SHOWN).collect();
        let cut = if what.len() > shown.len() { format!(" … ({} bytes)", what.len()) } else { String::new() };
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() < KEPT {
            lines.push(format!("{:>6} ms  {who} {shown}{cut}", self.start.elapsed().as_millis()));
        }
    }

    /// The lines that hold a piece of text.
    pub fn find(&self, part: &str) -> Vec<String> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().filter(|line| line.contains(part)).cloned().collect()
    }

    pub fn tell(&self) {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner).join("\n");
        let name = std::thread::current().name().unwrap_or_default().to_owned();
        // In one piece, as other tests may be failing at the same time.
        let text = format!("---- the conversation of {name}:\n{lines}\n----\n");
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
}

/// A directory of its own, and servers to be configured there.
pub struct Stage {
    directory: tempfile::TempDir,
    pub transcript: Transcript,
    /// Lines at the top of the configuration.
    pub settings: String,
    /// Further servers, as they stand in the configuration.
    pub more: String,
}

impl Stage {
    pub fn new() -> Self {
        let transcript = Transcript { start: Instant::now(), lines: Arc::default() };
        let directory = tempfile::Builder::new().prefix("stage").tempdir().unwrap();
        Self { directory, transcript, settings: String::new(), more: String::new() }
    }

    /// A server with one tool called `x`.
    pub fn server(&self, name: &str) -> Server {
        Server::new(name, self.directory.path(), &self.transcript)
    }

    /// Starts the gateway in front of these servers, in this order.
    pub fn gateway(&self, servers: &[&Server], flags: &[&str]) -> Gateway {
        let (mut gateway, output) = self.gateway_unread(servers, flags);
        gateway.read(output);
        gateway
    }

    /// The same, with nothing reading what it says.
    pub fn gateway_unread(&self, servers: &[&Server], flags: &[&str]) -> (Gateway, std::process::ChildStdout) {
        self.configure(servers);
        self.start(&[&["gateway", "--stdio"], flags].concat())
    }

    /// Writes the configuration with these servers, in this order.
    pub fn configure(&self, servers: &[&Server]) {
        let mut text = format!("{}\n", self.settings);
        for server in servers {
            let [program, arguments @ ..] = self.command(server);
            text.push_str(&format!(
                "[servers.{:?}]\ncommand = {program:?}\nargs = {arguments:?}\n{}\n",
                server.name, server.settings
            ));
        }
        text.push_str(&self.more);
        self.write_config(&text);
    }

    /// Writes the configuration. It is there at once, as a gateway may be watching.
    pub fn write_config(&self, text: &str) {
        let draft = self.directory.path().join("draft");
        fs::write(&draft, text).unwrap();
        fs::rename(draft, self.directory.path().join("rialto.toml")).unwrap();
    }

    /// What starts a server: the test binary, in another role.
    pub fn command(&self, server: &Server) -> [String; 3] {
        let program = std::env::current_exe().unwrap();
        [program.to_str().unwrap(), puppet::PUPPET, server.socket.to_str().unwrap()].map(str::to_owned)
    }

    /// Where everything of this stage is.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Starts the gateway in front of one server that is named on the command line, so that names are not changed.
    pub fn single(&self, server: &Server, flags: &[&str]) -> Gateway {
        let command = self.command(server);
        let command: Vec<&str> = std::iter::once("--").chain(command.iter().map(String::as_str)).collect();
        let (mut gateway, output) = self.start(&[&["gateway", "--stdio"], flags, &command].concat());
        gateway.read(output);
        gateway
    }

    /// Starts our program with these arguments.
    pub fn start(&self, arguments: &[&str]) -> (Gateway, std::process::ChildStdout) {
        let process = Command::new(crate::rialto())
            .args(arguments)
            .env_clear()
            .env("HOME", self.directory.path())
            .env("PATH", "/usr/bin:/bin")
            .env("SECRET_CANARY", "yellow-bird")
            .current_dir(self.directory.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut gateway = Gateway::new(process, self.transcript.clone());
        let output = gateway.output();
        (gateway, output)
    }
}

pub fn kill(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

/// Whether a process is there and not merely waiting to be buried.
pub fn is_alive(pid: i32) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    !matches!(state, Some('Z' | 'X') | None)
}

/// Fails unless all these processes are gone within `patience`; kills what is left.
pub fn expect_gone(pids: &[(&str, i32)], patience: Duration) {
    let deadline = Instant::now() + patience;
    loop {
        let alive: Vec<_> = pids.iter().filter(|(_, pid)| is_alive(*pid)).collect();
        if alive.is_empty() {
            return;
        }
        if Instant::now() >= deadline {
            for (_, pid) in &alive {
                let _ = kill_process(Pid::from_raw(*pid).unwrap(), Signal::KILL);
            }
            panic!("still alive after {patience:?}: {alive:?}");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}
