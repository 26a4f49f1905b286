//! Connections to servers: straight or through a proxy, plain or with TLS.

use super::agent::Options;
use super::pinned::Pinned;
use super::reach::Reach;
use hyper::Uri;
use hyper::header::HeaderValue;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tower_service::Service;

/// How long it may take to reach a server: its name, its port, the proxy and TLS together.
const CONNECT_PATIENCE: Duration = Duration::from_secs(15);

/// The longest head that a proxy may answer `CONNECT` with.
const MAX_PROXY_HEAD: usize = 16 * 1024;

/// Makes connections for the pool.
#[derive(Clone)]
pub(super) struct Connector {
    ways: Arc<Ways>,
    reach: Reach,
}

struct Ways {
    tls: TlsConnector,
    proxies: Matcher,
}

impl Connector {
    pub(super) fn new(options: &Options) -> io::Result<Self> {
        let mut proxies = Matcher::builder();
        for (value, set) in [
            (&options.all_proxy, Setting::All),
            (&options.http_proxy, Setting::Http),
            (&options.https_proxy, Setting::Https),
            (&options.no_proxy, Setting::No),
        ] {
            let Some(value) = value.clone() else { continue };
            proxies = match set {
                Setting::All => proxies.all(value),
                Setting::Http => proxies.http(value),
                Setting::Https => proxies.https(value),
                Setting::No => proxies.no(value),
            };
        }
        let tls = TlsConnector::from(Arc::new(tls_config(options)?));
        Ok(Self { ways: Arc::new(Ways { tls, proxies: proxies.build() }), reach: Reach::Anywhere })
    }

    /// The same for the open net only.
    pub(super) fn public(&self) -> Self {
        Self { ways: self.ways.clone(), reach: Reach::Public }
    }

    /// What a proxy for plain HTTP wants to see with each request.
    pub(super) fn proxy_authorization(&self, uri: &Uri) -> Option<HeaderValue> {
        if uri.scheme_str() != Some("http") {
            return None;
        }
        self.ways.proxy(uri)?.basic_auth().cloned()
    }
}

enum Setting {
    All,
    Http,
    Https,
    No,
}

/// The certificates that browsers trust, and those of a file for whoever is behind a company's own.
fn tls_config(options: &Options) -> io::Result<ClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?;
    if let Some(path) = &options.pinned {
        let pinned = Arc::new(Pinned::read(path, provider)?);
        return Ok(config.dangerous().with_custom_certificate_verifier(pinned).with_no_client_auth());
    }
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    if let Some(path) = &options.certificates {
        let unreadable = |why: &dyn std::fmt::Display| {
            io::Error::other(format!("cannot read the certificates of SSL_CERT_FILE (`{}`): {why}", path.display()))
        };
        for certificate in CertificateDer::pem_file_iter(path).map_err(|error| unreadable(&error))? {
            let certificate = certificate.map_err(|error| unreadable(&error))?;
            // Bundles hold certificates of all ages; one that cannot be used is no reason to trust none.
            let _ = roots.add(certificate);
        }
    }
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

impl Ways {
    /// The proxy for a server. A server on this machine is never behind one.
    fn proxy(&self, uri: &Uri) -> Option<Intercept> {
        let host = uri.host()?;
        if is_loopback(host) { None } else { self.proxies.intercept(uri) }
    }

    async fn connect(&self, uri: &Uri, reach: Reach) -> io::Result<Stream> {
        let is_tls = uri.scheme_str() == Some("https");
        let (host, port) = place(uri)?;
        let Some(proxy) = self.proxy(uri) else {
            let stream = tcp(host, port, reach).await?;
            let io: Box<dyn Io> = if is_tls { self.secure(host, Box::new(stream)).await? } else { Box::new(stream) };
            return Ok(Stream { io: TokioIo::new(io), is_proxied: false });
        };
        // A name is the proxy's to look up, but an address says by itself where it leads.
        if bare(host).parse().is_ok_and(|address: IpAddr| !reach.includes(address)) {
            return Err(not_public());
        }
        let through = proxy.uri();
        if !matches!(through.scheme_str(), Some("http" | "https")) {
            return Err(io::Error::other("only proxies that speak HTTP are supported"));
        }
        let (proxy_host, proxy_port) = place(through)?;
        let named =
            |error: io::Error| io::Error::new(error.kind(), format!("the proxy {proxy_host}:{proxy_port}: {error}"));
        let stream = tcp(proxy_host, proxy_port, Reach::Anywhere).await.map_err(named)?;
        let mut io: Box<dyn Io> = match through.scheme_str() {
            Some("https") => self.secure(proxy_host, Box::new(stream)).await.map_err(named)?,
            _ => Box::new(stream),
        };
        if is_tls {
            tunnel(&mut io, host, port, proxy.basic_auth()).await.map_err(named)?;
            io = self.secure(host, io).await?;
        }
        Ok(Stream { io: TokioIo::new(io), is_proxied: !is_tls })
    }

