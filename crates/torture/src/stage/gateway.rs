//! The gateway under test, seen from its client.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, ExitStatus};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::Transcript;
use super::line::{Inbox, Line, PATIENCE};

/// A running gateway; killed when dropped, after the whole conversation has been told if the test failed.
pub struct Gateway {
    process: Child,
    input: Option<ChildStdin>,
    inbox: Inbox,
    feed: Option<Sender<Line>>,
    errors: Arc<Mutex<Vec<String>>>,
    transcript: Transcript,
}

impl Gateway {
    pub fn new(mut process: Child, transcript: Transcript) -> Self {
        let errors = Arc::new(Mutex::new(Vec::new()));
        let (stderr, kept, told) = (process.stderr.take().unwrap(), errors.clone(), transcript.clone());
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                told.add("gateway 2>", &line);
                kept.lock().unwrap().push(line);
            }
        });
        let (feed, lines) = channel();
        let input = process.stdin.take();
        Self { process, input, inbox: Inbox::new(lines), feed: Some(feed), errors, transcript }
    }

    /// Its standard output, before anything has been read from it.
    pub fn output(&mut self) -> ChildStdout {
        self.process.stdout.take().unwrap()
    }

    /// Reads from its standard output as fast as it comes.
    pub fn read(&mut self, output: ChildStdout) {
        let (feed, told) = (self.feed.take().unwrap(), self.transcript.clone());
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                told.add("client <-", &line);
                if feed.send(Line(line)).is_err() {
                    break;
                }
            }
        });
    }

    pub fn pid(&self) -> i32 {
        i32::try_from(self.process.id()).unwrap()
    }

    /// Sends one line.
    pub fn send(&mut self, line: &str) {
        self.transcript.add("client ->", line);
        let input = self.input.as_mut().unwrap();
        writeln!(input, "{line}").and_then(|()| input.flush()).unwrap();
    }

    /// Sends lines from another thread, for a gateway that may not take them.
    pub fn send_aside(&mut self, lines: Vec<String>) {
        let mut input = self.input.take().unwrap();
        std::thread::spawn(move || {
            for line in lines {
                if writeln!(input, "{line}").and_then(|()| input.flush()).is_err() {
                    return;
                }
            }
            // Closing it would end the gateway.
            std::mem::forget(input);
        });
    }

    pub fn close_input(&mut self) {
        self.transcript.add("client ->", "(end of input)");
        self.input = None;
    }

    /// Waits for a line, which must be of the protocol like everything before it.
    pub fn find_within(&mut self, patience: Duration, what: &str, fits: impl Fn(&Line) -> bool) -> Option<Line> {
        self.transcript.add("client", &format!("waits for {what}"));
        self.inbox.find(patience, |line| {
            assert_eq!(first(line).find(&["jsonrpc"]).as_deref(), Some("\"2.0\""), "not a message: {}", line.0);
            fits(line)
        })
    }

    fn wait(&mut self, what: &str, fits: impl Fn(&Line) -> bool) -> Line {
        self.find_within(PATIENCE, what, fits).unwrap_or_else(|| panic!("the client waited in vain for {what}"))
    }

    /// The answer to the request with this id, spelled as the client wrote it.
    pub fn answer(&mut self, id: &str) -> Line {
        self.wait(&format!("the answer to {id}"), |line| line.has_id(id))
    }

    /// A request or notification.
    pub fn take(&mut self, method: &str) -> Line {
        self.wait(method, |line| line.is_method(method))
    }

    /// The array that answers a batch.
    pub fn batch(&mut self) -> Line {
        self.wait("an array", |line| line.0.starts_with('['))
    }

    /// Sends a request and waits for its answer.
    pub fn ask(&mut self, id: &str, method: &str, params: &str) -> Line {
        self.send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#));
        self.answer(id)
    }

    /// Calls a tool without waiting.
    pub fn call(&mut self, id: &str, tool: &str) {
        let params = format!(r#"{{"name":"{tool}","arguments":{{}}}}"#);
        self.send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#));
    }

    /// Introduces the client, with everything that a server may ask of it.
    pub fn begin(&mut self, version: &str) -> Line {
        let capabilities = r#"{"sampling":{},"elicitation":{},"roots":{"listChanged":true}}"#;
        let params = format!(
            r#"{{"protocolVersion":"{version}","capabilities":{capabilities},"clientInfo":{{"name":"t","version":"1"}}}}"#
        );
        let answer = self.ask("\"hello\"", "initialize", &params);
        self.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        answer
    }

    /// What came and was not asked for.
    pub fn unclaimed(&mut self) -> Vec<Line> {
        self.inbox.unclaimed()
    }

    /// Waits for a line on its standard error.
    pub fn error_line(&self, part: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(line) = self.errors.lock().unwrap().iter().find(|line| line.contains(part)) {
                return line.clone();
            }
            assert!(Instant::now() < deadline, "no line with {part:?} on standard error");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits for its end.
    pub fn end(&mut self, patience: Duration) -> ExitStatus {
        let deadline = Instant::now() + patience;
        loop {
            if let Some(status) = self.process.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < deadline, "the gateway has not ended within {patience:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// The line, or the first member of an array.
fn first(line: &Line) -> Line {
    match serde_json::from_str::<Vec<Box<serde_json::value::RawValue>>>(&line.0) {
        Ok(members) if !members.is_empty() => Line(members[0].get().to_owned()),
        _ => line.clone(),
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.transcript.tell();
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
