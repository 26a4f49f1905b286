//! A Nostr relay in this process: for tests, for a bridge that must not depend on a stranger's relay, and as
//! `rialto relay`.
//!
//! It speaks NIP-01, 09, 11, 40, 42, 45, 50 and 70. A connection is one task (`session`) over one socket; what they
//! share is behind one lock (`engine`), which holds the stored events (`store`) and the open subscriptions (`live`).
//! What a connection is to be sent waits in its `outbox`, which is bounded. There is deliberately no database, no
//! policy language and no administration: a relay that needs those is a different program.

mod auth;
mod client;
mod engine;
mod event;
mod filter;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod http;
mod information;
mod journal;
mod live;
mod message;
mod options;
mod outbox;
mod search;
mod session;
mod store;
#[cfg(test)]
mod tests;

use std::fmt::Display;
use std::io::{Error, Result};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use self::engine::Engine;
pub use self::options::{Limits, Options};

/// How often expired events are removed and the file is looked after.
const HOUSEKEEPING: Duration = Duration::from_secs(10);

/// How long clients have to say goodbye when the relay stops.
const FAREWELL: Duration = Duration::from_secs(2);

/// How long to wait when the system has no more sockets to give.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A running relay. It ends with [`stop`](Self::stop), or at once when it is dropped.
#[derive(Debug)]
pub struct Relay {
    address: SocketAddr,
    engine: Arc<Engine>,
    stopping: watch::Sender<bool>,
    tasks: JoinSet<()>,
}

impl Relay {
    /// Reads the stored events and listens; when this returns, clients can connect.
    pub async fn start(options: Options) -> Result<Self> {
        let listen = options.listen;
        let listener = TcpListener::bind(listen).await.map_err(|error| explain("listen on", listen, &error))?;
        let address = listener.local_addr()?;
        let engine = tokio::task::spawn_blocking(|| Engine::new(options)).await.map_err(Error::other)??;
        let engine = Arc::new(engine);
        let (stopping, stopped) = watch::channel(false);
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, engine.clone(), stopped.clone()));
        tasks.spawn(keep_house(engine.clone(), stopped));
        Ok(Self { address, engine, stopping, tasks })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address for clients on this machine, such as `ws://127.0.0.1:7447`.
    #[must_use]
    pub fn url(&self) -> String {
        let mut address = self.address;
        // "All interfaces" is no address that one can connect to everywhere.
        match address.ip() {
            IpAddr::V4(Ipv4Addr::UNSPECIFIED) => address.set_ip(Ipv4Addr::LOCALHOST.into()),
            IpAddr::V6(Ipv6Addr::UNSPECIFIED) => address.set_ip(Ipv6Addr::LOCALHOST.into()),
            _ => {}
        }
        format!("ws://{address}")
    }

    /// Closes all connections and sees to it that stored events are on the disk.
    pub async fn stop(mut self) {
        // Both tasks hold a receiver until they end.
        let _ = self.stopping.send(true);
        while self.tasks.join_next().await.is_some() {}
        let engine = self.engine.clone();
        let _ = tokio::task::spawn_blocking(move || engine.flush()).await;
    }
}

/// Says what was tried, with the same kind of error.
fn explain(action: &str, what: impl Display, error: &Error) -> Error {
    Error::new(error.kind(), format!("cannot {action} {what}: {error}"))
}

/// Gives every connection its task, and ends them all when the relay stops.
async fn accept(listener: TcpListener, engine: Arc<Engine>, mut stopping: watch::Receiver<bool>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) if connections.len() >= engine.options.limits.max_connections => refuse(stream).await,
                Ok((stream, _)) => {
                    connections.spawn(http::serve(stream, engine.clone(), stopping.clone()));
                }
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            },
            Some(_) = connections.join_next() => {}
            _ = stopping.changed() => break,
        }
    }
    drop(listener);
    let all_ended = async { while connections.join_next().await.is_some() {} };
    // Whoever has not gone by then is cut off when the set is dropped.
    let _ = tokio::time::timeout(FAREWELL, all_ended).await;
}

/// One short answer that fits into any socket's buffer, so nobody has to wait for it.
async fn refuse(mut stream: TcpStream) {
    let answer = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    let _ = stream.write_all(answer).await;
}

async fn keep_house(engine: Arc<Engine>, mut stopping: watch::Receiver<bool>) {
    let mut rounds = tokio::time::interval(HOUSEKEEPING);
    loop {
        tokio::select! {
            _ = rounds.tick() => {
                let engine = engine.clone();
                // It may write a large file.
                let _ = tokio::task::spawn_blocking(move || engine.keep_house()).await;
            }
            _ = stopping.changed() => return,
        }
    }
}
