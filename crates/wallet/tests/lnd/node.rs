//! A server that answers as it is told, one answer for each request, and remembers what it was asked.

use serde_json::Value;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// What follows the last line of an answer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    End,
    /// Nothing, and the connection stays.
    Silence,
}

pub(crate) struct Reply {
    pub(crate) status: u16,
    /// Each on a line of its own.
    pub(crate) lines: Vec<Value>,
    pub(crate) then: Then,
}

pub(crate) fn reply(status: u16, body: Value) -> Reply {
    Reply { status, lines: vec![body], then: Then::End }
}

pub(crate) fn lines(lines: impl IntoIterator<Item = Value>) -> Reply {
    Reply { status: 200, lines: lines.into_iter().collect(), then: Then::End }
}

#[derive(Debug, Clone)]
pub(crate) struct Asked {
    /// Such as `GET /v1/balance/channels`.
    pub(crate) line: String,
    pub(crate) macaroon: Option<String>,
    pub(crate) body: Value,
}

#[derive(Default)]
struct Script {
    replies: VecDeque<Reply>,
    asked: Vec<Asked>,
}

pub(crate) struct Node {
    pub(crate) address: SocketAddr,
    script: Arc<Mutex<Script>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Node {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Node {
    pub(crate) async fn start(tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let script = Arc::<Mutex<Script>>::default();
        let shared = script.clone();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (shared, tls) = (shared.clone(), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        None => serve(stream, &shared).await,
                        Some(tls) => match tls.accept(stream).await {
                            Ok(stream) => serve(stream, &shared).await,
                            // Whoever does not trust us is gone.
                            Err(_) => None,
                        },
                    }
                });
            }
        });
        Self { address, script, task }
    }

    pub(crate) fn will(&self, replies: impl IntoIterator<Item = Reply>) {
        self.script.lock().unwrap().replies.extend(replies);
    }

    /// What was asked since the last time.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        std::mem::take(&mut self.script.lock().unwrap().asked)
    }
}

/// One request on each connection; `None` when it is over. With nothing left to say, the connection is closed.
async fn serve(mut stream: impl AsyncRead + AsyncWrite + Unpin, script: &Mutex<Script>) -> Option<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).unwrap();
    let header = |name: &str| {
        let mut headers = head.lines().filter_map(|line| line.split_once(": "));
        headers.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned())
    };
    let length = header("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    let asked = Asked {
        line: head.lines().next().unwrap().trim_end_matches(" HTTP/1.1").to_owned(),
        macaroon: header("grpc-metadata-macaroon"),
        body: serde_json::from_slice(&body).unwrap_or_default(),
    };
    let reply = {
        let mut script = script.lock().unwrap();
        script.asked.push(asked);
        script.replies.pop_front()?
    };
    let head =
        format!("HTTP/1.1 {} as told\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n", reply.status);
    stream.write_all(head.as_bytes()).await.ok()?;
    for line in reply.lines {
        stream.write_all(format!("{line}\n").as_bytes()).await.ok()?;
    }
    stream.flush().await.ok()?;
    if reply.then == Then::Silence {
        std::future::pending::<()>().await;
    }
    stream.shutdown().await.ok()
}
