//! A server that does what a test says, and a client that speaks with it.

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use rialto_http::client::{Agent, End, Endpoint, Options, Remote, Way, carry};
use rialto_mcp::client::{Client, Host, Opening, Unwelcome, Welcome};
use rialto_mcp::error::Error;
use rialto_mcp::message::{Notification, Request as Question};
use rialto_mcp::outlet::{Outlet, outlet};
use rialto_mcp::peer::Profile;
use rialto_mcp::pending::{Fault, Patience, Reason};
use rialto_mcp::reply::Answer;
use rialto_mcp::version::Version;
use serde_json::{Value, json};
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

pub(crate) const PATIENCE: Patience = Patience { silence: Duration::from_secs(20), total: Duration::from_secs(20) };

/// A request as the server saw it.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// The message in it.
    pub(crate) fn message(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// `POST initialize`, or `GET` where there is no message.
    pub(crate) fn what(&self) -> String {
        match self.message()["method"].as_str() {
            Some(method) => format!("{} {method}", self.method),
            None => self.method.clone(),
        }
    }
}

/// What the server does.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) chunks: Chunks,
}

/// A body that is sent piece by piece; it ends, or breaks off, when a test says so.
pub(crate) enum Chunks {
    Whole(Option<Bytes>),
    Stream(mpsc::UnboundedReceiver<Option<Bytes>>),
    /// The connection is closed without an answer.
    Broken,
    /// Nothing comes, ever.
    Silence,
}

impl Reply {
    pub(crate) fn new(status: u16, kind: &str, body: impl Into<Bytes>) -> Self {
        let headers = if kind.is_empty() { Vec::new() } else { vec![("content-type", kind.to_owned())] };
        Self { status, headers, chunks: Chunks::Whole(Some(body.into())) }
    }

    pub(crate) fn status(status: u16) -> Self {
        Self::new(status, "", "")
    }

    pub(crate) fn json(value: &Value) -> Self {
        Self::new(200, "application/json", value.to_string())
    }

    /// Events that end with the stream.
    pub(crate) fn events(text: &str) -> Self {
        Self::new(200, "text/event-stream", text.to_owned())
    }

    /// A stream that goes on for as long as the sender is there; `None` breaks it off.
    pub(crate) fn stream() -> (Self, mpsc::UnboundedSender<Option<Bytes>>) {
        let (send, receive) = mpsc::unbounded_channel();
        let headers = vec![("content-type", "text/event-stream".to_owned())];
        (Self { status: 200, headers, chunks: Chunks::Stream(receive) }, send)
    }

    pub(crate) fn broken() -> Self {
        Self { status: 200, headers: Vec::new(), chunks: Chunks::Broken }
    }

    pub(crate) fn silence() -> Self {
        Self { status: 200, headers: Vec::new(), chunks: Chunks::Silence }
    }

    pub(crate) fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }
}

impl Body for Chunks {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        match &mut *self {
            Chunks::Whole(text) => Poll::Ready(text.take().map(|text| Ok(Frame::data(text)))),
            Chunks::Stream(receive) => receive.poll_recv(context).map(|chunk| {
                chunk.map(|chunk| chunk.map(Frame::data).ok_or_else(|| io::Error::other("it breaks off")))
            }),
            Chunks::Broken | Chunks::Silence => Poll::Pending,
        }
    }
}

