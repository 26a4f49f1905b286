//! Talks to a subject: the handshake, calls one after the other, and calls with many in flight.
//!
//! Requests are bytes with a place for the id, so that the driver costs next to nothing beside the subject. Every answer
//! is matched to its request by id and must hold the text that was sent: a lost, doubled or wrong answer, or an error, fails
//! the measurement.

use std::{
    io,
    time::{Duration, Instant},
};

use crate::process::Process;

/// Calls that wait for their answer at the same time in the pipelined measurement.
pub const IN_FLIGHT: usize = 64;

const INITIALIZE: &[u8] = br#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"rialto-bench","version":"1"}}}
"#;
const INITIALIZED: &[u8] = b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n";
const CALL_START: &[u8] = br#"{"jsonrpc":"2.0","id":"#;
const CALL_END: &[u8] = br#","method":"tools/call","params":{"name":"echo","arguments":{"text":"The quick brown fox jumps over the lazy dog."}}}
"#;
const EXPECTED: &[u8] = b"The quick brown fox jumps over the lazy dog.";

fn broken(what: impl Into<String>) -> io::Error {
    io::Error::other(what.into())
}

/// A subject with an open session.
pub struct Session {
    pub process: Process,
    /// The id of the next call; ids never repeat in a session.
    next: usize,
    buffer: Vec<u8>,
    filled: usize,
}

impl Session {
    /// Starts the subject and returns how long it took until it answered `initialize`.
    pub fn open(command: &[String]) -> io::Result<(Self, Duration)> {
        let begin = Instant::now();
        let process = Process::start(command)?;
        let mut session = Self { process, next: 1, buffer: vec![0; 1 << 18], filled: 0 };
        session.process.send(INITIALIZE)?;
        let mut answer = Err(broken("no answer to initialize"));
        session.lines(|line| answer = check(line, b"\"result\""))?;
        let startup = begin.elapsed();
        answer?;
        session.process.send(INITIALIZED)?;
        Ok((session, startup))
    }

    /// Waits for output and hands over every complete line; what is incomplete stays for the next time.
    fn lines(&mut self, mut line: impl FnMut(&[u8])) -> io::Result<()> {
        loop {
            if self.filled == self.buffer.len() {
                self.buffer.resize(self.filled * 2, 0);
            }
            let read = self.process.receive(&mut self.buffer[self.filled..])?;
            let end = self.filled + read;
            let mut begin = 0;
            for (offset, _) in self.buffer[self.filled..end].iter().enumerate().filter(|(_, byte)| **byte == b'\n') {
                let newline = self.filled + offset;
                line(&self.buffer[begin..newline]);
                begin = newline + 1;
            }
            self.buffer.copy_within(begin..end, 0);
            self.filled = end - begin;
            if begin > 0 {
                return Ok(());
            }
        }
    }

    /// One call after the other; returns the time of each in nanoseconds.
    pub fn sequential(&mut self, calls: usize) -> io::Result<Vec<u64>> {
        let mut latencies = Vec::with_capacity(calls);
        let mut request = Vec::with_capacity(256);
        for _ in 0..calls {
            request.clear();
            append_call(&mut request, self.next);
            let expected = self.next;
            self.next += 1;
            let begin = Instant::now();
            self.process.send(&request)?;
            let mut answer = Err(broken("no answer"));
            self.lines(|line| {
                let right =
                    if id(line) == Some(expected) { Ok(()) } else { Err(broken("an answer to something else")) };
                answer = right.and(check(line, EXPECTED));
            })?;
            latencies.push(nanoseconds(begin.elapsed()));
            answer?;
        }
        Ok(latencies)
    }

