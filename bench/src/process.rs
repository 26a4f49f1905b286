//! A subject as a child process: its pipes, its CPU time and its memory.

use std::{
    fs, io,
    io::{Read, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::Duration,
};

pub struct Process {
    child: Child,
    pub stdin: ChildStdin,
    pub stdout: ChildStdout,
}

impl Process {
    pub fn start(command: &[String]) -> io::Result<Self> {
        let mut child = Command::new(&command[0])
            .args(&command[1..])
            // It is ours alone; Rialto warns about variables with its prefix that it does not know.
            .env_remove("MCP_PEERS")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (stdin, stdout) = pipes.ok_or_else(|| io::Error::other("the child has no pipes"))?;
        Ok(Self { child, stdin, stdout })
    }

    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stdin.write_all(bytes)
    }

    /// Reads what is there; the end of the stream is an error, because a subject must not end by itself.
    pub fn receive(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.stdout.read(buffer)? {
            0 => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the subject closed its output")),
            read => Ok(read),
        }
    }

    /// CPU time of this process alone, all threads, without its children.
    pub fn cpu(&self) -> io::Result<Duration> {
        cpu(self.child.id())
    }

    /// The same in ticks of 10 ms, which also counts threads that have ended.
    pub fn cpu_ticks(&self) -> io::Result<Duration> {
        cpu_ticks(self.child.id())
    }

    /// Resident memory in KiB.
    pub fn resident(&self) -> io::Result<u64> {
        resident(self.child.id())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// CPU time of one process, all threads, without its children.
///
/// The scheduler counts it in nanoseconds per thread; where the kernel does not say, the clock ticks of 10 ms remain.
pub fn cpu(pid: u32) -> io::Result<Duration> {
    let mut nanoseconds = 0;
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        let Ok(line) = fs::read_to_string(task?.path().join("schedstat")) else { return cpu_ticks(pid) };
        nanoseconds += line.split(' ').next().and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
    }
    Ok(Duration::from_nanos(nanoseconds))
}

fn cpu_ticks(pid: u32) -> io::Result<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name in parentheses may hold spaces; utime and stime are the 12th and 13th field after it.
    let fields = stat.rsplit(") ").next().unwrap_or_default().split(' ').skip(11).take(2);
    let ticks: u64 = fields.filter_map(|field| field.parse::<u64>().ok()).sum();
    Ok(Duration::from_millis(ticks * 10))
}

/// Resident memory of a process in KiB.
pub fn resident(pid: u32) -> io::Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.trim().split(' ').next()?.parse().ok());
    number.ok_or_else(|| io::Error::other("no VmRSS in /proc"))
}

/// The processes that a process started, and those that they started.
pub fn descendants(pid: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pairs: Vec<(u32, u32)> = processes
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            // After the name: the state, then the parent.
            Some((pid, stat.rsplit(") ").next()?.split(' ').nth(1)?.parse().ok()?))
        })
        .collect();
    let mut found = vec![pid];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        found.extend(pairs.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid));
        next += 1;
    }
    found.split_off(1)
}
