//! The one HTTP client of a process: a pool of kept connections behind proxies, TLS and deadlines.

use super::connector::Connector;
use bytes::Bytes;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::header::{HeaderValue, PROXY_AUTHORIZATION, USER_AGENT};
use hyper::{Request, Response, Uri};
use hyper_util::client::legacy::{Client, Error as PoolError};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use std::error::Error as _;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How long a connection is kept that nobody uses. Node's servers close theirs after five seconds, and a call that meets
/// a closing connection is lost: a new connection costs less.
const KEPT: Duration = Duration::from_secs(4);

/// How long a small document may take in all.
const DOCUMENT_PATIENCE: Duration = Duration::from_secs(20);

/// The longest small document: metadata, tokens.
const MAX_DOCUMENT: usize = 256 * 1024;

/// What the surroundings say about ways and trust.
#[derive(Clone, Default)]
pub struct Options {
    pub all_proxy: Option<String>,
    pub http_proxy: Option<String>,
    pub https_proxy: Option<String>,
    pub no_proxy: Option<String>,
    /// A file with certificates to trust beside the usual ones.
    pub certificates: Option<PathBuf>,
    /// A file with the one certificate that a server may show, whoever has signed it; no other is trusted then.
    pub pinned: Option<PathBuf>,
}

impl Options {
    /// Reads `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY`, `NO_PROXY` (in either case) and `SSL_CERT_FILE`.
    pub fn from_variables(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let text = |name: &str| {
            let value = variable(name).or_else(|| variable(&name.to_lowercase()))?;
            value.into_string().ok().filter(|value| !value.is_empty())
        };
        Self {
            all_proxy: text("ALL_PROXY"),
            http_proxy: text("HTTP_PROXY"),
            https_proxy: text("HTTPS_PROXY"),
            no_proxy: text("NO_PROXY"),
            certificates: variable("SSL_CERT_FILE").filter(|path| !path.is_empty()).map(PathBuf::from),
            pinned: None,
        }
    }
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The address of a proxy may hold a password.
        f.debug_struct("Options").field("certificates", &self.certificates).finish_non_exhaustive()
    }
}

/// Sends requests. Clones share one pool.
#[derive(Clone)]
pub struct Agent {
    pool: Client<Connector, Full<Bytes>>,
    connector: Connector,
}

impl std::fmt::Debug for Agent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Agent")
    }
}

/// Why a request got no answer. Nothing of the request is in the words.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{words}")]
pub struct Trouble {
    pub words: Arc<str>,
    /// The server never saw the request.
    pub is_unsent: bool,
}

impl Trouble {
    pub(super) fn sent(words: impl Into<Arc<str>>) -> Self {
        Self { words: words.into(), is_unsent: false }
    }
}

/// A small document that was fetched.
#[derive(Debug)]
pub struct Document {
    pub status: u16,
    pub body: Bytes,
}

impl Agent {
    pub fn new(options: &Options) -> io::Result<Self> {
        Ok(Self::over(Connector::new(options)?))
    }

    /// An agent that goes to the open net only, the same way.
    pub fn public(&self) -> Self {
        Self::over(self.connector.public())
    }

    fn over(connector: Connector) -> Self {
        let mut builder = Client::builder(TokioExecutor::new());
        builder.pool_timer(TokioTimer::new()).pool_idle_timeout(KEPT);
        Self { pool: builder.build(connector.clone()), connector }
    }

    /// Sends one request and waits for the head of its answer. Redirections are the caller's to judge.
    pub(super) async fn send(&self, mut request: Request<Full<Bytes>>) -> Result<Response<Incoming>, Trouble> {
        const OURS: HeaderValue = HeaderValue::from_static(concat!("rialto/", env!("CARGO_PKG_VERSION")));
        request.headers_mut().entry(USER_AGENT).or_insert(OURS);
        if let Some(value) = self.connector.proxy_authorization(request.uri()) {
            request.headers_mut().insert(PROXY_AUTHORIZATION, value);
        }
        self.pool.request(request).await.map_err(|error| trouble(&error))
    }

    /// Fetches something small as a whole.
    pub async fn fetch(&self, request: Request<Full<Bytes>>) -> Result<Document, Trouble> {
        let fetched = async {
            let response = self.send(request).await?;
            let status = response.status().as_u16();
            let body = collect(response.into_body(), MAX_DOCUMENT).await?;
            let body = body.ok_or_else(|| Trouble::sent("the answer is too long"))?;
            Ok(Document { status, body })
        };
        let late = |_| Trouble::sent(format!("no answer within {} s", DOCUMENT_PATIENCE.as_secs()));
        tokio::time::timeout(DOCUMENT_PATIENCE, fetched).await.map_err(late)?
    }

    /// Asks for a page as a browser would, and says where it leads; for programs that stand in for one.
    pub async fn visit(&self, url: &url::Url) -> Result<Option<String>, Trouble> {
        let uri: Uri = url.as_str().parse().map_err(|_| Trouble::sent("not an address"))?;
        let request = Request::get(uri).body(Full::default()).map_err(|error| Trouble::sent(error.to_string()))?;
        let response = self.send(request).await?;
        let location = response.headers().get(hyper::header::LOCATION);
        Ok(location.and_then(|location| location.to_str().ok()).map(ToOwned::to_owned))
    }
}

/// Reads a body; `None` if it is longer than the limit.
pub(super) async fn collect(body: Incoming, limit: usize) -> Result<Option<Bytes>, Trouble> {
    match Limited::new(body, limit).collect().await {
        Ok(body) => Ok(Some(body.to_bytes())),
        Err(error) if error.is::<LengthLimitError>() => Ok(None),
        Err(error) => Err(Trouble::sent(error.to_string())),
    }
}

fn trouble(error: &PoolError) -> Trouble {
    // The innermost cause is the one that tells a person something: "connection refused", not "client error".
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        words = inner.to_string();
        cause = inner.source();
    }
    Trouble { words: words.into(), is_unsent: error.is_connect() }
}
