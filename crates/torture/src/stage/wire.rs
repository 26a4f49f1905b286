//! HTTP/1.1 by hand: requests whose every byte is the test's, and answers read off the socket.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use super::line::Line;

/// How long anything may take that must come. Long, because the machine may be busy with other things.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// One request, to be changed in any way before it is sent.
#[derive(Debug, Clone)]
pub struct Ask {
    pub line: String,
    headers: Vec<(String, String)>,
    body: Option<Vec<u8>>,
}

impl Ask {
    fn new(line: &str, body: Option<Vec<u8>>) -> Self {
        Self { line: format!("{line} HTTP/1.1"), headers: Vec::new(), body }
    }

    /// Messages for the endpoint.
    pub fn post(body: impl AsRef<[u8]>) -> Self {
        Self::post_to("/mcp", body)
    }

    pub fn post_to(target: &str, body: impl AsRef<[u8]>) -> Self {
        Self::new(&format!("POST {target}"), Some(body.as_ref().to_vec()))
            .with("Content-Type", "application/json")
            .with("Accept", "application/json, text/event-stream")
    }

    pub fn get(target: &str) -> Self {
        Self::new(&format!("GET {target}"), None).with("Accept", "text/event-stream")
    }

    /// Any method, without a body.
    pub fn bare(method: &str, target: &str) -> Self {
        Self::new(&format!("{method} {target}"), None)
    }

    /// Gives a header this value, whatever it had before.
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self = self.without(name);
        self.also(name, value)
    }

    /// Adds a header, even if it is there already.
    pub fn also(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self
    }

    pub fn has(&self, name: &str) -> bool {
        self.headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name))
    }

    /// The head, with the length of the body unless it says something about that itself.
    pub fn head(&self) -> String {
        let mut text = format!("{}\r\n", self.line);
        for (name, value) in &self.headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        if let Some(body) = &self.body
            && !self.has("Content-Length")
            && !self.has("Transfer-Encoding")
        {
            text.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        text + "\r\n"
    }

    pub fn bytes(&self) -> Vec<u8> {
        [self.head().as_bytes(), self.body.as_deref().unwrap_or_default()].concat()
    }
}

/// A connection to the gateway.
#[derive(Debug)]
pub struct Wire(BufReader<TcpStream>);

impl Wire {
    pub fn to(address: SocketAddr) -> Self {
        let stream = TcpStream::connect_timeout(&address, PATIENCE).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self(BufReader::new(stream))
    }

    pub fn socket(&self) -> &TcpStream {
        self.0.get_ref()
    }

    /// Writes; a server may close the connection before it has read everything.
    pub fn try_send(&self, bytes: &[u8]) -> std::io::Result<()> {
        self.socket().write_all(bytes)
    }

    pub fn send(&self, bytes: &[u8]) {
        self.try_send(bytes).unwrap();
    }

    /// Ends what is sent, but not what is read.
    pub fn finish(&self) {
        self.socket().shutdown(Shutdown::Write).unwrap();
    }

    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        match self.0.read_line(&mut line) {
            Ok(0) => None,
            Ok(_) => Some(line.trim_end_matches(['\r', '\n']).to_owned()),
            Err(error) if is_end(&error) => None,
            Err(error) => panic!("reading failed: {error}"),
        }
    }

    /// The head of the next answer; `None` if the connection was closed instead.
    pub fn head(&mut self) -> Option<Head> {
        let status = self.line()?;
        let code = status.strip_prefix("HTTP/1.1 ").or_else(|| status.strip_prefix("HTTP/1.0 "));
        let code = code.unwrap_or_else(|| panic!("no status line: {status:?}"))[..3].parse().unwrap();
        let mut headers = Vec::new();
        loop {
            let line = self.line().expect("the head ends early");
            if line.is_empty() {
                return Some(Head { status: code, headers });
            }
            let (name, value) = line.split_once(':').unwrap();
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
    }

    /// The next answer, which must come.
    pub fn answer(mut self) -> Answer {
        let head = self.head().expect("closed without an answer");
        self.body_of(head)
    }

    /// The next answer with its whole body; leaves the connection for another.
    pub fn next_answer(&mut self) -> Option<Answer> {
        let head = self.head()?;
        let mut body = Body::of(&head);
        let mut text = Vec::new();
        while let Some(part) = body.part(&mut self.0) {
            text.extend_from_slice(&part);
        }
        Some(Answer { head, body: text })
    }

    fn body_of(mut self, head: Head) -> Answer {
        let mut body = Body::of(&head);
        let mut text = Vec::new();
        while let Some(part) = body.part(&mut self.0) {
            text.extend_from_slice(&part);
        }
        Answer { head, body: text }
    }

    /// The next answer's head, and its messages as they come.
    pub fn messages(mut self) -> Messages {
        let head = self.head().expect("closed without an answer");
        let body = Body::of(&head);
        Messages { head, body, wire: self, text: Vec::new(), has_ended: false, kept: Vec::new() }
    }
}

fn is_end(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::UnexpectedEof)
}

/// Status and headers.
#[derive(Debug, Clone)]
pub struct Head {
    pub status: u16,
    headers: Vec<(String, String)>,
}

impl Head {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.headers.iter().map(|(name, _)| name.as_str())
    }

    fn is_stream(&self) -> bool {
        self.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"))
    }
}

/// How the end of a body is told.
#[derive(Debug)]
enum Body {
    Rest(usize),
    Chunks,
    Over,
}

