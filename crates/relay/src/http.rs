//! What we do over HTTP: small documents are fetched, such as what a relay says about itself (NIP-11) and names of people
//! (NIP-05), and files are sent.

use crate::socket;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, DATE, HOST, USER_AGENT};
use hyper::http::request::Builder;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use nostr::types::url::Url;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// No document that we ask for needs more.
const MAX_DOCUMENT: usize = 256 * 1024;

/// How long fetching a document may take in all.
const PATIENCE: Duration = Duration::from_secs(10);

/// What was fetched.
#[derive(Debug, Clone)]
pub struct Document {
    /// The number of the answer; always one that means success.
    pub status: u16,
    pub body: Bytes,
    /// What time it is at the other end, in seconds since 1970.
    pub date: Option<u64>,
}

/// Fetches one document. Redirections are not followed: they could lead anywhere.
pub async fn get(url: &Url, accept: &str) -> io::Result<Document> {
    get_from(url, accept, None).await
}

/// The same from certain addresses only, whatever the host's name leads to by now.
pub async fn get_from(url: &Url, accept: &str, addresses: Option<&[SocketAddr]>) -> io::Result<Document> {
    tokio::time::timeout(PATIENCE, fetch(url, accept, addresses))
        .await
        .unwrap_or_else(|_| Err(io::Error::new(io::ErrorKind::TimedOut, "no answer")))
}

async fn fetch(url: &Url, accept: &str, addresses: Option<&[SocketAddr]>) -> io::Result<Document> {
    let request = request(Method::GET, url).header(ACCEPT, accept).body(Full::default()).map_err(io::Error::other)?;
    exchange(url, addresses, request, async |response| {
        if !response.status().is_success() {
            return Err(io::Error::other(format!("the answer is {}", response.status())));
        }
        let status = response.status().as_u16();
        let date = response.headers().get(DATE).and_then(|date| seconds(date.to_str().ok()?));
        let body = Limited::new(response.into_body(), MAX_DOCUMENT).collect().await;
        body.map(|body| Document { status, body: body.to_bytes(), date }).map_err(io::Error::other)
    })
    .await
}

/// Something to send.
#[derive(Debug, Clone)]
pub struct Upload {
    pub body: Bytes,
    pub content_type: String,
    /// Who sends it, as the server wants to have it.
    pub authorization: String,
}

/// What the other end said to it, be it good or bad.
#[derive(Debug, Clone)]
pub struct Reply {
    pub status: u16,
    pub body: Bytes,
    /// Why not, where it says so beside the answer.
    pub reason: Option<String>,
}

/// Sends something with `PUT` to these addresses, whatever the host's name leads to by now. Redirections are not followed.
pub async fn put_to(url: &Url, addresses: &[SocketAddr], upload: Upload, patience: Duration) -> io::Result<Reply> {
    let request = request(Method::PUT, url)
        .header(AUTHORIZATION, upload.authorization)
        .header(CONTENT_TYPE, upload.content_type)
        .header(CONTENT_LENGTH, upload.body.len())
        .body(Full::new(upload.body))
        .map_err(io::Error::other)?;
    let sent = exchange(url, Some(addresses), request, async |response| {
        let status = response.status().as_u16();
        let header = |name: &str| response.headers().get(name)?.to_str().ok().map(ToOwned::to_owned);
        let reason = REASONS.iter().find_map(|name| header(name));
        let body = Limited::new(response.into_body(), MAX_DOCUMENT).collect().await;
        body.map(|body| Reply { status, body: body.to_bytes(), reason }).map_err(io::Error::other)
    });
    let late = || io::Error::new(io::ErrorKind::TimedOut, "no answer");
    tokio::time::timeout(patience, sent).await.unwrap_or_else(|_| Err(late()))
}

/// Where servers for files say why they refuse.
const REASONS: [&str; 2] = ["x-reason", "blossom-upload-message"];

fn request(method: Method, url: &Url) -> Builder {
    let host = match (url.host_str().unwrap_or_default(), url.port()) {
        (host, Some(port)) => format!("{host}:{port}"),
        (host, None) => host.to_owned(),
    };
    let target = match url.query() {
        Some(query) => format!("{}?{query}", url.path()),
        None => url.path().to_owned(),
    };
    Request::builder()
        .method(method)
        .uri(target)
        .header(HOST, host)
        .header(USER_AGENT, concat!("rialto/", env!("CARGO_PKG_VERSION")))
}

/// One request and what is made of its answer.
async fn exchange<T>(
    url: &Url,
    addresses: Option<&[SocketAddr]>,
    request: Request<Full<Bytes>>,
    read: impl AsyncFnOnce(Response<Incoming>) -> io::Result<T>,
) -> io::Result<T> {
    let stream = socket::connect(url, addresses).await?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
    let exchange = async {
        let response = sender.send_request(request).await.map_err(io::Error::other)?;
        read(response).await
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

/// Reads `Sun, 06 Nov 1994 08:49:37 GMT`, the one form that servers may send.
fn seconds(text: &str) -> Option<u64> {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let words: Vec<&str> = text.split([' ', ':']).collect();
    let [_, day, month, year, hour, minute, second, "GMT"] = words.as_slice() else { return None };
    let number = |word: &str| word.parse::<u64>().ok();
    let month = MONTHS.iter().position(|name| name == month)? as u64 + 1;
    let (year, day) = (number(year).filter(|year| (1970..10_000).contains(year))?, number(day)?);
    // Days since 1970, with years that begin in March so that leap days come last.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 719_469;
    Some(days * 86_400 + number(hour)? * 3600 + number(minute)? * 60 + number(second)?)
}

#[cfg(test)]
mod tests {
    use super::seconds;

    #[test]
    fn dates_are_read() {
        assert_eq!(seconds("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        assert_eq!(seconds("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        assert_eq!(seconds("Thu, 29 Feb 2024 12:00:00 GMT"), Some(1_709_208_000));
        for bad in ["", "yesterday", "Sun, 06 Nov 0000 08:49:37 GMT", "Sun, 06 Foo 1994 08:49:37 GMT"] {
            assert_eq!(seconds(bad), None, "{bad}");
        }
    }
}
