//! No process that we started outlives us, whatever ends us.
//!
//! Each child leads its own process group and carries a random mark in its environment, which its descendants inherit
//! unless they take pains not to. A small second process of ours, the guard, knows the groups and the mark and reads from a pipe that we
//! hold. When that pipe ends, because we stopped, crashed or were killed, it ends the groups and whatever else carries
//! the mark.

use rustix::process::{Pid, Signal, kill_process, kill_process_group, test_kill_process_group};
use std::collections::BTreeSet;
use std::io::{self, BufRead, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The environment variable that marks our descendants.
pub const MARK: &str = "MCP_CHILD_GUARD_MARK";

/// The environment variable that tells a gateway how many gateways it is behind.
pub const DEPTH: &str = "MCP_GATEWAY_DEPTH";

/// Gateways behind gateways have their uses, but one that leads to itself must not go on for ever.
pub const MAX_DEPTH: u32 = 4;

/// How many gateways this process is behind.
pub fn depth() -> u32 {
    std::env::var(DEPTH).ok().and_then(|depth| depth.parse().ok()).unwrap_or(0)
}

/// How long a group may take to end after it was asked to.
const GRACE: Duration = Duration::from_secs(1);

/// Our end of the pipe to the guard.
#[derive(Debug)]
pub struct Guard {
    program: PathBuf,
    argument: String,
    mark: String,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    groups: BTreeSet<i32>,
    process: Option<(Child, ChildStdin)>,
}

impl Guard {
    /// `program argument` must call [`run`]. It is started together with the first child.
    pub fn new(program: PathBuf, argument: &str) -> io::Result<Self> {
        let mut random = [0_u8; 16];
        rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
        let mark = random.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { program, argument: argument.to_owned(), mark, state: Mutex::default() })
    }

    /// Our own program.
    pub(crate) fn program(&self) -> &std::path::Path {
        &self.program
    }

    /// The value of [`MARK`] for children.
    pub fn mark(&self) -> &str {
        &self.mark
    }

    /// A child has started.
    pub fn add(&self, group: i32) -> io::Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.groups.insert(group);
        self.tell(&mut state, &format!("+{group}\n"))
    }

    /// A child's group is gone.
    pub fn remove(&self, group: i32) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.groups.remove(&group);
        // If the guard is gone, the next child brings a new one, which learns only of the groups there are.
        let _ = self.tell(&mut state, &format!("-{group}\n"));
    }

    fn tell(&self, state: &mut State, line: &str) -> io::Result<()> {
        if let Some((process, pipe)) = &mut state.process {
            if pipe.write_all(line.as_bytes()).is_ok() {
                return Ok(());
            }
            // Someone killed the guard. Its successor gets the whole list.
            let _ = process.wait();
            state.process = None;
        }
        if state.groups.is_empty() {
            return Ok(());
        }
        let mut process = Command::new(&self.program)
            // Not our own name, so that whoever kills us by name does not kill the guard.
            .arg0("mcp-child-guard")
            .arg(&self.argument)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        let Some(mut pipe) = process.stdin.take() else { return Err(io::Error::other("the guard has no input")) };
        let mut text = format!("{}\n", self.mark);
        for group in &state.groups {
            text.push_str(&format!("+{group}\n"));
        }
        pipe.write_all(text.as_bytes())?;
        state.process = Some((process, pipe));
        Ok(())
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some((mut process, pipe)) = state.process.take() {
            drop(pipe);
            let _ = process.wait();
        }
    }
}

/// The guard's whole life: reads groups until `input` ends, then ends them.
pub fn run(input: impl BufRead) {
    let _ = rustix::thread::set_name(c"mcp-child-guard");
    let mut lines = input.lines().map_while(Result::ok);
    let Some(mark) = lines.next() else { return };
    let mut groups = BTreeSet::new();
    for line in lines {
        match (line.get(..1), line.get(1..).and_then(|number| number.parse::<i32>().ok())) {
            (Some("+"), Some(group)) => groups.insert(group),
            (Some("-"), Some(group)) => groups.remove(&group),
            _ => false,
        };
    }
    let groups: Vec<Pid> = groups.into_iter().filter_map(Pid::from_raw).collect();
    end_groups(&groups, GRACE);
    end_marked(&mark);
}

/// Asks groups to end, and makes them after `grace`.
fn end_groups(groups: &[Pid], grace: Duration) {
    for group in groups {
        let _ = kill_process_group(*group, Signal::TERM);
    }
    let deadline = Instant::now() + grace;
    while Instant::now() < deadline && groups.iter().any(|group| test_kill_process_group(*group).is_ok()) {
        std::thread::sleep(Duration::from_millis(10));
    }
    for group in groups {
        let _ = kill_process_group(*group, Signal::KILL);
    }
}

/// Kills every process that carries the mark, until a look finds none: one may start another in between.
fn end_marked(mark: &str) {
    let wanted = format!("{MARK}={mark}");
    for _ in 0..20 {
        let found = marked(&wanted);
        if found.is_empty() {
            return;
        }
        for process in found {
            let _ = kill_process(process, Signal::KILL);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn marked(wanted: &str) -> Vec<Pid> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let process = |entry: io::Result<std::fs::DirEntry>| {
        let entry = entry.ok()?;
        let number = entry.file_name().to_str()?.parse::<i32>().ok()?;
        let environment = std::fs::read(entry.path().join("environ")).ok()?;
        let is_marked = environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes());
        is_marked.then(|| Pid::from_raw(number)).flatten()
    };
    entries.filter_map(process).collect()
}
