//! One endpoint, many clients, five versions of the protocol.
//!
//! `POST /mcp` takes messages of every version; what a request says about itself decides how it is answered. Clients that
//! begin with `initialize` get a session, `GET /mcp` streams and `DELETE /mcp`; stateless clients need none of it; clients of
//! 2024-11-05 open `GET /sse` (or `GET /mcp`) and post to the address they are told. Beside that there are `/healthz` and
//! `/metrics`.

mod access;
mod counts;
mod endpoint;
mod events;
mod headers;
mod health;
mod oldest;
mod post;
mod response;
mod sessions;
mod socket;

use crate::server::endpoint::Endpoint;
use crate::server::socket::Patient;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rialto_mcp::server::Service;
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

pub use health::Checked;

/// How long a client may take to send the head of a request, which is also how long a connection may rest between two.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// How large the head of a request may be; hyper answers larger ones with 431.
const MAX_HEAD: usize = 32 * 1024;

/// Connections at once. More wait until one of these ends.
const MAX_CONNECTIONS: usize = 4096;

/// How long answers may take to be read once everything has been said.
const LAST_READ: Duration = Duration::from_secs(10);

/// Asks every server behind the endpoint whether it answers.
pub type Probe = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = Vec<Checked>> + Send>> + Send + Sync>;

/// Adds to what `/metrics` says, in Prometheus' text format.
pub type Gauges = Arc<dyn Fn(&mut String) + Send + Sync>;

/// What an endpoint allows and tells.
#[derive(Clone, Default)]
pub struct Options {
    /// The bearer token that every request must show; `None` lets everybody in who reaches the port.
    pub token: Option<Arc<str>>,
    /// Further values of `Host` that are answered, beside loopback names and the address we listen on.
    pub hosts: Vec<String>,
    /// Values of `Origin` that are answered; none beside loopback ones otherwise.
    pub origins: Vec<String>,
    pub probe: Option<Probe>,
    pub gauges: Option<Gauges>,
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("token", &self.token.is_some())
            .field("hosts", &self.hosts)
            .field("origins", &self.origins)
            .finish_non_exhaustive()
    }
}

/// Serves MCP until `stop` turns true and running calls are answered.
pub async fn serve<S: Service>(
    service: Arc<S>,
    listener: TcpListener,
    options: Options,
    mut stop: watch::Receiver<bool>,
) -> io::Result<()> {
    let endpoint = Arc::new(Endpoint::new(service, options, listener.local_addr()?, stop.clone()));
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut connections = JoinSet::new();
    let mut housekeeping = pin!(endpoint.keep_house());
    loop {
        let accepted = async {
            let permit = room.clone().acquire_owned().await;
            (listener.accept().await, permit)
        };
        tokio::select! {
            _ = stop.wait_for(|stop| *stop) => break,
            () = &mut housekeeping => {}
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            (accepted, permit) = accepted => match accepted {
                Ok((stream, _)) => {
                    let (endpoint, stop) = (endpoint.clone(), endpoint.stop.clone());
                    connections.spawn(async move {
                        attend(endpoint, stream, stop).await;
                        drop(permit);
                    });
                }
                // Most often too many open files: some will be closed.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            },
        }
    }
    drop(listener);
    endpoint.wind_up().await;
    // Whoever does not read its last answer is not waited for.
    let _ = tokio::time::timeout(LAST_READ, async { while connections.join_next().await.is_some() {} }).await;
    Ok(())
}

/// Serves one connection to its end.
async fn attend<S: Service>(endpoint: Arc<Endpoint<S>>, stream: TcpStream, mut stop: watch::Receiver<bool>) {
    let _ = stream.set_nodelay(true);
    let open = endpoint.counts.connection();
    let answer = service_fn(|request| {
        let endpoint = endpoint.clone();
        async move { Ok::<_, Infallible>(endpoint.handle(request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MAX_HEAD)
        .serve_connection(TokioIo::new(Patient::new(stream)), answer);
    let mut connection = pin!(connection);
    let stopped = async { drop(stop.wait_for(|stop| *stop).await) };
    // A connection that fails concerns nobody but its client, who knows.
    tokio::select! {
        _ = connection.as_mut() => {}
        () = stopped => {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }
    drop(open);
}
