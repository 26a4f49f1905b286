//! Takes what is too long out of a WebSocket connection before it is in anybody's memory.
//!
//! The library ends a connection with the first message that is longer than it may be. A relay that has stored one would send it
//! again after each reconnect, and whoever got it stored would keep us away from that relay for ever. So frames are looked at on their
//! way in: of a message that grows too long, the rest is left out. What remains is no message of the protocol, and is ignored.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What is read at once.
const PIECE: usize = 16 * 1024;

/// The longest header of a frame: two bytes, a long length, a mask.
const LONGEST_HEADER: usize = 14;

/// A stream whose messages are never longer than the limit.
#[derive(Debug)]
pub(crate) struct Sieve<S> {
    inner: S,
    limit: u64,
    place: Place,
    /// The bytes of a header until it is whole.
    header: Vec<u8>,
    /// How long the message has become with all its frames.
    message: u64,
    /// What was read and passed, from here on.
    passed: Vec<u8>,
    taken: usize,
}

/// Where in the stream we are.
#[derive(Debug, Clone, Copy)]
enum Place {
    /// In the answer that opens the connection, so many bytes into the empty line at its end.
    Opening(usize),
    Header,
    /// So many bytes of a frame are left to pass.
    Passing(u64),
    /// So many bytes of a frame are left to leave out.
    Skipping(u64),
}

impl<S> Sieve<S> {
    pub(crate) fn new(inner: S, limit: usize) -> Self {
        let limit = u64::try_from(limit).unwrap_or(u64::MAX);
        let header = Vec::with_capacity(LONGEST_HEADER);
        Self { inner, limit, place: Place::Opening(0), header, message: 0, passed: Vec::new(), taken: 0 }
    }

    fn sift(&mut self, mut bytes: &[u8]) {
        while let Some((&first, rest)) = bytes.split_first() {
            match self.place {
                Place::Opening(matched) => {
                    const END: &[u8] = b"\r\n\r\n";
                    self.passed.push(first);
                    let matched = if first == END[matched] { matched + 1 } else { usize::from(first == b'\r') };
                    self.place = if matched == END.len() { Place::Header } else { Place::Opening(matched) };
                    bytes = rest;
                }
                Place::Header => {
                    self.header.push(first);
                    self.begin();
                    bytes = rest;
                }
                Place::Passing(left) | Place::Skipping(left) => {
                    let here = usize::try_from(left).map_or(bytes.len(), |left| left.min(bytes.len()));
                    let (frame, rest) = bytes.split_at(here);
                    let left = left - u64::try_from(here).unwrap_or(left);
                    if matches!(self.place, Place::Passing(_)) {
                        self.passed.extend_from_slice(frame);
                        self.place = Place::Passing(left);
                    } else {
                        self.place = Place::Skipping(left);
                    }
                    if left == 0 {
                        self.place = Place::Header;
                    }
                    bytes = rest;
                }
            }
        }
    }

    /// Begins a frame once its header is whole.
    fn begin(&mut self) {
        let Some(length) = length(&self.header) else { return };
        let kind = self.header[0] & 0x0f;
        // Pings and the like may come in the middle of a message and are short.
        let is_control = kind >= 8;
        if !is_control {
            self.message = if kind == 0 { self.message.saturating_add(length) } else { length };
        }
        let is_too_long = if is_control { length > self.limit } else { self.message > self.limit };
        if is_too_long {
            // The frame stays, so that the message still ends, with nothing in it.
            self.passed.extend([self.header[0], 0]);
        } else {
            self.passed.append(&mut self.header);
        }
        self.header.clear();
        self.place = match (length, is_too_long) {
            (0, _) => Place::Header,
            (length, false) => Place::Passing(length),
            (length, true) => Place::Skipping(length),
        };
    }
}

/// How many bytes follow a header; `None` if it is not whole.
fn length(header: &[u8]) -> Option<u64> {
    let second = *header.get(1)?;
    let (short, is_masked) = (second & 0x7f, second & 0x80 != 0);
    let (size, length) = match short {
        126 => (4, u64::from(u16::from_be_bytes(header.get(2..4)?.try_into().ok()?))),
        127 => (10, u64::from_be_bytes(header.get(2..10)?.try_into().ok()?)),
        short => (2, u64::from(short)),
    };
    // Servers do not mask; if one does, the library says what it thinks of it.
    (header.len() >= size + if is_masked { 4 } else { 0 }).then_some(length)
}

impl<S: AsyncRead + Unpin> AsyncRead for Sieve<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.taken == self.passed.len() {
            self.passed.clear();
            self.taken = 0;
            let mut piece = [0; PIECE];
            let mut read = ReadBuf::new(&mut piece);
            ready!(Pin::new(&mut self.inner).poll_read(context, &mut read))?;
            if read.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
            self.sift(read.filled());
        }
        let here = buffer.remaining().min(self.passed.len() - self.taken);
        buffer.put_slice(&self.passed[self.taken..self.taken + here]);
        self.taken += here;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Sieve<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::Sieve;
    use tokio::io::AsyncReadExt;

    const OPENING: &[u8] = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n";

    /// What passes of these bytes with a limit of 200, read in pieces of every size.
    async fn check(frames: &[u8], expected: &[u8]) {
        let [frames, expected] = [frames, expected].map(|bytes| [OPENING, bytes].concat());
        for size in [1, 2, 3, 7, 1000] {
            let (mut near, far) = tokio::io::duplex(size);
            let frames = frames.clone();
            let writing = tokio::spawn(async move { tokio::io::AsyncWriteExt::write_all(&mut near, &frames).await });
            let mut passed = Vec::new();
            Sieve::new(far, 200).read_to_end(&mut passed).await.unwrap();
            writing.await.unwrap().unwrap();
            assert_eq!(passed, expected, "in pieces of {size}");
        }
    }

    #[tokio::test]
    async fn what_is_too_long_is_emptied_and_what_follows_is_whole() {
        let short = [&[0x81, 5][..], b"short"].concat();
        let longest = [&[0x81, 126, 0, 200][..], &[b'x'; 200]].concat();
        let long = [&[0x81, 126, 0, 201][..], &[b'x'; 201]].concat();
        let longer = [&[0x81, 127, 0, 0, 0, 0, 0, 1, 0, 0][..], &[b'x'; 65536]].concat();
        check(&[&short[..], &longest, &short].concat(), &[&short[..], &longest, &short].concat()).await;
        for long in [long, longer] {
            check(&[&short[..], &long, &short].concat(), &[&short[..], &[0x81, 0], &short].concat()).await;
        }
    }

    #[tokio::test]
    async fn a_message_in_many_frames_is_cut_where_it_becomes_too_long() {
        let first = [&[0x01, 100][..], &[b'x'; 100]].concat();
        let more = [&[0x00, 100][..], &[b'x'; 100]].concat();
        let last = [&[0x80, 100][..], &[b'x'; 100]].concat();
        let ping = [0x89, 1, b'!'];
        let short = [0x81, 2, b'o', b'k'];
        check(
            &[&first[..], &more, &ping, &more, &last, &short].concat(),
            &[&first[..], &more, &ping, &[0x00, 0], &[0x80, 0], &short].concat(),
        )
        .await;
    }
}
