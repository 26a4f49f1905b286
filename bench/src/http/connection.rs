//! One connection that is kept: sends a request that is bytes already, and reads the whole response to it.

use std::{io, net::SocketAddr};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

pub struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// Where a response ends.
enum Length {
    Bytes(usize),
    Chunks,
}

fn broken(what: &str, text: &[u8]) -> io::Error {
    io::Error::other(format!("{what}: {}", String::from_utf8_lossy(&text[..text.len().min(600)])))
}

impl Connection {
    pub async fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: Vec::with_capacity(4096) })
    }

    /// The response: its head and its body, the latter with the marks of chunks in it if it came in chunks.
    pub async fn ask(&mut self, request: &[u8]) -> io::Result<(&[u8], &[u8])> {
        self.stream.write_all(request).await?;
        self.buffer.clear();
        let head = loop {
            if let Some(end) = memchr::memmem::find(&self.buffer, b"\r\n\r\n") {
                break end + 4;
            }
            self.read().await?;
        };
        match length(&self.buffer[..head])? {
            Length::Bytes(length) => {
                while self.buffer.len() < head + length {
                    self.read().await?;
                }
            }
            Length::Chunks => {
                let mut place = head;
                while !self.pass_chunk(&mut place)? {
                    self.read().await?;
                }
            }
        }
        Ok(self.buffer.split_at(head))
    }

    /// Steps over the chunks that are there as a whole; says whether the last one was among them.
    fn pass_chunk(&self, place: &mut usize) -> io::Result<bool> {
        while let Some(end) = memchr::memmem::find(&self.buffer[*place..], b"\r\n") {
            let digits = &self.buffer[*place..*place + end];
            let size = std::str::from_utf8(digits).ok().and_then(|digits| usize::from_str_radix(digits, 16).ok());
            let size = size.ok_or_else(|| broken("not the size of a chunk", digits))?;
            let next = *place + end + 2 + size + 2;
            if self.buffer.len() < next {
                return Ok(false);
            }
            *place = next;
            if size == 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn read(&mut self) -> io::Result<()> {
        match self.stream.read_buf(&mut self.buffer).await? {
            0 => Err(broken("the connection was closed", &self.buffer)),
            _ => Ok(()),
        }
    }
}

fn length(head: &[u8]) -> io::Result<Length> {
    let text = String::from_utf8_lossy(head).to_ascii_lowercase();
    let status = text.split(' ').nth(1).unwrap_or_default();
    if !status.starts_with('2') {
        return Err(broken("refused", head));
    }
    let header = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    if header("transfer-encoding:") == Some("chunked") {
        return Ok(Length::Chunks);
    }
    let length = header("content-length:").and_then(|length| length.parse().ok());
    // Some answers have no body and say nothing about it.
    Ok(Length::Bytes(length.unwrap_or(0)))
}
