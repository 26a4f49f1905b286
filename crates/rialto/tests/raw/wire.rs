//! One conversation with a child process: bytes in, checked messages out, never waiting for ever.
//!
//! Writing, reading and waiting for the end are three threads, so that neither a full pipe nor a silent child can block
//! a test. Every line that comes out is checked to be JSON-RPC before a test sees it. A test that fails prints all that
//! was said.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Far more than anything here takes on a slow machine, far less than a test run may hang.
const PATIENCE: Duration = Duration::from_secs(30);

/// How much of a message is shown in the transcript.
const SHOWN: usize = 600;

/// What a test talks to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject {
    /// The example server itself.
    Example,
    /// A gateway in front of it.
    Gateway,
}

impl Subject {
    pub(crate) const BOTH: [Subject; 2] = [Subject::Example, Subject::Gateway];

    fn arguments(self) -> Vec<&'static str> {
        match self {
            Subject::Example => vec!["mcp", "example"],
            Subject::Gateway => {
                let program = env!("CARGO_BIN_EXE_rialto");
                // A loaded machine may need long to start the server; what comes later would be told as a change.
                let grace = ["--startup-grace-ms", "20000"];
                [&["gateway", "--stdio", "--prefix", "never"], &grace[..], &["--", program, "mcp", "example"]].concat()
            }
        }
    }
}

/// A running child and everything said so far.
pub(crate) struct Wire {
    pub(crate) subject: Subject,
    pub(crate) pid: u32,
    input: Option<Sender<Vec<u8>>>,
    output: Receiver<Vec<u8>>,
    ended: Receiver<ExitStatus>,
    status: Option<ExitStatus>,
    transcript: String,
    talk: Arc<Mutex<String>>,
    fences: u32,
    _home: tempfile::TempDir,
}

impl Wire {
    pub(crate) fn start(subject: Subject) -> Self {
        Self::start_with(subject, &subject.arguments())
    }

    pub(crate) fn start_with(subject: Subject, arguments: &[&str]) -> Self {
        let home = tempfile::tempdir().unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_rialto"))
            .args(arguments)
            .env_clear()
            .env("HOME", home.path())
            .current_dir(home.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (pid, mut stdin) = (child.id(), child.stdin.take().unwrap());
        let (stdout, mut stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let (input, to_write) = channel::<Vec<u8>>();
        thread::spawn(move || {
            // A child that no longer reads is noticed by what it does not answer.
            while let Ok(bytes) = to_write.recv() {
                if stdin.write_all(&bytes).is_err() {
                    return;
                }
            }
        });
        let (read, output) = channel();
        thread::spawn(move || {
            let mut lines = BufReader::new(stdout);
            loop {
                let mut line = Vec::new();
                match lines.read_until(b'\n', &mut line) {
                    Ok(count) if count > 0 && read.send(line).is_ok() => {}
                    _ => return,
                }
            }
        });
        let talk = Arc::new(Mutex::new(String::new()));
        let heard = talk.clone();
        thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(count @ 1..) = stderr.read(&mut piece) {
                heard.lock().unwrap().push_str(&String::from_utf8_lossy(&piece[..count]));
            }
        });
        let (waited, ended) = channel();
        thread::spawn(move || {
            let status = child.wait().unwrap();
            let _ = waited.send(status);
        });
        let (input, status, transcript) = (Some(input), None, format!("$ rialto {}\n", arguments.join(" ")));
        Self { subject, pid, input, output, ended, status, transcript, talk, fences: 0, _home: home }
    }