    /// Asks for all tools, page by page; there must be so many.
    pub fn list(&mut self, tools: usize) -> io::Result<()> {
        const NEXT: &[u8] = b"\"nextCursor\":";
        let (mut found, mut params) = (0, String::new());
        loop {
            let expected = self.next;
            self.next += 1;
            let request = format!(r#"{{"jsonrpc":"2.0","id":{expected},"method":"tools/list"{params}}}"#);
            self.process.send(format!("{request}\n").as_bytes())?;
            let (mut cursor, mut is_answered) = (None, false);
            self.lines(|line| {
                is_answered |= id(line) == Some(expected);
                found += memchr::memmem::find_iter(line, b"\"inputSchema\"").count();
                cursor = memchr::memmem::rfind(line, NEXT).map(|place| {
                    let value = &line[place + NEXT.len()..];
                    let end = value.iter().skip(1).position(|byte| *byte == b'"').map_or(0, |end| end + 2);
                    String::from_utf8_lossy(&value[..end]).into_owned()
                });
            })?;
            match cursor {
                Some(cursor) if is_answered => params = format!(r#","params":{{"cursor":{cursor}}}"#),
                None if is_answered && found == tools => return Ok(()),
                _ => return Err(broken(format!("{found} tools instead of {tools}"))),
            }
        }
    }

    /// Keeps [`IN_FLIGHT`] calls waiting until all are answered; returns the time of each in nanoseconds.
    pub fn pipelined(&mut self, calls: usize) -> io::Result<Vec<u64>> {
        let first = self.next;
        let begin = Instant::now();
        // For each call the moment it was sent, then the time it took.
        let mut times = vec![0; calls];
        let mut answered = vec![false; calls];
        let (mut sent, mut received) = (0, 0);
        let mut request = Vec::with_capacity(IN_FLIGHT * 256);
        let (mut wrong, mut place) = (None, 0);
        while received < calls {
            request.clear();
            let now = nanoseconds(begin.elapsed());
            while sent < calls && sent - received < IN_FLIGHT {
                append_call(&mut request, first + sent);
                times[sent] = now;
                sent += 1;
            }
            self.process.send(&request)?;
            let arrived = &mut answered;
            let mut batch = [0; IN_FLIGHT];
            let mut size = 0;
            self.lines(|line| match id(line).and_then(|id| id.checked_sub(first)) {
                Some(index) if index < sent && !arrived[index] && size < IN_FLIGHT && echoes(line, &mut place) => {
                    arrived[index] = true;
                    batch[size] = index;
                    size += 1;
                }
                _ => wrong = Some(String::from_utf8_lossy(line).into_owned()),
            })?;
            if let Some(line) = wrong {
                return Err(broken(format!("not the answer to a call that waits: {line}")));
            }
            let now = nanoseconds(begin.elapsed());
            for &index in &batch[..size] {
                times[index] = now - times[index];
            }
            received += size;
        }
        self.next += calls;
        Ok(times)
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn append_call(request: &mut Vec<u8>, id: usize) {
    request.extend_from_slice(CALL_START);
    let mut digits = [0; 20];
    let mut rest = id;
    let mut begin = digits.len();
    while begin == digits.len() || rest > 0 {
        begin -= 1;
        digits[begin] = b"0123456789"[rest % 10];
        rest /= 10;
    }
    request.extend_from_slice(&digits[begin..]);
    request.extend_from_slice(CALL_END);
}

/// The id of an answer.
fn id(line: &[u8]) -> Option<usize> {
    const KEY: &[u8] = b"\"id\":";
    let begin = line.windows(KEY.len()).position(|window| window == KEY)? + KEY.len();
    let digits = line[begin..].iter().skip_while(|byte| **byte == b' ').take_while(|byte| byte.is_ascii_digit());
    Some(digits.fold(0, |id, digit| id * 10 + usize::from(digit - b'0')))
}

/// Whether an answer holds the text that was sent. It is looked for where the previous answer had it, because a search would
/// cost the driver as much as the fastest subject needs for the call.
fn echoes(line: &[u8], place: &mut usize) -> bool {
    if line.get(*place..).is_some_and(|rest| rest.starts_with(EXPECTED)) {
        return true;
    }
    let found = line.windows(EXPECTED.len()).position(|window| window == EXPECTED);
    *place = found.unwrap_or(*place);
    found.is_some()
}

fn check(line: &[u8], part: &[u8]) -> io::Result<()> {
    if line.windows(part.len()).any(|window| window == part) {
        return Ok(());
    }
    Err(broken(format!("not what was expected: {}", String::from_utf8_lossy(line))))
}
