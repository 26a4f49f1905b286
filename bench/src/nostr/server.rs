//! A process that says on its standard output that it is ready: a provider or the relay.

use std::{
    fs::{self, File},
    io::{Read as _, Seek as _, SeekFrom},
    path::{Path, PathBuf},
    process::Stdio,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use serde_json::Value;
use tokio::{
    io::{self, AsyncBufReadExt, BufReader},
    process::{Child, Command},
    time::timeout,
};

use crate::Failure;

/// Node on a busy machine takes seconds.
const START: Duration = Duration::from_secs(30);

/// A folder of one process for its data, gone with it.
struct Folder(PathBuf);

impl Folder {
    fn new() -> io::Result<Self> {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("rialto-bench-{}-{number}", std::process::id()));
        fs::create_dir_all(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub struct Server {
    child: Child,
    pub pid: u32,
    /// The line with which it said that it is ready.
    pub ready: Value,
    folder: Folder,
}

impl Server {
    /// Starts a process without waiting for anything.
    pub fn spawn(command: &[String]) -> Result<Self, Failure> {
        let folder = Folder::new()?;
        let child = Command::new(&command[0])
            .args(&command[1..])
            .env_remove("MCP_PEERS")
            .env("XDG_DATA_HOME", &folder.0)
            .env("XDG_CONFIG_HOME", &folder.0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::create(log(&folder.0))?)
            .kill_on_drop(true)
            .spawn()?;
        let pid = child.id().ok_or("the process ended at once")?;
        Ok(Self { child, pid, ready: Value::Null, folder })
    }

    /// Starts a process and waits for the line that says it is ready.
    pub async fn start(command: &[String]) -> Result<Self, Failure> {
        let mut server = Self::spawn(command)?;
        let mut output = BufReader::new(server.child.stdout.take().ok_or("no pipe")?);
        let mut line = String::new();
        while server.ready.is_null() {
            line.clear();
            let read = timeout(START, output.read_line(&mut line)).await;
            match read.map_err(|_| format!("not ready after {} s{}", START.as_secs(), server.complaint()))?? {
                0 => return Err(format!("ended before it was ready{}", server.complaint()).into()),
                _ => server.ready = readiness(&line),
            }
        }
        // What it says later must not fill the pipe.
        tokio::spawn(async move { io::copy(&mut output, &mut io::sink()).await });
        Ok(server)
    }

    /// The last thing that it wrote to its standard error.
    pub fn complaint(&self) -> String {
        let mut text = Vec::new();
        let tail = File::open(log(&self.folder.0)).and_then(|mut log| {
            let _ = log.seek(SeekFrom::End(-2000));
            log.read_to_end(&mut text)
        });
        let text = String::from_utf8_lossy(&text);
        let last = text.lines().rev().find(|line| !line.trim().is_empty());
        tail.ok().and(last).map(|line| format!(": {}", line.trim())).unwrap_or_default()
    }

    /// Ends it and waits, so that it takes no time from the next one.
    pub async fn stop(mut self) {
        let _ = self.child.kill().await;
    }
}

/// Providers say `{"ready":{…}}`, the relay only where it listens; any other line says nothing.
fn readiness(line: &str) -> Value {
    let mut line: Value = serde_json::from_str(line).unwrap_or_default();
    if line["url"].is_string() { line } else { line["ready"].take() }
}

fn log(folder: &Path) -> PathBuf {
    folder.join("stderr.log")
}
