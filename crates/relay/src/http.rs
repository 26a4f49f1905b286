//! Small documents fetched over HTTP: what a relay says about itself (NIP-11) and names of people (NIP-05).

use crate::socket;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Bytes;
use hyper::header::{ACCEPT, DATE, HOST, USER_AGENT};
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
    let stream = socket::connect(url, addresses).await?;
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
        let status = response.status().as_u16();
        let date = response.headers().get(DATE).and_then(|date| seconds(date.to_str().ok()?));
        let body = Limited::new(response.into_body(), MAX_DOCUMENT).collect().await;
        body.map(|body| Document { status, body: body.to_bytes(), date }).map_err(io::Error::other)
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
