//! `text/event-stream`: cuts a stream of bytes into events, in bounded memory.
//!
//! Most events hold one line of data; it is handed out without being copied.

use bytes::{Bytes, BytesMut};
use std::time::Duration;

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// The longest pause that a server may ask for before we come back.
const MAX_RETRY: Duration = Duration::from_secs(300);

/// One event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Event {
    /// Its type; empty means `message`.
    pub(super) kind: Bytes,
    pub(super) data: Bytes,
}

impl Event {
    pub(super) fn is_message(&self) -> bool {
        self.kind.is_empty() || *self.kind == *b"message"
    }
}

/// One event, or line of one, is longer than the limit.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLong;

/// Reads events.
#[derive(Debug)]
pub(super) struct Events {
    buffer: BytesMut,
    searched: usize,
    limit: usize,
    at_start: bool,
    /// The last line ended with a carriage return; a line feed right behind it belongs to it.
    after_return: bool,
    kind: Bytes,
    data: Vec<Bytes>,
    gathered: usize,
    /// The id that the next event will have, and the one of the last event that was complete.
    next_id: Option<Bytes>,
    last_id: Option<Bytes>,
    retry: Option<Duration>,
}

impl Events {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            searched: 0,
            limit,
            at_start: true,
            after_return: false,
            kind: Bytes::new(),
            data: Vec::new(),
            gathered: 0,
            next_id: None,
            last_id: None,
            retry: None,
        }
    }

    /// By which the server finds the place where the stream ended.
    pub(super) fn last_id(&self) -> Option<&Bytes> {
        self.last_id.as_ref()
    }

    /// How long the server wants us to wait before we come back.
    pub(super) fn retry(&self) -> Option<Duration> {
        self.retry
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next event that is complete and holds data; `None` if more bytes are needed.
    pub(super) fn next(&mut self) -> Result<Option<Event>, TooLong> {
        while let Some(line) = self.line() {
            if line.is_empty() {
                if let Some(event) = self.dispatch() {
                    return Ok(Some(event));
                }
            } else {
                self.field(&line);
                if self.gathered > self.limit {
                    return Err(TooLong);
                }
            }
        }
        if self.gathered + self.buffer.len() > self.limit { Err(TooLong) } else { Ok(None) }
    }

    fn line(&mut self) -> Option<Bytes> {
        if self.at_start {
            if self.buffer.len() < BYTE_ORDER_MARK.len() && BYTE_ORDER_MARK.starts_with(&self.buffer) {
                return None;
            }
            if self.buffer.starts_with(BYTE_ORDER_MARK) {
                let _ = self.buffer.split_to(BYTE_ORDER_MARK.len());
            }
            self.at_start = false;
        }
        if self.after_return && !self.buffer.is_empty() {
            if self.buffer[0] == b'\n' {
                let _ = self.buffer.split_to(1);
            }
            self.after_return = false;
        }
        let Some(found) = memchr::memchr2(b'\r', b'\n', &self.buffer[self.searched..]) else {
            self.searched = self.buffer.len();
            return None;
        };
        let end = self.searched + found;
        self.searched = 0;
        self.after_return = self.buffer[end] == b'\r';
        let line = self.buffer.split_to(end + 1).freeze();
        Some(line.slice(..end))
    }

    fn field(&mut self, line: &Bytes) {
        let colon = memchr::memchr(b':', line).unwrap_or(line.len());
        let start = (colon + 1).min(line.len());
        let start = if line.get(start) == Some(&b' ') { start + 1 } else { start };
        let value = line.slice(start..);
        match &line[..colon] {
            b"data" => {
                self.gathered += value.len() + 1;
                self.data.push(value);
            }
            b"event" => self.kind = value,
            b"id" if !value.contains(&0) => self.next_id = Some(value),
            b"retry" => {
                let text =
                    std::str::from_utf8(&value).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
                if let Some(milliseconds) = text.and_then(|text| text.parse().ok()) {
                    self.retry = Some(Duration::from_millis(milliseconds).min(MAX_RETRY));
                }
            }
            // Comments begin with a colon; what is unknown is ignored.
            _ => {}
        }
    }

    fn dispatch(&mut self) -> Option<Event> {
        self.last_id.clone_from(&self.next_id);
        self.gathered = 0;
        let kind = std::mem::take(&mut self.kind);
        let data = match self.data.as_slice() {
            [] => return None,
            [one] => one.clone(),
            many => Bytes::from(many.join(b"\n".as_slice())),
        };
        self.data.clear();
        // An event without content only carries an id to come back with.
        (!data.is_empty()).then_some(Event { kind, data })
    }
}

#[cfg(test)]
mod tests {
    use super::{Event, Events, TooLong};
    use std::time::Duration;

    fn read(events: &mut Events) -> Vec<(String, String)> {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let mut found = Vec::new();
        while let Some(Event { kind, data }) = events.next().unwrap() {
            found.push((text(&kind), text(&data)));
        }
        found
    }

    #[test]
    fn events_are_cut_wherever_the_bytes_are() {
        let stream = "\u{feff}: hello\n\nevent: message\nid: 7\ndata: {\"a\":1}\n\r\ndata:x\rdata: y\r\revent: e\r\n\
                      data: z\r\nid\r\nretry: 20\r\nnoise\r\n\r\ndata: unfinished";
        let expected =
            [("message", "{\"a\":1}"), ("", "x\ny"), ("e", "z")].map(|(kind, data)| (kind.to_owned(), data.to_owned()));
        for size in 1..stream.len() {
            let mut events = Events::new(1000);
            let mut found = Vec::new();
            for part in stream.as_bytes().chunks(size) {
                events.push(part);
                found.extend(read(&mut events));
            }
            assert_eq!(found, expected, "in parts of {size}");
            assert_eq!(events.last_id().map(|id| id.len()), Some(0), "an empty id takes the old one back");
            assert_eq!(events.retry(), Some(Duration::from_millis(20)));
        }
    }

    #[test]
    fn an_id_counts_once_its_event_is_complete() {
        let mut events = Events::new(1000);
        events.push(b"id: a\ndata: \n\nid: b\ndata: half");
        assert_eq!(read(&mut events), []);
        assert_eq!(events.last_id().map(|id| id.as_ref()), Some(b"a".as_slice()));
        events.push(b"\n\n");
        assert_eq!(read(&mut events), [(String::new(), "half".to_owned())]);
        assert_eq!(events.last_id().map(|id| id.as_ref()), Some(b"b".as_slice()));
    }

    #[test]
    fn what_is_too_long_is_noticed_before_it_is_complete() {
        for stream in [format!("data: {}", "x".repeat(101)), "data: 123456789\n".repeat(20), "x".repeat(101)] {
            let mut events = Events::new(100);
            events.push(stream.as_bytes());
            assert_eq!(events.next(), Err(TooLong), "{stream}");
        }
    }

    #[test]
    fn nonsense_is_ignored() {
        let mut events = Events::new(1000);
        events.push(b"retry: -5\nretry: 99999999999999999999999\nid: a\0b\n<html>\n\ndata\n\n:\n\n");
        assert_eq!(read(&mut events), []);
        assert_eq!((events.retry(), events.last_id()), (None, None));
        events.push(b"retry: 99999999\n");
        assert_eq!(read(&mut events), []);
        assert_eq!(events.retry(), Some(Duration::from_secs(300)));
    }
}
