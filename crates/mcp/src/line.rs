//! Cuts a stream of bytes into lines, in bounded memory and safe to cancel.
//!
//! A line that is longer than the limit is not kept: its beginning is handed out at once so that it can be answered, the
//! rest is read and dropped until the next line break; then its ending is handed out, too. A byte order mark at the start of the stream, carriage returns before the
//! line break and blank lines are passed over; a last line without a line break counts.

use bytes::{Buf, Bytes, BytesMut};
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt};

/// The longest message that is taken: what the official SDKs that have a limit also use.
pub const DEFAULT_LIMIT: usize = 16 * 1024 * 1024;

/// How much of an over-long line is kept at either end to find its id.
const KEPT: usize = 4096;

/// How much is asked for in one read. Small, because a request in flight keeps the block alive that it was read into.
const READ_SIZE: usize = 16 * 1024;

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// One line, without its line break.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    Text(Bytes),
    /// Longer than the limit; only the beginning is here.
    TooLong {
        beginning: Bytes,
    },
    /// The ending of the line that was too long.
    EndOfTooLong {
        ending: Bytes,
    },
}

/// Reads lines from `reader`.
#[derive(Debug)]
pub struct LineReader<R> {
    reader: R,
    limit: usize,
    buffer: BytesMut,
    /// How far `buffer` has been searched for a line break.
    searched: usize,
    at_start: bool,
    at_end: bool,
    /// Inside an over-long line: drop everything up to the next line break, but for the latest bytes.
    skipping: bool,
    ending: Vec<u8>,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub fn new(reader: R, limit: usize) -> Self {
        let buffer = BytesMut::new();
        Self { reader, limit, buffer, searched: 0, at_start: true, at_end: false, skipping: false, ending: Vec::new() }
    }

    /// The next line that is not blank; `None` at the end. Nothing is lost when the future is dropped.
    pub async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            if let Some(line) = self.take() {
                return Ok(Some(line));
            }
            if self.at_end {
                return Ok(None);
            }
            self.buffer.reserve(READ_SIZE);
            if self.reader.read_buf(&mut self.buffer).await? == 0 {
                self.at_end = true;
            }
        }
    }

    /// Another line, if one is complete in the buffer.
    fn take(&mut self) -> Option<Line> {
        loop {
            if self.at_start {
                let may_be_mark =
                    BYTE_ORDER_MARK.starts_with(&self.buffer) && self.buffer.len() < BYTE_ORDER_MARK.len();
                if may_be_mark && !self.at_end {
                    return None;
                }
                self.at_start = false;
                if self.buffer.starts_with(BYTE_ORDER_MARK) {
                    self.buffer.advance(BYTE_ORDER_MARK.len());
                }
            }
            let found = memchr::memchr(b'\n', &self.buffer[self.searched..]).map(|at| at + self.searched);
            let end = match found {
                Some(end) => end,
                None if self.at_end && (self.skipping || !self.buffer.is_empty()) => self.buffer.len(),
                None => {
                    self.searched = self.buffer.len();
                    return self.give_up_if_too_long();
                }
            };
            let has_return = end > 0 && self.buffer[end - 1] == b'\r';
            if !self.skipping && end - usize::from(has_return) > self.limit {
                // The last of it stays, to be handed out as its ending next.
                let beginning = beginning(&self.buffer[..end]);
                self.buffer.advance(end - end.min(KEPT));
                self.searched = 0;
                self.skipping = true;
                return Some(Line::TooLong { beginning });
            }
            let mut line = self.buffer.split_to(end);
            self.searched = 0;
            if found.is_some() {
                self.buffer.advance(1);
            }
            if std::mem::take(&mut self.skipping) {
                self.keep_ending(&line);
                return Some(Line::EndOfTooLong { ending: std::mem::take(&mut self.ending).into() });
            }
            if has_return {
                line.truncate(end - 1);
            }
            if !line.iter().all(u8::is_ascii_whitespace) {
                return Some(Line::Text(line.freeze()));
            }
        }
    }

    fn give_up_if_too_long(&mut self) -> Option<Line> {
        if self.skipping {
            let dropped = self.buffer.split();
            self.keep_ending(&dropped);
            self.searched = 0;
            return None;
        }
        // A carriage return at the end may belong to the line break that is still to come.
        let length = self.buffer.len() - usize::from(self.buffer.last() == Some(&b'\r'));
        if length <= self.limit {
            return None;
        }
        let dropped = std::mem::take(&mut self.buffer);
        self.keep_ending(&dropped);
        self.searched = 0;
        self.skipping = true;
        Some(Line::TooLong { beginning: beginning(&dropped) })
    }

    fn keep_ending(&mut self, bytes: &[u8]) {
        self.ending.extend_from_slice(&bytes[bytes.len().saturating_sub(KEPT)..]);
        self.ending.drain(..self.ending.len().saturating_sub(KEPT));
    }
}

