//! The line reader: however bytes are cut into reads, the lines are the same, and none is longer than the limit.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rialto_mcp::line::{Line, LineReader};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, ReadBuf};

const LIMIT: usize = 32;

/// Gives a few bytes at a time, as the first byte of the input says.
struct Cut<'a> {
    bytes: &'a [u8],
    size: usize,
}

impl AsyncRead for Cut<'_> {
    fn poll_read(mut self: Pin<&mut Self>, _cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let size = self.size.min(self.bytes.len()).min(buf.remaining());
        let (now, later) = self.bytes.split_at(size);
        buf.put_slice(now);
        self.bytes = later;
        Poll::Ready(Ok(()))
    }
}

fn lines(bytes: &[u8], size: usize) -> Vec<Option<Vec<u8>>> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime without drivers");
    runtime.block_on(async {
        let mut reader = LineReader::new(Cut { bytes, size }, LIMIT);
        let mut lines = Vec::new();
        while let Some(line) = reader.next().await.expect("memory does not fail") {
            lines.push(match line {
                Line::Text(text) => {
                    assert!(text.len() <= LIMIT && !text.contains(&b'\n'));
                    Some(text.to_vec())
                }
                Line::TooLong { .. } => None,
                Line::EndOfTooLong { ending } => Some(ending.to_vec()),
            });
        }
        lines
    })
}

fuzz_target!(|input: &[u8]| {
    let Some((size, bytes)) = input.split_first() else { return };
    let at_once = lines(bytes, bytes.len().max(1));
    assert_eq!(at_once, lines(bytes, usize::from(*size % 7) + 1));
});
