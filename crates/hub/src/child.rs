//! One server process: started in its own group with little of our environment, watched, and ended for good.

use crate::event::{Event, Events};
use crate::guard::{self, Guard};
use crate::plan::Process;
use crate::sandbox::Folder;
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::VecDeque;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};

/// What a child inherits of our environment: enough to find programs, its home and its language. Everything else, keys
/// and tokens above all, it gets only if the configuration says so.
const INHERITED: [&str; 17] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TERM",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
];

/// Where programs keep what is theirs. In a sandbox that is a folder of its own, as everything else is out of reach.
const OWN_FOLDERS: [&str; 5] = ["HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"];

/// How many of its last lines on standard error are told when a child dies, and how long each may be.
const LAST_LINES: usize = 8;
const LINE_LENGTH: usize = 400;

/// How long a child may take to end after its input was closed, and again after it was asked.
const END_GRACE: Duration = Duration::from_secs(2);

/// A running child. Dropping it kills the whole group.
#[derive(Debug)]
pub(crate) struct Child {
    process: tokio::process::Child,
    group: i32,
    guard: Arc<Guard>,
    last_lines: Arc<Mutex<VecDeque<String>>>,
    stderr: tokio::task::JoinHandle<()>,
    /// What it has to itself in a sandbox; removed after its end.
    _folder: Option<Folder>,
}

impl Child {
    pub(crate) fn start(
        name: &str,
        plan: &Process,
        guard: &Arc<Guard>,
        events: &Events,
    ) -> io::Result<(Self, ChildStdin, ChildStdout)> {
        let folder = plan.sandbox.as_ref().map(|_| Folder::new()).transpose()?;
        let confined = plan.sandbox.as_ref().zip(folder.as_ref());
        let mut command = match confined {
            Some((sandbox, folder)) => {
                let mut command = Command::new(guard.program());
                command.args(sandbox.arguments(folder.path())).arg(&plan.program);
                command
            }
            None => Command::new(&plan.program),
        };
        command.args(&plan.args).env_clear();
        command.envs(INHERITED.iter().filter_map(|name| std::env::var_os(name).map(|value| (name, value))));
        if let Some(folder) = &folder {
            command.envs(OWN_FOLDERS.map(|name| (name, folder.path()))).current_dir(folder.path());
        }
        command.envs(&plan.env).env(guard::MARK, guard.mark());
        command.env(guard::DEPTH, (guard::depth() + 1).to_string());
        if let Some(directory) = &plan.cwd {
            command.current_dir(directory);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.process_group(0).kill_on_drop(true);
        let mut process = command.spawn().map_err(|error| match &plan.cwd {
            Some(directory) if !directory.is_dir() => {
                io::Error::new(error.kind(), format!("its directory `{}` is not there", directory.display()))
            }
            _ => error,
        })?;
        let id = process.id().and_then(|id| i32::try_from(id).ok());
        let (Some(group), Some(input), Some(output), Some(stderr)) =
            (id, process.stdin.take(), process.stdout.take(), process.stderr.take())
        else {
            return Err(io::Error::other("the process has no pipes"));
        };
        if let Err(error) = guard.add(group) {
            // Nobody would end it if we were killed.
            if let Some(group) = Pid::from_raw(group) {
                let _ = kill_process_group(group, Signal::KILL);
            }
            guard.remove(group);
            return Err(error);
        }
        let last_lines = Arc::new(Mutex::new(VecDeque::new()));
        let stderr = tokio::spawn(read_stderr(stderr, name.to_owned(), last_lines.clone(), events.clone()));
        let child = Self { process, group, guard: guard.clone(), last_lines, stderr, _folder: folder };
        Ok((child, input, output))
    }

    pub(crate) async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.process.wait().await
    }

    /// How it ended, in words, with its last lines on standard error.
    pub(crate) async fn obituary(&mut self, status: Option<ExitStatus>) -> String {
        // What it wrote just before it died may still be on its way.
        let _ = tokio::time::timeout(Duration::from_millis(200), &mut self.stderr).await;
        let mut words = match status {
            Some(status) => format!("exited ({status})"),
            None => "closed its standard output".to_owned(),
        };
        let lines = self.last_lines.lock().unwrap_or_else(PoisonError::into_inner);
        if !lines.is_empty() {
            words.push_str("; last words: ");
            words.push_str(&Vec::from_iter(lines.iter().map(String::as_str)).join(" / "));
        }
        words
    }

    /// Waits for an end of its own accord (its input is closed by now), then asks, then forces.
    pub(crate) async fn end(mut self) {
        for signal in [Some(Signal::TERM), None] {
            if tokio::time::timeout(END_GRACE, self.process.wait()).await.is_ok() {
                break;
            }
            if let Some(signal) = signal {
                self.signal(signal);
            }
        }
        // Dropping kills what is left of the group.
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = Pid::from_raw(self.group) {
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        self.stderr.abort();
        self.guard.remove(self.group);
    }
}

async fn read_stderr(stderr: ChildStderr, server: String, last: Arc<Mutex<VecDeque<String>>>, events: Events) {
    let mut reader = BufReader::new(stderr);
    let mut line = Vec::new();
    loop {
        line.clear();
        // A line is cut, so that a child cannot fill our memory with one.
        let mut limited = (&mut reader).take(8 * LINE_LENGTH as u64);
        match limited.read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let text = String::from_utf8_lossy(&line);
        let text: String =
            text.trim_end().chars().filter(|c| !c.is_control() || *c == '\t').take(LINE_LENGTH).collect();
        if text.is_empty() {
            continue;
        }
        {
            let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
            if last.len() == LAST_LINES {
                last.pop_front();
            }
            last.push_back(text.clone());
        }
        events.tell(Event::Stderr { server: server.clone(), line: text });
    }
}