fn beginning(line: &[u8]) -> Bytes {
    Bytes::copy_from_slice(&line[..line.len().min(KEPT)])
}

#[cfg(test)]
mod tests {
    use super::{Line, LineReader};
    use proptest::prelude::{any, prop, prop_assert_eq, proptest};
    use std::collections::VecDeque;
    use std::io;
    use std::pin::Pin;
    use std::task::{Context, Poll};
    use tokio::io::{AsyncRead, ReadBuf};

    /// Gives its chunks one by one and is not ready before each, so that every read can be cancelled.
    struct Chunks(VecDeque<Vec<u8>>, bool);

    impl AsyncRead for Chunks {
        fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
            self.1 = !self.1;
            if self.1 {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            if let Some(mut chunk) = self.0.pop_front() {
                let rest = chunk.split_off(chunk.len().min(buf.remaining()));
                buf.put_slice(&chunk);
                if !rest.is_empty() {
                    self.0.push_front(rest);
                }
            }
            Poll::Ready(Ok(()))
        }
    }

    fn read_all(chunks: impl IntoIterator<Item = Vec<u8>>, limit: usize) -> Vec<String> {
        let chunks = chunks.into_iter().filter(|chunk| !chunk.is_empty()).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut reader = LineReader::new(Chunks(chunks, false), limit);
            let mut lines = Vec::new();
            loop {
                // Every other poll is dropped: a reader that is not safe to cancel would lose bytes here.
                let line = tokio::select! { biased; line = reader.next() => line.unwrap(), () = tokio::task::yield_now() => continue };
                let (label, bytes) = match line {
                    Some(Line::Text(text)) => ("", text),
                    Some(Line::TooLong { beginning }) => ("too long: ", beginning),
                    Some(Line::EndOfTooLong { ending }) => ("ended: ", ending),
                    None => return lines,
                };
                lines.push(format!("{label}{}", String::from_utf8_lossy(&bytes)));
            }
        })
    }

    #[test]
    fn lines() {
        let cases: &[(&str, &[&str])] = &[
            ("", &[]),
            ("a\nb\n", &["a", "b"]),
            ("a\nb", &["a", "b"]),
            ("\u{feff}a\r\nb\r\n", &["a", "b"]),
            ("\n \n\r\na\n", &["a"]),
            ("a\n\u{feff}b\n", &["a", "\u{feff}b"]),
            ("123456789\nok\n", &["too long: 123456789", "ended: 123456789", "ok"]),
            ("12345678\nok\n", &["12345678", "ok"]),
            ("ok\n123456789", &["ok", "too long: 123456789", "ended: 123456789"]),
            ("12345678\r\nok\n", &["12345678", "ok"]),
        ];
        for (input, expected) in cases {
            assert_eq!(read_all([input.as_bytes().to_vec()], 8), *expected, "{input:?} at once");
            // Byte by byte the beginning of an over-long line is handed out as soon as it is too long.
            assert_eq!(read_all(input.bytes().map(|byte| vec![byte]), 8), *expected, "{input:?} byte by byte");
        }
    }

    #[tokio::test]
    async fn memory_stays_bounded_under_an_endless_line() {
        let mut reader = LineReader::new(tokio::io::repeat(b'x'), 100_000);
        assert!(matches!(reader.next().await.unwrap(), Some(Line::TooLong { .. })));
        let endless = tokio::time::timeout(std::time::Duration::from_millis(50), async {
            loop {
                // One step at a time, as `next` would never come back.
                tokio::select! { biased; line = reader.next() => panic!("{line:?}"), () = tokio::task::yield_now() => {} }
                assert!(reader.buffer.capacity() < 200_000);
            }
        });
        assert!(endless.await.is_err());
    }

    proptest! {
        #[test]
        fn any_cutting_gives_the_same_lines(bytes in prop::collection::vec(prop::sample::select(b"ab\n\r ".to_vec()), 0..120), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12)) {
            let mut places: Vec<_> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            places.extend([0, bytes.len()]);
            places.sort_unstable();
            let chunks = places.windows(2).map(|pair| bytes[pair[0]..pair[1]].to_vec());
            prop_assert_eq!(read_all(chunks, 1000), read_all([bytes.clone()], 1000));
        }
    }
}
