//! This process's standard input and output as cheap asynchronous streams.
//!
//! Hosts start servers with pipes (most) or socket pairs (Node). Both can be read and written without a helper thread,
//! which halves the cost of a call and lets the process end while a read is pending. Terminals, files and whatever else
//! go through threads.

use crate::serve::Streams;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::pin::Pin;
use tokio::io::{AsyncRead, AsyncWrite, Interest};
use tokio::net::unix::pipe;

/// Standard input and output.
pub fn streams() -> Streams {
    Streams { reader: input(), writer: output(), closed: Box::pin(closed()) }
}

fn input() -> Pin<Box<dyn AsyncRead + Send>> {
    match open(rustix::stdio::stdin()) {
        Ok(Stream::Pipe(file)) => match pipe::Receiver::from_owned_fd(file) {
            Ok(receiver) => Box::pin(receiver),
            Err(_) => Box::pin(tokio::io::stdin()),
        },
        Ok(Stream::Socket(socket)) => match tokio::net::UnixStream::from_std(socket) {
            Ok(stream) => Box::pin(stream),
            Err(_) => Box::pin(tokio::io::stdin()),
        },
        _ => Box::pin(tokio::io::stdin()),
    }
}

fn output() -> Pin<Box<dyn AsyncWrite + Send>> {
    match open(rustix::stdio::stdout()) {
        Ok(Stream::Pipe(file)) => match pipe::Sender::from_owned_fd(file) {
            Ok(sender) => Box::pin(sender),
            Err(_) => Box::pin(tokio::io::stdout()),
        },
        Ok(Stream::Socket(socket)) => match tokio::net::UnixStream::from_std(socket) {
            Ok(stream) => Box::pin(stream),
            Err(_) => Box::pin(tokio::io::stdout()),
        },
        _ => Box::pin(tokio::io::stdout()),
    }
}

/// Waits until the reader of our standard output is gone. A pipe then has an error pending; of a socket, the other end is
/// closed. One socket for both directions is noticed by whoever reads from it.
async fn closed() {
    let is_gone = match open(rustix::stdio::stdout()) {
        Ok(Stream::Pipe(file)) => match pipe::Sender::from_owned_fd(file) {
            Ok(sender) => sender.ready(Interest::ERROR).await.is_ok(),
            Err(_) => false,
        },
        Ok(Stream::Socket(socket)) if !is_shared() => match tokio::net::UnixStream::from_std(socket) {
            Ok(stream) => stream.ready(Interest::READABLE).await.is_ok_and(|ready| ready.is_read_closed()),
            Err(_) => false,
        },
        _ => false,
    };
    if !is_gone {
        std::future::pending::<()>().await;
    }
}

/// Whether standard input and output are the same thing, as under `inetd`.
fn is_shared() -> bool {
    let identity = |fd| rustix::fs::fstat(fd).map(|stat| (stat.st_dev, stat.st_ino)).ok();
    identity(rustix::stdio::stdin()) == identity(rustix::stdio::stdout())
}

enum Stream {
    Pipe(OwnedFd),
    Socket(std::os::unix::net::UnixStream),
    Other,
}

/// A duplicate of `fd`, not blocking. The flag belongs to the open pipe end or socket, which is ours; standard error may be
/// the same one, which is why talk must not rely on blocking either.
fn open(fd: BorrowedFd<'_>) -> io::Result<Stream> {
    let file = File::from(fd.as_fd().try_clone_to_owned()?);
    let kind = file.metadata()?.file_type();
    if !kind.is_fifo() && !kind.is_socket() {
        return Ok(Stream::Other);
    }
    fcntl_setfl(&file, fcntl_getfl(&file)? | OFlags::NONBLOCK)?;
    let fd = OwnedFd::from(file);
    Ok(if kind.is_fifo() { Stream::Pipe(fd) } else { Stream::Socket(fd.into()) })
}
