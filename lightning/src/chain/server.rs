//! The chain behind HTTP, on a port of this machine, because that is the only way a Lightning node asks for it.
//!
//! There is no password: whoever is on this machine may look at money that is worth nothing.

use super::Chain;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// The longest call: a transaction as large as a block, in hexadecimal, and then some.
const MAX_CALL_BYTES: usize = 9 * 1024 * 1024;

/// A chain that can be asked. It ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    address: SocketAddr,
    chain: Arc<Mutex<Chain>>,
    /// Dropping the set ends what it runs.
    _tasks: JoinSet<()>,
}

impl Server {
    pub(crate) async fn start() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let chain = Arc::new(Mutex::new(Chain::new(now())));
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, chain.clone()));
        Ok(Self { address, chain, _tasks: tasks })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Looks at the chain, or changes it, as of now.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut Chain, u32) -> T) -> T {
        work(&mut lock(&self.chain), now())
    }
}

fn lock(chain: &Mutex<Chain>) -> MutexGuard<'_, Chain> {
    chain.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Seconds since 1970, as blocks have them.
fn now() -> u32 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u32::try_from(since.as_secs()).unwrap_or(u32::MAX)
}

async fn accept(listener: TcpListener, chain: Arc<Mutex<Chain>>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                // Only our own nodes connect, and a few times at that; one that fails tries again.
                if let Ok((stream, _)) = accepted {
                    connections.spawn(serve(stream, chain.clone()));
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve(stream: TcpStream, chain: Arc<Mutex<Chain>>) {
    let service = service_fn(|request| {
        let chain = chain.clone();
        async move { Ok::<_, Infallible>(answer(request, &chain).await) }
    });
    // Whoever hangs up in the middle of a call does not wait for the answer.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

async fn answer(request: Request<Incoming>, chain: &Mutex<Chain>) -> Response<Full<Bytes>> {
    let body = Limited::new(request.into_body(), MAX_CALL_BYTES).collect().await;
    let call: Option<Value> = body.ok().and_then(|body| serde_json::from_slice(&body.to_bytes()).ok());
    let Some(call) = call else {
        return respond(StatusCode::BAD_REQUEST, &json!({"error": {"code": -32700, "message": "not JSON"}}));
    };
    let method = call["method"].as_str().unwrap_or_default();
    let outcome = lock(chain).call(method, &call["params"], now());
    match outcome {
        Ok(result) => respond(StatusCode::OK, &json!({"result": result, "error": null, "id": call["id"]})),
        Err(failure) => {
            let error = json!({"code": failure.code, "message": failure.message});
            respond(StatusCode::INTERNAL_SERVER_ERROR, &json!({"result": null, "error": error, "id": call["id"]}))
        }
    }
}

fn respond(status: StatusCode, body: &Value) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body.to_string())));
    *response.status_mut() = status;
    response
}
