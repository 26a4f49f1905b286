//! The first moments of a connection, which are HTTP: either it becomes a WebSocket, or it gets one answer.

use std::convert::Infallible;
use std::future::ready;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use super::engine::Engine;
use super::session::{self, Wire};
use super::{information, options::Options};

/// How long a client may take to send its request and to read the answer. Who sends one byte at a time is cut off.
const PATIENCE: Duration = Duration::from_secs(10);

/// Serves one connection from its first byte to its last.
pub(super) async fn serve(stream: TcpStream, engine: Arc<Engine>, stopping: watch::Receiver<bool>) {
    // Without this, an event waits up to 44 ms for the acknowledgement of the one before.
    let Ok(local) = stream.set_nodelay(true).and_then(|()| stream.local_addr()) else { return };
    let Some(wire) = tokio::time::timeout(PATIENCE, greet(stream, &engine)).await.ok().flatten() else { return };
    session::run(wire, local, engine, stopping).await;
}

/// Answers one request; returns the stream if it is to be a WebSocket from now on.
async fn greet(stream: TcpStream, engine: &Engine) -> Option<Wire> {
    let upgrade: Mutex<Option<OnUpgrade>> = Mutex::new(None);
    let service = service_fn(|request: Request<Incoming>| {
        let (response, waiting) = answer(request, &engine.options);
        *upgrade.lock().unwrap_or_else(PoisonError::into_inner) = waiting;
        ready(Ok::<_, Infallible>(response))
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .max_headers(64)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    connection.await.ok()?;
    let waiting = upgrade.into_inner().unwrap_or_else(PoisonError::into_inner)?;
    let parts = waiting.await.ok()?.downcast::<TokioIo<TcpStream>>().ok()?;
    Some(Wire { stream: parts.io.into_inner(), already_read: parts.read_buf.to_vec() })
}

fn answer(request: Request<Incoming>, options: &Options) -> (Response<Full<Bytes>>, Option<OnUpgrade>) {
    let headers = request.headers();
    if has_word(headers, header::UPGRADE, "websocket") {
        return match handshake(&request) {
            Ok(response) => (response, Some(hyper::upgrade::on(request))),
            Err(why) => (plain(StatusCode::BAD_REQUEST, why), None),
        };
    }
    let response = match *request.method() {
        Method::OPTIONS => plain(StatusCode::NO_CONTENT, ""),
        Method::GET | Method::HEAD if has_word(headers, header::ACCEPT, "application/nostr+json") => {
            let mut response = plain(StatusCode::OK, information::document(options).to_string());
            response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/nostr+json"));
            response
        }
        Method::GET | Method::HEAD => {
            plain(StatusCode::OK, format!("{}: a Nostr relay. Connect with a Nostr client.\n", options.name))
        }
        _ => plain(StatusCode::METHOD_NOT_ALLOWED, "only GET\n"),
    };
    (response, None)
}

/// The server's half of RFC 6455's opening.
fn handshake(request: &Request<Incoming>) -> Result<Response<Full<Bytes>>, &'static str> {
    let headers = request.headers();
    if request.method() != Method::GET || !has_word(headers, header::CONNECTION, "upgrade") {
        return Err("a WebSocket begins with GET and `Connection: Upgrade`\n");
    }
    if !has_word(headers, header::SEC_WEBSOCKET_VERSION, "13") {
        return Err("only version 13 of WebSocket is spoken here\n");
    }
    let key = headers.get(header::SEC_WEBSOCKET_KEY).ok_or("`Sec-WebSocket-Key` is missing\n")?;
    let accept = HeaderValue::from_str(&derive_accept_key(key.as_bytes())).map_err(|_| "the key cannot be used\n")?;
    let mut response = Response::new(Full::default());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    Ok(response)
}

/// An answer that any web page may read, as NIP-11 asks.
fn plain(status: StatusCode, text: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(text.into()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    // Who wants to know more can ask again; idle connections would only take the places of others.
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("*"));
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, HEAD, OPTIONS"));
    response
}

/// Whether a list header holds a word, whatever its case and parameters.
fn has_word(headers: &HeaderMap, name: HeaderName, word: &str) -> bool {
    let texts = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    let mut words = texts.flat_map(|text| text.split(',')).filter_map(|item| item.split(';').next());
    words.any(|item| item.trim().eq_ignore_ascii_case(word))
}