    async fn secure(&self, host: &str, stream: Box<dyn Io>) -> io::Result<Box<dyn Io>> {
        let name = ServerName::try_from(bare(host).to_owned()).map_err(io::Error::other)?;
        Ok(Box::new(self.tls.connect(name, stream).await?))
    }
}

/// Asks a proxy for a way to a server, of which it will see no more than the name.
async fn tunnel(io: &mut Box<dyn Io>, host: &str, port: u16, auth: Option<&HeaderValue>) -> io::Result<()> {
    let mut head = format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n").into_bytes();
    if let Some(auth) = auth {
        head.extend_from_slice(b"Proxy-Authorization: ");
        head.extend_from_slice(auth.as_bytes());
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"\r\n");
    io.write_all(&head).await?;
    io.flush().await?;
    // Byte by byte is slow, but what follows the head belongs to the server.
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        if answer.len() > MAX_PROXY_HEAD {
            return Err(io::Error::other("its answer is too long"));
        }
        answer.push(io.read_u8().await?);
    }
    let first = answer.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let words: Vec<&[u8]> = first.splitn(3, |byte| *byte == b' ').collect();
    match words.as_slice() {
        [version, b"200", ..] if version.starts_with(b"HTTP/1.") => Ok(()),
        [_, status, ..] => Err(io::Error::other(format!("it answered {}", String::from_utf8_lossy(status)))),
        _ => Err(io::Error::other("it does not speak HTTP")),
    }
}

async fn tcp(host: &str, port: u16, reach: Reach) -> io::Result<TcpStream> {
    // Looked up once: what was found allowed is what is connected to.
    let addresses: Vec<_> = tokio::net::lookup_host((bare(host), port)).await?.collect();
    let allowed: Vec<_> = addresses.into_iter().filter(|address| reach.includes(address.ip())).collect();
    if allowed.is_empty() {
        return Err(not_public());
    }
    let stream = TcpStream::connect(allowed.as_slice()).await?;
    stream.set_nodelay(true)?;
    // A stream of events may be silent for hours; a peer that vanished without a word is noticed all the same.
    let _ = rustix::net::sockopt::set_socket_keepalive(&stream, true);
    Ok(stream)
}

fn not_public() -> io::Error {
    io::Error::other("it leads to no public address")
}

fn place(uri: &Uri) -> io::Result<(&str, u16)> {
    let host = uri.host().ok_or_else(|| io::Error::other("the address has no host"))?;
    let default = if uri.scheme_str() == Some("https") { 443 } else { 80 };
    Ok((host, uri.port_u16().unwrap_or(default)))
}

/// An IPv6 address without its brackets.
fn bare(host: &str) -> &str {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

/// Whether a host is this machine by its very name.
pub(super) fn is_loopback(host: &str) -> bool {
    let host = bare(host);
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

impl Service<Uri> for Connector {
    type Response = Stream;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Stream>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let Self { ways, reach } = self.clone();
        Box::pin(async move {
            let late = |_| io::Error::new(io::ErrorKind::TimedOut, format!("not within {CONNECT_PATIENCE:?}"));
            tokio::time::timeout(CONNECT_PATIENCE, ways.connect(&uri, reach)).await.map_err(late)?
        })
    }
}

trait Io: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// One connection.
pub(super) struct Stream {
    io: TokioIo<Box<dyn Io>>,
    /// Requests for plain HTTP name the whole address to a proxy.
    is_proxied: bool,
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        Connected::new().proxy(self.is_proxied)
    }
}

impl Read for Stream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buffer)
    }
}

impl Write for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, slices)
    }
}
