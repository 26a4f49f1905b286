//! A Blossom server that believes nothing: it checks who sends what by itself, and lies when it is told to.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bitcoin_hashes::Sha256;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use torture::nostr_side::event::{Event, now};
use torture::nostr_side::log::Log;
use torture::nostr_side::runtime;

/// How it behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    Honest,
    /// It does not copy from other servers.
    NoMirror,
    /// It takes nothing, and says why beside its answer.
    Full,
    /// It says that it has another file.
    Lying,
    /// It says that the file is somewhere else.
    Astray,
}

/// A file that it has.
#[derive(Clone, Debug)]
pub(crate) struct Blob {
    pub(crate) hash: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) content_type: String,
    /// Who has sent it.
    pub(crate) owner: String,
    /// `/upload` or `/mirror`
    pub(crate) way: String,
}

#[derive(Clone)]
pub(crate) struct Blossom {
    pub(crate) address: String,
    pub(crate) blobs: Log<Blob>,
    manner: Manner,
}

struct Request {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Request {
    fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(one, _)| one == name).map(|(_, value)| value.as_str()).unwrap_or_default()
    }
}

pub(crate) fn hash(bytes: &[u8]) -> String {
    Sha256::hash(bytes).to_byte_array().iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Blossom {
    pub(crate) fn start(manner: Manner) -> Self {
        let listener = runtime().block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let server = Self { address, blobs: Log::default(), manner };
        let serving = Arc::new(server.clone());
        runtime().spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let server = serving.clone();
                tokio::spawn(async move { server.serve(stream).await });
            }
        });
        server
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    async fn serve(&self, mut stream: TcpStream) -> Option<()> {
        let request = read(&mut stream).await?;
        let (status, reason, body) = match (request.method.as_str(), request.path.as_str()) {
            ("PUT", "/upload" | "/mirror") => match self.take(&request).await {
                Ok(descriptor) => (200, String::new(), descriptor.to_string().into_bytes()),
                Err((status, why)) => (status, why.to_owned(), Vec::new()),
            },
            ("GET", path) => {
                let wanted = path.trim_start_matches('/').to_owned();
                let found = self.blobs.look(|blobs| blobs.iter().find(|blob| blob.hash == wanted).cloned());
                found.map_or((404, "no such file".to_owned(), Vec::new()), |blob| (200, String::new(), blob.bytes))
            }
            _ => (404, "there is no such thing".to_owned(), Vec::new()),
        };
        let head = format!(
            "HTTP/1.1 {status} x\r\nx-reason: {reason}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            body.len()
        );
        stream.write_all(&[head.as_bytes(), &body].concat()).await.ok()
    }

    async fn take(&self, request: &Request) -> Result<Value, (u16, &'static str)> {
        if self.manner == Manner::Full {
            return Err((413, "the disk is full"));
        }
        let bytes = match request.path.as_str() {
            "/upload" => request.body.clone(),
            _ if self.manner == Manner::NoMirror => return Err((404, "no copies here")),
            _ => {
                let from: Value = serde_json::from_slice(&request.body).map_err(|_| (400, "no JSON"))?;
                fetch(from["url"].as_str().unwrap_or_default()).await.ok_or((502, "it cannot be fetched"))?
            }
        };
        let hash = hash(&bytes);
        let owner = authorized(request.header("authorization"), &hash).map_err(|why| (401, why))?;
        let content_type = request.header("content-type").to_owned();
        let way = request.path.clone();
        self.blobs.push(Blob { hash: hash.clone(), bytes: bytes.clone(), content_type, owner, way });
        let named = if self.manner == Manner::Lying { "0".repeat(64) } else { hash };
        let path = if self.manner == Manner::Astray { "elsewhere" } else { &named };
        let url = format!("{}/{path}", self.url());
        Ok(json!({ "url": url, "sha256": named, "size": bytes.len(), "type": "text/plain", "uploaded": now() }))
    }
}

/// Who has signed for this file; or what is wrong with that.
fn authorized(header: &str, hash: &str) -> Result<String, &'static str> {
    let text = header.strip_prefix("Nostr ").ok_or("nobody has signed")?;
    let bytes = STANDARD.decode(text).map_err(|_| "no base64")?;
    let event: Event = serde_json::from_slice(&bytes).map_err(|_| "no event")?;
    if let Some(problem) = event.problem() {
        return Err(problem);
    }
    let expiration = event.tags("expiration").first().and_then(|tag| tag[0].parse::<i64>().ok());
    match () {
        () if event.kind != 24242 => Err("another kind"),
        () if event.content.is_empty() => Err("it does not say what it is for"),
        () if event.created_at > now() => Err("from the future"),
        () if expiration.is_none_or(|end| end <= now()) => Err("it has expired"),
        () if !event.has_tag("t", "upload") => Err("for something else"),
        () if !event.has_tag("x", hash) => Err("for another file"),
        () => Ok(event.pubkey),
    }
}

async fn read(stream: &mut TcpStream) -> Option<Request> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut lines = head.lines();
    let mut first = lines.next()?.split(' ');
    let (method, path) = (first.next()?.to_owned(), first.next()?.to_owned());
    let header = |line: &str| line.split_once(": ").map(|(name, value)| (name.to_lowercase(), value.to_owned()));
    let mut request =
        Request { method, path, headers: lines.filter_map(header).collect(), body: bytes[end..].to_vec() };
    let length: usize = request.header("content-length").parse().unwrap_or_default();
    while request.body.len() < length {
        if stream.read_buf(&mut request.body).await.ok()? == 0 {
            return None;
        }
    }
    Some(request)
}

/// Fetches a file from another server.
async fn fetch(url: &str) -> Option<Vec<u8>> {
    let (address, path) = url.strip_prefix("http://")?.split_once('/')?;
    let mut stream = TcpStream::connect(address).await.ok()?;
    let request = format!("GET /{path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.ok()?;
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n")?;
    answer.starts_with(b"HTTP/1.1 200").then(|| answer[end + 4..].to_vec())
}
