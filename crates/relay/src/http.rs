//! Small documents fetched over HTTP: what a relay says about itself (NIP-11) and names of people (NIP-05).

use crate::socket;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Bytes;
use hyper::header::{ACCEPT, HOST, USER_AGENT};
use hyper_util::rt::TokioIo;
use nostr::types::url::Url;
use std::io;
use std::time::Duration;

/// No document that we ask for needs more.
const MAX_DOCUMENT: usize = 256 * 1024;

/// How long fetching a document may take in all.
const PATIENCE: Duration = Duration::from_secs(10);

/// Fetches one document. Redirections are not followed: they could lead anywhere.
pub async fn get(url: &Url, accept: &str) -> io::Result<Bytes> {
    tokio::time::timeout(PATIENCE, fetch(url, accept))
        .await
        .unwrap_or_else(|_| Err(io::Error::new(io::ErrorKind::TimedOut, "no answer")))
}

async fn fetch(url: &Url, accept: &str) -> io::Result<Bytes> {
    let stream = socket::connect(url).await?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
    let host = match (url.host_str().unwrap_or_default(), url.port()) {
        (host, Some(port)) => format!("{host}:{port}"),
        (host, None) => host.to_owned(),
    };
    let target = match url.query() {
        Some(query) => format!("{}?{query}", url.path()),
        None => url.path().to_owned(),
    };
    let request = hyper::Request::get(target)
        .header(HOST, host)
        .header(ACCEPT, accept)
        .header(USER_AGENT, concat!("rialto/", env!("CARGO_PKG_VERSION")))
        .body(Empty::<Bytes>::new())
        .map_err(io::Error::other)?;
    let exchange = async {
        let response = sender.send_request(request).await.map_err(io::Error::other)?;
        if !response.status().is_success() {
            return Err(io::Error::other(format!("the answer is {}", response.status())));
        }
        let body = Limited::new(response.into_body(), MAX_DOCUMENT).collect().await;
        body.map(|body| body.to_bytes()).map_err(io::Error::other)
    };
    // The connection does the work while the exchange waits.
    let mut exchange = std::pin::pin!(exchange);
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        answer = &mut exchange => answer,
        ended = &mut connection => {
            ended.map_err(io::Error::other)?;
            exchange.await
        }
    }
}
