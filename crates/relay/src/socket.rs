//! Connections to relays: TCP, TLS and WebSocket. Behind a trait, so that tests can bring their own.

use crate::address::Reach;
use crate::sieve::Sieve;
use futures_util::{Sink, Stream};
use nostr::prelude::RelayUrl;
use nostr::types::url::Url;
use rustls::pki_types::ServerName;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_tungstenite::client_async_with_config;
pub use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::error::Error;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;

/// Longer messages are not read. Well above what any relay takes.
const MAX_MESSAGE: usize = 4 * 1024 * 1024;

/// Both directions of a connection to a relay.
pub trait Duplex: Stream<Item = Result<Message, Error>> + Sink<Message, Error = Error> + Send + Unpin {}

impl<T: Stream<Item = Result<Message, Error>> + Sink<Message, Error = Error> + Send + Unpin> Duplex for T {}

/// A future that a trait object can return.
pub type Later<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Opens connections.
pub trait Dial: std::fmt::Debug + Send + Sync + 'static {
    fn dial<'a>(&'a self, url: &'a RelayUrl) -> Later<'a, io::Result<Box<dyn Duplex>>>;

    /// The addresses at which a relay may be asked about itself; `None` for wherever its name leads.
    fn addresses<'a>(&'a self, _url: &'a Url) -> Later<'a, io::Result<Option<Vec<SocketAddr>>>> {
        Box::pin(async { Ok(None) })
    }
}

/// Opens real ones.
#[derive(Debug, Clone, Copy, Default)]
pub struct Network;

impl Dial for Network {
    fn dial<'a>(&'a self, url: &'a RelayUrl) -> Later<'a, io::Result<Box<dyn Duplex>>> {
        Box::pin(open(url, None))
    }
}

/// Opens real ones, but only to where they may lead: for relays that strangers name.
#[derive(Debug, Clone, Default)]
pub struct Guarded(pub Reach);

impl Dial for Guarded {
    fn dial<'a>(&'a self, url: &'a RelayUrl) -> Later<'a, io::Result<Box<dyn Duplex>>> {
        Box::pin(async move {
            let parsed = Url::parse(url.as_str()).map_err(io::Error::other)?;
            let addresses = self.0.addresses(&parsed).await.map_err(io::Error::other)?;
            open(url, Some(&addresses)).await
        })
    }

    fn addresses<'a>(&'a self, url: &'a Url) -> Later<'a, io::Result<Option<Vec<SocketAddr>>>> {
        Box::pin(async move { self.0.addresses(url).await.map(Some).map_err(io::Error::other) })
    }
}

async fn open(url: &RelayUrl, addresses: Option<&[SocketAddr]>) -> io::Result<Box<dyn Duplex>> {
    let stream = connect(&Url::parse(url.as_str()).map_err(io::Error::other)?, addresses).await?;
    let mut config = WebSocketConfig::default();
    config.max_message_size = Some(MAX_MESSAGE);
    config.max_frame_size = Some(MAX_MESSAGE);
    let stream = Sieve::new(stream, MAX_MESSAGE);
    let opened = client_async_with_config(url.as_str(), stream, Some(config)).await;
    let (socket, _) = opened.map_err(io::Error::other)?;
    Ok(Box::new(socket) as Box<dyn Duplex>)
}

/// A byte stream, encrypted or not.
pub(crate) trait Bytes: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Bytes for T {}

/// Opens a byte stream to the host of `url`; encrypted for `wss` and `https`. If `addresses` are given, its name is not
/// looked up again: whoever has checked them does not want others.
pub(crate) async fn connect(url: &Url, addresses: Option<&[SocketAddr]>) -> io::Result<Box<dyn Bytes>> {
    let host = url.host_str().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the URL has no host"))?;
    let is_secure = matches!(url.scheme(), "wss" | "https");
    let port = url.port().unwrap_or(if is_secure { 443 } else { 80 });
    // Brackets belong to the URL, not to the address.
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let stream = match addresses {
        Some(addresses) => TcpStream::connect(addresses).await?,
        None => TcpStream::connect((host, port)).await?,
    };
    // Without this, small messages wait for the acknowledgement of the one before: 40 ms each.
    stream.set_nodelay(true)?;
    if !is_secure {
        return Ok(Box::new(stream));
    }
    let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
    let stream = TlsConnector::from(tls()?).connect(name, stream).await?;
    Ok(Box::new(stream))
}

/// Trusts the certificate authorities that Mozilla trusts: the same on every machine, with or without system certificates.
fn tls() -> io::Result<Arc<rustls::ClientConfig>> {
    static CONFIG: LazyLock<Result<Arc<rustls::ClientConfig>, rustls::Error>> = LazyLock::new(|| {
        let roots = rustls::RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        Ok(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
    });
    CONFIG.clone().map_err(io::Error::other)
}
