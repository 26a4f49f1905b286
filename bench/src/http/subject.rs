//! What is measured over HTTP, and how each is started.

use std::{
    io::{self, BufRead as _, BufReader, Read},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use crate::{
    Failure, process,
    subject::{Speed, build, build_rialto, peers},
};

/// How long a server may take to say where it listens.
const PATIENCE: Duration = Duration::from_secs(30);

/// What is spoken.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// 2025-11-25, one session for each connection.
    Sessions,
    /// 2026-07-28.
    Stateless,
}

impl Era {
    pub fn version(self) -> &'static str {
        match self {
            Self::Sessions => "2025-11-25",
            Self::Stateless => "2026-07-28",
        }
    }

    /// What every call carries beside its arguments.
    pub fn meta(self) -> &'static str {
        match self {
            Self::Sessions => "",
            Self::Stateless => {
                r#","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"}}"#
            }
        }
    }
}

pub struct Subject {
    pub name: &'static str,
    command: Vec<String>,
    pub era: Era,
    pub speed: Speed,
    /// The file whose absence means that the subject is not installed.
    pub needs: PathBuf,
}

pub const OURS: [&str; 2] = ["rialto-http echo, sessions", "rialto-http echo, stateless"];
pub const OUR_GATEWAY: [&str; 2] = ["rialto gateway → rialto, sessions", "rialto gateway → rialto, stateless"];
pub const PROXIES: [[&str; 2]; 2] = [
    ["typed rmcp proxy, 1 thread → rialto, sessions", "typed rmcp proxy, threads → rialto, sessions"],
    ["typed rmcp proxy, 1 thread → rialto, stateless", "typed rmcp proxy, threads → rialto, stateless"],
];
pub const TYPESCRIPT: [&str; 2] = ["TypeScript SDK 1.32.2 echo, sessions", "TypeScript SDK 2.4.0 echo, stateless"];
pub const RMCP: [&str; 2] = ["rmcp 3.8.0 echo, sessions", "rmcp 3.8.0 echo, stateless"];

/// The subjects whose name contains `only`. What they need of ours is built, unless it is given.
pub fn all(only: &str, rialto: Option<&Path>) -> Result<Vec<Subject>, Failure> {
    let is_wanted = |names: [&str; 2]| names.iter().any(|name| name.contains(only));
    let needs_rialto = is_wanted(OUR_GATEWAY) || PROXIES.into_iter().any(is_wanted);
    let rialto =
        if needs_rialto { rialto.map_or_else(build_rialto, |path| Ok(path.to_owned()))? } else { PathBuf::new() };
    let own = if is_wanted(OURS) { build_echo()? } else { PathBuf::new() };
    let peers = peers();
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let words = |words: &[&str]| -> Vec<String> { words.iter().map(|&word| word.into()).collect() };
    let [rmcp, proxy] = ["echo", "proxy"].map(|name| peers.join("rmcp/target/release").join(name));
    let node = |script: &str| peers.join("node").join(script);
    let local = "127.0.0.1:0";
    let behind = ["--", &text(&rialto), "mcp", "example"];
    let gateway = words(&[&[&text(&rialto), "gateway", "--http", local, "--no-token"], &behind[..]].concat());
    let proxied = |threads: &[&str]| words(&[&[&text(&proxy), "--http", local], threads, &behind[..]].concat());
    let mut subjects = Vec::new();
    for (place, era) in [Era::Sessions, Era::Stateless].into_iter().enumerate() {
        let mut add = |name: &'static str, needs: &Path, speed, command| {
            if name.contains(only) {
                subjects.push(Subject { name, command, era, speed, needs: needs.to_owned() });
            }
        };
        add(OURS[place], &own, Speed::Native, words(&[&text(&own), "--http", local]));
        add(RMCP[place], &rmcp, Speed::Native, words(&[&text(&rmcp), "--http", local]));
        add(OUR_GATEWAY[place], &rialto, Speed::Native, gateway.clone());
        add(PROXIES[place][0], &proxy, Speed::Native, proxied(&[]));
        add(PROXIES[place][1], &proxy, Speed::Native, proxied(&["--threads"]));
        // The first SDK knows no 2026-07-28; the second keeps no sessions.
        let script = node(if era == Era::Sessions { "echo-v1.mjs" } else { "echo-v2.mjs" });
        add(TYPESCRIPT[place], &script, Speed::Node, words(&["node", &text(&script), "--http", "0"]));
    }
    Ok(subjects)
}

/// Builds our echo server as the product is built; says where it is.
fn build_echo() -> Result<PathBuf, Failure> {
    let built = build(&["--package", "rialto-http", "--example", "echo"])?;
    Ok(built.join("examples/echo"))
}

/// A subject that runs.
pub struct Running {
    child: Child,
    pub address: SocketAddr,
}

impl Running {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Resident memory in KiB.
    pub fn resident(&self) -> io::Result<u64> {
        process::resident(self.child.id())
    }
}

impl Subject {
    /// Starts it and waits until it has said where it listens.
    pub fn start(&self) -> io::Result<Running> {
        let mut child = Command::new(&self.command[0])
            .args(&self.command[1..])
            .env_remove("MCP_PEERS")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let (sender, receiver) = mpsc::channel();
        let outputs: [Option<Box<dyn Read + Send>>; 2] =
            [child.stdout.take().map(|out| Box::new(out) as _), child.stderr.take().map(|out| Box::new(out) as _)];
        for output in outputs.into_iter().flatten() {
            let sender = sender.clone();
            thread::spawn(move || {
                for line in BufReader::new(output).lines().map_while(Result::ok) {
                    // Once the address is known, the rest is for nobody.
                    let _ = sender.send(line);
                }
            });
        }
        drop(sender);
        loop {
            let Ok(line) = receiver.recv_timeout(PATIENCE) else {
                let _ = child.kill();
                let _ = child.wait();
                return Err(io::Error::other("it does not say where it listens"));
            };
            let address = line.split_once("http://").and_then(|(_, rest)| rest.split('/').next()?.parse().ok());
            if let Some(address) = address {
                return Ok(Running { child, address });
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
