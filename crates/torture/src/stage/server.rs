//! A server behind the gateway, seen from the test that plays it.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::Transcript;
use super::line::{Inbox, Line, PATIENCE};

/// The members that follow the id in the answers that are given without asking the test, by method.
type Answers = Arc<Mutex<BTreeMap<String, String>>>;

/// One configured server; the gateway may start it several times.
pub struct Server {
    pub name: String,
    pub socket: PathBuf,
    /// More lines for its table in the configuration.
    pub settings: String,
    lives: Receiver<Life>,
    answers: Answers,
}

/// One process of a server, from its start to its end.
pub struct Life {
    pub pid: i32,
    pub environment: Vec<String>,
    name: String,
    orders: Arc<Mutex<UnixStream>>,
    inbox: Inbox,
    /// Other reports of the puppet.
    reports: Receiver<String>,
    transcript: Transcript,
}

const WELCOME: &str = r#""result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"puppet","version":"1"}}"#;

impl Server {
    /// A server with one tool called `x`; only the handshake and lists are answered without asking.
    pub fn new(name: &str, directory: &Path, transcript: &Transcript) -> Self {
        let socket = directory.join(format!("{name}.socket"));
        let listener = UnixListener::bind(&socket).unwrap();
        let answers: Answers = Arc::default();
        let (born, lives) = channel();
        let (name, told, known) = (name.to_owned(), transcript.clone(), answers.clone());
        let own = name.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (name, told, known, born) = (own.clone(), told.clone(), known.clone(), born.clone());
                std::thread::spawn(move || follow(stream, &name, &known, &told, &born));
            }
        });
        let server = Self { name, socket, settings: String::new(), lives, answers };
        server.answers("server/discover", r#""error":{"code":-32601,"message":"Method not found"}"#);
        server.answers("initialize", WELCOME);
        server.answers("tools/list", r#""result":{"tools":[{"name":"x","inputSchema":{"type":"object"}}]}"#);
        server
    }

    /// Answers requests of this method with these members from now on.
    pub fn answers(&self, method: &str, members: &str) {
        self.answers.lock().unwrap().insert(method.to_owned(), members.to_owned());
    }

    /// Leaves requests of this method to the test.
    pub fn leaves(&self, method: &str) {
        self.answers.lock().unwrap().remove(method);
    }

    /// Waits until the gateway has started it (again).
    pub fn life(&self) -> Life {
        self.lives_within(PATIENCE).unwrap_or_else(|| panic!("{} was not started", self.name))
    }

    /// The next life, if there is one by then.
    pub fn lives_within(&self, patience: Duration) -> Option<Life> {
        self.lives.recv_timeout(patience).ok()
    }
}

fn follow(stream: UnixStream, name: &str, answers: &Answers, transcript: &Transcript, born: &Sender<Life>) {
    let orders = Arc::new(Mutex::new(stream.try_clone().unwrap()));
    let (lines, incoming) = channel();
    let (report, reports) = channel();
    let mut life = Some(Life {
        pid: 0,
        environment: Vec::new(),
        name: name.to_owned(),
        orders: orders.clone(),
        inbox: Inbox::new(incoming),
        reports,
        transcript: transcript.clone(),
    });
    for text in BufReader::new(stream).lines().map_while(Result::ok) {
        let (kind, rest) = text.split_at(1);
        match (kind, life.as_mut()) {
            ("p", Some(life)) => life.pid = rest.parse().unwrap(),
            ("v", Some(life)) => life.environment.push(rest.to_owned()),
            ("!", _) => {
                let _ = born.send(life.take().unwrap());
            }
            ("<", _) => {
                transcript.add(&format!("{name} <-"), rest);
                let line = Line(rest.to_owned());
                let method = line.find(&["method"]).unwrap_or_default();
                let known = answers.lock().unwrap().get(method.trim_matches('"')).cloned();
                match (known, line.find(&["id"])) {
                    (Some(members), Some(id)) => {
                        order(&orders, transcript, name, &format!(r#">{{"jsonrpc":"2.0","id":{id},{members}}}"#));
                    }
                    _ => drop(lines.send(line)),
                }
            }
            _ => drop(report.send(text.clone())),
        }
    }
    transcript.add(name, "(is gone)");
}

fn order(orders: &Mutex<UnixStream>, transcript: &Transcript, name: &str, text: &str) {
    transcript.add(&format!("{name} does"), text);
    // A process that is gone is noticed by what it does not do.
    let _ = writeln!(orders.lock().unwrap(), "{text}");
}

impl Life {
    /// Gives the puppet an order.
    pub fn order(&self, text: &str) {
        order(&self.orders, &self.transcript, &self.name, text);
    }

    /// Writes a line to the gateway.
    pub fn send(&self, line: &str) {
        self.order(&format!(">{line}"));
    }

    /// Answers a request with these members after the id.
    pub fn reply(&self, request: &Line, members: &str) {
        self.send(&format!(r#"{{"jsonrpc":"2.0","id":{},{members}}}"#, request.id()));
    }

    /// Gives an order and waits until the puppet reports what came of it.
    pub fn order_and_wait(&self, text: &str) -> String {
        self.order(text);
        let report = self.reports.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("{text} was not done"));
        report[1..].to_owned()
    }

    /// Starts a process below it: `group` or `session`.
    pub fn spawn(&self, how: &str) -> i32 {
        self.order_and_wait(&format!("g{how}")).parse().unwrap()
    }

    /// Waits for a line that was not answered already.
    pub fn find_within(&mut self, patience: Duration, fits: impl Fn(&Line) -> bool) -> Option<Line> {
        self.inbox.find(patience, fits)
    }

    /// Waits for a request or notification.
    pub fn take(&mut self, method: &str) -> Line {
        self.transcript.add(&self.name, &format!("waits for {method}"));
        let found = self.find_within(PATIENCE, |line| line.is_method(method));
        found.unwrap_or_else(|| panic!("{} waited in vain for {method}", self.name))
    }

    /// Waits for the answer to a request of its own.
    pub fn answer(&mut self, id: &str) -> Line {
        let found = self.find_within(PATIENCE, |line| line.has_id(id));
        found.unwrap_or_else(|| panic!("{} waited in vain for the answer to {id}", self.name))
    }

    /// What came and was not asked for.
    pub fn unclaimed(&mut self) -> Vec<Line> {
        self.inbox.unclaimed()
    }
}