impl Body {
    fn of(head: &Head) -> Self {
        if head.header("transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked")) {
            return Body::Chunks;
        }
        match head.header("content-length") {
            Some(length) => Body::Rest(length.parse().unwrap()),
            None => Body::Over,
        }
    }

    /// The next piece; `None` at the end, however it came.
    fn part(&mut self, reader: &mut BufReader<TcpStream>) -> Option<Vec<u8>> {
        let length = match self {
            Body::Over | Body::Rest(0) => return None,
            Body::Rest(length) => *length,
            Body::Chunks => {
                let mut line = String::new();
                match reader.read_line(&mut line) {
                    Ok(0) => return None,
                    Err(error) if is_end(&error) => return None,
                    read => read.unwrap(),
                };
                usize::from_str_radix(line.trim(), 16).unwrap_or_else(|_| panic!("no chunk size: {line:?}"))
            }
        };
        let mut part = vec![0; length];
        match reader.read_exact(&mut part) {
            Err(error) if is_end(&error) => return None,
            read => read.unwrap(),
        }
        match self {
            Body::Chunks => {
                let mut ending = [0; 2];
                if reader.read_exact(&mut ending).is_err() || length == 0 {
                    *self = Body::Over;
                    return None;
                }
                assert_eq!(&ending, b"\r\n");
            }
            _ => *self = Body::Over,
        }
        Some(part)
    }
}

/// A whole answer.
#[derive(Debug)]
pub struct Answer {
    pub head: Head,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn status(&self) -> u16 {
        self.head.status
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    /// The body, which must be one JSON message.
    pub fn message(&self) -> Line {
        let kind = self.head.header("content-type");
        assert_eq!(kind, Some("application/json"), "{} {}", self.status(), self.text());
        Line(self.text())
    }

    /// The body, which must be a JSON-RPC error, as its code.
    pub fn code(&self) -> i64 {
        let message = self.message();
        assert_eq!(message.raw(&["jsonrpc"]), "\"2.0\"");
        message.raw(&["error", "code"]).parse().unwrap()
    }
}

/// One server-sent event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Event {
    pub id: Option<String>,
    pub kind: String,
    pub data: String,
}

/// The messages of one answer, whether it is one JSON text or a stream of events.
#[derive(Debug)]
pub struct Messages {
    pub head: Head,
    body: Body,
    wire: Wire,
    /// Read, but not yet a whole event.
    text: Vec<u8>,
    has_ended: bool,
    /// Messages that came before the one that was asked for.
    kept: Vec<Line>,
}

impl Messages {
    pub fn is_stream(&self) -> bool {
        self.head.is_stream()
    }

    /// The next event, one without data included; `None` at the end.
    pub fn event(&mut self) -> Option<Event> {
        assert!(self.is_stream(), "no stream of events: {:?}", self.head);
        // Signs of life could keep a test waiting for ever.
        let deadline = Instant::now() + PATIENCE;
        loop {
            assert!(Instant::now() < deadline, "nothing came but signs of life");
            if let Some(end) = self.text.windows(2).position(|pair| pair == b"\n\n") {
                let event = String::from_utf8(self.text.drain(..end + 2).collect()).unwrap();
                match parse(&event) {
                    Some(event) => return Some(event),
                    None => continue,
                }
            }
            match self.body.part(&mut self.wire.0) {
                Some(part) => self.text.extend_from_slice(&part),
                None => return None,
            }
        }
    }

    /// The next message; `None` at the end.
    pub fn next(&mut self) -> Option<Line> {
        if self.is_stream() {
            loop {
                let event = self.event()?;
                if event.kind == "message" && !event.data.is_empty() {
                    return Some(Line(event.data));
                }
            }
        }
        if std::mem::replace(&mut self.has_ended, true) {
            return None;
        }
        let mut text = Vec::new();
        while let Some(part) = self.body.part(&mut self.wire.0) {
            text.extend_from_slice(&part);
        }
        (!text.is_empty()).then(|| Line(String::from_utf8(text).unwrap()))
    }

    /// The next message that fits; others are kept.
    pub fn find(&mut self, what: &str, fits: impl Fn(&Line) -> bool) -> Line {
        if let Some(place) = self.kept.iter().position(&fits) {
            return self.kept.remove(place);
        }
        loop {
            let line = self.next().unwrap_or_else(|| panic!("ended without {what}; there were {:?}", self.kept));
            if fits(&line) {
                return line;
            }
            self.kept.push(line);
        }
    }

    pub fn answer(&mut self, id: &str) -> Line {
        self.find(&format!("the answer to {id}"), |line| line.has_id(id))
    }

    pub fn take(&mut self, method: &str) -> Line {
        self.find(method, |line| line.is_method(method))
    }

    /// Everything that is left, to the end.
    pub fn rest(&mut self) -> Vec<Line> {
        let mut rest = std::mem::take(&mut self.kept);
        rest.extend(std::iter::from_fn(|| self.next()));
        rest
    }
}

/// Reads one event; `None` for a comment that only shows life.
fn parse(text: &str) -> Option<Event> {
    let mut event = Event { kind: "message".to_owned(), ..Event::default() };
    let mut says = false;
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with(':')) {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        says = true;
        match name {
            "id" => event.id = Some(value.to_owned()),
            "event" => event.kind = value.to_owned(),
            "data" => event.data.push_str(value),
            "retry" => drop(value.parse::<u64>().unwrap()),
            other => panic!("unknown field {other} in {text:?}"),
        }
    }
    says.then_some(event)
}