    fn note(&mut self, direction: &str, bytes: &[u8]) {
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN)]).into_owned();
        let cut = if bytes.len() > SHOWN { format!("… ({} bytes)", bytes.len()) } else { String::new() };
        writeln!(self.transcript, "{direction} {}{cut}", text.trim_end_matches('\n')).unwrap();
    }

    /// Says in the transcript what comes now.
    pub(crate) fn remark(&mut self, text: &str) {
        writeln!(self.transcript, "# {text}").unwrap();
    }

    /// Sends these bytes and nothing else.
    pub(crate) fn send_bytes(&mut self, bytes: impl Into<Vec<u8>>) {
        let bytes = bytes.into();
        self.note(">", &bytes);
        // The writer is gone only if the child is; then the next read fails and says so.
        let _ = self.input.as_ref().expect("the input is still open").send(bytes);
    }

    /// Sends one line.
    pub(crate) fn send(&mut self, line: impl AsRef<[u8]>) {
        let mut bytes = line.as_ref().to_vec();
        bytes.push(b'\n');
        self.send_bytes(bytes);
    }

    /// The next line as it was written, checked.
    pub(crate) fn next_text(&mut self) -> String {
        self.next_within(PATIENCE).unwrap_or_else(|| panic!("the child closed its output"))
    }

    /// The next message.
    pub(crate) fn next(&mut self) -> Value {
        serde_json::from_str(&self.next_text()).unwrap()
    }

    pub(crate) fn next_within(&mut self, patience: Duration) -> Option<String> {
        let line = match self.output.recv_timeout(patience) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => panic!("nothing came for {patience:?}"),
            Err(RecvTimeoutError::Disconnected) => return None,
        };
        self.note("<", &line);
        let text = String::from_utf8(line).expect("output is UTF-8");
        let text = text.strip_suffix('\n').expect("output ends with a line break").to_owned();
        let message: Value = serde_json::from_str(&text).expect("output is JSON");
        match &message {
            Value::Array(members) => {
                assert!(!members.is_empty(), "an empty array was sent");
                members.iter().for_each(check_response);
            }
            single if single.get("method").is_some() => check_method(single),
            single => check_response(single),
        }
        Some(text)
    }

    /// Closes the child's input.
    pub(crate) fn end_input(&mut self) {
        self.transcript.push_str("> (end of input)\n");
        self.input = None;
    }

    /// Introduces a client of an era with a handshake; gives the result.
    pub(crate) fn initialize(&mut self, version: &str, capabilities: &Value) -> Value {
        let params = json!({
            "protocolVersion": version,
            "capabilities": capabilities,
            "clientInfo": {"name": "raw", "version": "1"},
        });
        let request = json!({"jsonrpc": "2.0", "id": "initialize", "method": "initialize", "params": params});
        self.send(request.to_string());
        let answer = self.next();
        assert_eq!(answer["id"], "initialize");
        assert!(answer["result"].is_object(), "the handshake failed");
        self.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        answer["result"].clone()
    }

    /// Makes sure that all that was sent has been read, and that nothing has come of it but what was taken already.
    pub(crate) fn fence(&mut self) {
        self.fences += 1;
        let id = format!("fence-{}", self.fences);
        // Without a handshake `ping` is answered as well, whatever the era was before.
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": "ping"}).to_string());
        let answer = self.next();
        assert_eq!(answer["id"], id.as_str(), "something else came before the fence");
    }

    /// Waits for the end; nothing more may be said. Gives the exit code.
    pub(crate) fn exit(&mut self) -> i32 {
        if let Some(line) = self.next_within(PATIENCE) {
            panic!("this was not expected: {line}");
        }
        let status = self.ended.recv_timeout(PATIENCE).expect("the child ends after it closed its output");
        self.status = Some(status);
        status.code().unwrap_or(-1)
    }

    /// The usual end: nothing unexpected, and a clean exit at the end of input.
    pub(crate) fn finish(mut self) {
        self.fence();
        self.end_input();
        assert_eq!(self.exit(), 0, "exit code");
    }

    /// The highest resident memory so far, in kilobytes.
    pub(crate) fn peak_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().strip_suffix(" kB").unwrap().parse().unwrap()
    }
}

#[allow(clippy::print_stderr, reason = "the test runner shows it if the test fails")]
impl Drop for Wire {
    fn drop(&mut self) {
        if self.status.is_none()
            && self.ended.try_recv().is_err()
            && let Some(pid) = i32::try_from(self.pid).ok().and_then(rustix::process::Pid::from_raw)
        {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        if thread::panicking() {
            let talk = self.talk.lock().map(|talk| talk.clone()).unwrap_or_default();
            eprintln!("--- the conversation\n{}--- stderr\n{talk}---", self.transcript);
        }
    }
}

/// A request or notification of the server.
fn check_method(message: &Value) {
    assert_eq!(message["jsonrpc"], "2.0");
    assert!(message["method"].is_string(), "`method` is a string");
    assert!(message.get("result").is_none() && message.get("error").is_none(), "a message is one thing only");
    if let Some(id) = message.get("id") {
        assert!(id.is_string() || id.is_i64() || id.is_u64(), "the id of a request is a string or an integer");
    }
    assert!(message.get("params").is_none_or(Value::is_object), "`params` is an object");
}

/// An answer. Every error names its kind in words as well as by number.
fn check_response(message: &Value) {
    assert_eq!(message["jsonrpc"], "2.0");
    match (message.get("result"), message.get("error")) {
        (Some(result), None) => {
            assert!(result.is_object(), "a result is an object");
            let id = &message["id"];
            assert!(id.is_string() || id.is_number(), "a result has an id");
        }
        (None, Some(error)) => {
            assert!(error["code"].is_i64(), "`error.code` is an integer");
            assert!(error["message"].as_str().is_some_and(|text| !text.is_empty()), "`error.message` says something");
            let code = error["data"]["code"].as_str().expect("`error.data.code` is a word");
            assert!(code.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{code} is a symbol");
        }
        _ => panic!("neither a result nor an error, or both"),
    }
}

/// Runs a test against both subjects, one after the other.
pub(crate) fn both(test: impl Fn(Wire)) {
    for subject in Subject::BOTH {
        test(Wire::start(subject));
    }
}

/// How long something took at most.
pub(crate) fn within(limit: Duration, what: impl FnOnce()) {
    let begun = Instant::now();
    what();
    assert!(begun.elapsed() < limit, "took {:?}, more than {limit:?}", begun.elapsed());
}
