//! A running `rialto`: its output is read as it comes, and nothing of it is left when the test is over.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::PATIENCE;
use super::log::Log;

pub struct Process {
    child: Child,
    what: String,
    input: Option<ChildStdin>,
    pub stdout: Log<String>,
    pub stderr: Log<String>,
}

impl Process {
    pub fn start(command: &mut Command) -> Self {
        let what = format!("{command:?}");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stdout = read(child.stdout.take().unwrap());
        let stderr = read(child.stderr.take().unwrap());
        let input = child.stdin.take();
        Self { child, what, input, stdout, stderr }
    }

    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }

    /// Waits for a line on its standard output that is JSON and has this member.
    #[track_caller]
    pub fn json_line(&self, member: &str) -> Value {
        let found = self.stdout.wait(PATIENCE, |lines| {
            let mut values = lines.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            values.find(|value| value.get(member).is_some())
        });
        found.unwrap_or_else(|| panic!("no line with {member:?} from {}\n{}", self.what, self.told()))
    }

    /// Waits for a line on its standard error with this text.
    #[track_caller]
    pub fn says(&self, part: &str) -> String {
        let found = self.stderr.wait(PATIENCE, |lines| lines.iter().find(|line| line.contains(part)).cloned());
        found.unwrap_or_else(|| panic!("no {part:?} from {}\n{}", self.what, self.told()))
    }

    /// Writes a line to its standard input.
    pub fn write(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        input.write_all(format!("{line}\n").as_bytes()).and_then(|()| input.flush()).unwrap();
    }

    pub fn close_input(&mut self) {
        self.input = None;
    }

    pub fn signal(&self, signal: Signal) {
        let _ = kill_process(Pid::from_raw(self.pid()).unwrap(), signal);
    }

    /// Waits for its end.
    #[track_caller]
    pub fn end(&mut self) -> ExitStatus {
        self.end_within(PATIENCE)
    }

    #[track_caller]
    pub fn end_within(&mut self, patience: Duration) -> ExitStatus {
        let deadline = Instant::now() + patience;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                // Its last words are still on their way; a server that outlives it may keep the pipe open.
                for log in [&self.stdout, &self.stderr] {
                    log.wait(LAST_WORDS, |lines| lines.last().filter(|line| *line == END).map(|_| ()));
                }
                return status;
            }
            assert!(Instant::now() < deadline, "it does not end: {}\n{}", self.what, self.told());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Asks it to stop, and waits until it has.
    #[track_caller]
    pub fn stop(&mut self) -> ExitStatus {
        self.signal(Signal::TERM);
        self.end()
    }

    /// Ends it as a power cut would.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Everything that it has said, for messages.
    pub fn told(&self) -> String {
        let last = |log: &Log<String>| {
            log.look(|lines| lines[lines.len().saturating_sub(40)..].join("\n")).chars().take(8000).collect::<String>()
        };
        format!("-- stdout\n{}\n-- stderr\n{}", last(&self.stdout), last(&self.stderr))
    }

    /// All of its standard output, once it has ended.
    pub fn output(&mut self) -> String {
        self.end();
        self.stdout.look(|lines| lines.iter().filter(|line| *line != END).cloned().collect::<Vec<_>>().join("\n"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            let text = format!("---- {}\n{}\n----\n", self.what, self.told());
            let _ = std::io::stderr().write_all(text.as_bytes());
        }
    }
}

/// Stands behind the last line.
const END: &str = "(end)";

/// How long they may take after the end of a process.
const LAST_WORDS: Duration = Duration::from_secs(5);

fn read(from: impl Read + Send + 'static) -> Log<String> {
    let log: Log<String> = Log::default();
    let kept = log.clone();
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            kept.push(line);
        }
        kept.push(END.to_owned());
    });
    log
}