/// A running server.
pub(crate) struct Server {
    pub(crate) address: String,
    seen: Arc<Mutex<Vec<Seen>>>,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    /// Starts a server that answers by `script`.
    pub(crate) async fn start(script: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
        let (script, record) = (Arc::new(script), seen.clone());
        let task = tokio::spawn(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else { continue };
                let (script, record) = (script.clone(), record.clone());
                let service = service_fn(move |request: Request<Incoming>| {
                    let (script, record) = (script.clone(), record.clone());
                    async move { answer(request, &*script, &record).await }
                });
                tokio::spawn(async move {
                    let _ = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        Self { address, seen, task }
    }

    pub(crate) fn url(&self) -> String {
        format!("{}/mcp", self.address)
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// What it was asked, in order.
    pub(crate) fn story(&self) -> Vec<String> {
        self.seen().iter().map(Seen::what).collect()
    }

    /// Waits until something was asked that often.
    pub(crate) async fn wait_for(&self, what: &str, times: usize) {
        let waited = async {
            while self.story().iter().filter(|known| *known == what).count() < times {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let told = tokio::time::timeout(Duration::from_secs(20), waited).await;
        assert!(told.is_ok(), "no `{what}` in {:?}", self.story());
    }
}

async fn answer(
    request: Request<Incoming>,
    script: &(impl Fn(&Seen) -> Reply + ?Sized),
    record: &Mutex<Vec<Seen>>,
) -> Result<Response<Chunks>, io::Error> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let path = parts.uri.to_string();
    let seen = Seen { method: parts.method.to_string(), path, headers: parts.headers, body };
    record.lock().unwrap().push(seen.clone());
    let reply = script(&seen);
    match reply.chunks {
        Chunks::Broken => return Err(io::Error::other("broken on purpose")),
        Chunks::Silence => std::future::pending().await,
        _ => {}
    };
    let mut response = Response::new(reply.chunks);
    *response.status_mut() = StatusCode::from_u16(reply.status).unwrap();
    for (name, value) in reply.headers {
        response.headers_mut().append(HeaderName::from_static(name), HeaderValue::from_str(&value).unwrap());
    }
    if response.headers().get(CONTENT_TYPE).is_some_and(HeaderValue::is_empty) {
        response.headers_mut().remove(CONTENT_TYPE);
    }
    Ok(response)
}

/// The answer to a request.
pub(crate) fn result(seen: &Seen, result: impl Into<Value>) -> Value {
    json!({ "jsonrpc": "2.0", "id": seen.message()["id"], "result": result.into() })
}

/// One event with a message.
pub(crate) fn event(message: &Value) -> String {
    format!("event: message\ndata: {message}\n\n")
}

/// What an ordinary server of the versions with sessions says to begin with; `None` where a test has to speak.
pub(crate) fn introduction(seen: &Seen, version: &str, session: Option<&str>) -> Option<Reply> {
    match seen.what().as_str() {
        "POST initialize" => {
            let about =
                json!({ "protocolVersion": version, "capabilities": { "tools": {} }, "serverInfo": { "name": "s" } });
            let reply = Reply::json(&result(seen, about));
            Some(match session {
                Some(session) => reply.with("mcp-session-id", session),
                None => reply,
            })
        }
        "POST notifications/initialized" | "POST notifications/cancelled" => Some(Reply::status(202)),
        "GET" => Some(Reply::status(405)),
        "DELETE" => Some(Reply::status(204)),
        _ => None,
    }
}

/// What an ordinary stateless server says to begin with.
pub(crate) fn discovery(seen: &Seen) -> Option<Reply> {
    (seen.what() == "POST server/discover").then(|| {
        let about =
            json!({ "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} } });
        Reply::json(&result(seen, about))
    })
}

/// Hears what the server says on its own account.
struct Ear {
    notes: mpsc::UnboundedSender<String>,
}

impl Host for Ear {
    async fn request(&self, question: Question, _reason: Reason) -> Answer {
        Answer::Error(Error::method_not_found(question.method()))
    }

    async fn notification(&self, note: Notification) {
        let _ = self.notes.send(note.method().to_owned());
    }

    fn stray(&self, text: &[u8]) {
        let _ = self.notes.send(format!("stray: {}", String::from_utf8_lossy(text)));
    }

    fn warning(&self, text: String) {
        let _ = self.notes.send(format!("warning: {text}"));
    }
}

/// A client on its way to a server.
pub(crate) struct Session {
    pub(crate) client: Arc<Client>,
    outlet: Outlet,
    pub(crate) notes: mpsc::UnboundedReceiver<String>,
    pub(crate) carried: JoinHandle<End>,
}

pub(crate) fn agent() -> Agent {
    Agent::new(&Options::default()).unwrap()
}

pub(crate) fn endpoint(url: &str) -> Endpoint {
    Endpoint::new(url, Way::Streamable).unwrap()
}

impl Session {
    pub(crate) fn open(url: &str) -> Self {
        Self::with(Remote::new(endpoint(url), agent()))
    }

    pub(crate) fn with(remote: Remote) -> Self {
        let (outlet, drain) = outlet();
        let client = Client::new(outlet.clone());
        let (send, notes) = mpsc::unbounded_channel();
        let host = Arc::new(Ear { notes: send });
        let carried = tokio::spawn({
            let client = client.clone();
            async move { carry(&remote, &client, &host, drain).await }
        });
        Self { client, outlet, notes, carried }
    }

    pub(crate) async fn introduce(&self, opening: Opening) -> Result<Welcome, Unwelcome> {
        let profile = Profile { version: Version::LATEST_LEGACY, ..Profile::unknown() };
        self.client.introduce(&profile, opening, PATIENCE).await
    }

    /// Asks something, and gives the result or the error object.
    pub(crate) async fn ask(&self, method: &str, params: &Value) -> Result<Value, Fault> {
        let response = self.client.request(method, params.to_string().as_bytes(), PATIENCE).await?;
        let text = response.result().or(response.error()).unwrap();
        Ok(serde_json::from_slice(text).unwrap())
    }

    /// The next thing that the server says on its own account.
    pub(crate) async fn note(&mut self) -> String {
        tokio::time::timeout(Duration::from_secs(20), self.notes.recv()).await.expect("a note").unwrap()
    }

    /// Ends the time with the server.
    pub(crate) async fn finish(self) -> End {
        self.outlet.finish();
        self.carried.await.unwrap()
    }
}

/// The params of a stateless request.
pub(crate) fn stateless(mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    params
}
