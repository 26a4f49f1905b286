//! Servers for files (Blossom): a file is named by its hash, and whoever sends it says so in a signed event.
//!
//! BUD-01 is the event, BUD-02 the upload, BUD-03 the list of somebody's servers, BUD-04 the copy from one server to another.

use crate::failure::Failure;
use crate::lightning::sha256;
use crate::network::{Route, patience};
use crate::result::quoted;
use crate::signer::Signer;
use crate::tool::Turn;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use nostr::prelude::{Filter, Kind, Tag, Timestamp, UnsignedEvent};
use nostr::types::url::Url;
use rialto_relay::address::{self, Reach};
use rialto_relay::http::{self, Upload};
use serde::Deserialize;
use std::time::Duration;

/// The event that says who sends what.
pub(crate) const AUTHORIZATION: Kind = Kind::Custom(24_242);

/// The list of somebody's servers.
const SERVERS: Kind = Kind::Custom(10_063);

/// Servers of one list that are used.
const MAX_SERVERS: usize = 8;

/// How long the event is good for: long enough for a slow line, too short to be of use to a thief.
const VALID: u64 = 600;

/// How long one server may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// A file on its way.
#[derive(Debug, Clone)]
pub(crate) struct Blob {
    pub(crate) bytes: Bytes,
    pub(crate) content_type: String,
    /// Its hash, by which it is named.
    pub(crate) hash: String,
    authorization: String,
}

/// What a server says of a file that it has.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Descriptor {
    pub(crate) url: String,
    sha256: String,
    #[serde(default)]
    size: Option<u64>,
    #[serde(default, rename = "type")]
    pub(crate) content_type: Option<String>,
    #[serde(default)]
    pub(crate) uploaded: Option<u64>,
}

/// The address of a server: its host, and nothing after it.
pub(crate) fn server(text: &str) -> Option<Url> {
    let url = Url::parse(text.trim()).ok()?;
    let is_web = url.scheme() == "https" || (url.scheme() == "http" && address::is_loopback(&url));
    let is_bare = matches!(url.path(), "" | "/") && url.query().is_none() && url.fragment().is_none();
    (is_web && is_bare && url.username().is_empty() && url.password().is_none()).then_some(url)
}

/// A server as it is shown.
pub(crate) fn name(server: &Url) -> String {
    server.as_str().trim_end_matches('/').to_owned()
}

impl Blob {
    /// Signs for a file.
    pub(crate) async fn sign(
        bytes: Vec<u8>,
        content_type: String,
        signer: &Signer,
        now: Timestamp,
    ) -> Result<Self, Failure> {
        let hash: String = sha256(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        let tags = [
            Tag::custom("t", ["upload"]),
            Tag::custom("x", [&hash]),
            Tag::custom("expiration", [(now.as_secs() + VALID).to_string()]),
        ];
        let words = format!("Upload a file of {} bytes", bytes.len());
        let event = signer.sign(UnsignedEvent::new(signer.public_key(), now, AUTHORIZATION, tags, words)).await?;
        let event = serde_json::to_string(&event).map_err(|error| Failure::internal(error.to_string()))?;
        let authorization = format!("Nostr {}", STANDARD.encode(event));
        Ok(Self { bytes: bytes.into(), content_type, hash, authorization })
    }

    /// Sends the file itself; says why not in words.
    pub(crate) async fn upload(&self, server: &Url, reach: &Reach) -> Result<Descriptor, String> {
        self.put(server, "upload", self.bytes.clone(), &self.content_type, reach).await
    }

    /// Lets a server fetch the file from where it is already, or, if it does not want to, sends it.
    pub(crate) async fn mirror(&self, server: &Url, from: &str, reach: &Reach) -> Result<Descriptor, String> {
        let body = serde_json::json!({ "url": from }).to_string();
        match self.put(server, "mirror", body.into(), "application/json", reach).await {
            Ok(descriptor) => Ok(descriptor),
            Err(_) => self.upload(server, reach).await,
        }
    }

    async fn put(
        &self,
        server: &Url,
        path: &str,
        body: Bytes,
        content_type: &str,
        reach: &Reach,
    ) -> Result<Descriptor, String> {
        let url = server.join(path).map_err(|error| error.to_string())?;
        let addresses = reach.addresses(&url).await.map_err(|error| error.to_string())?;
        let authorization = self.authorization.clone();
        let upload = Upload { body, content_type: content_type.to_owned(), authorization };
        let reply = http::put_to(&url, &addresses, upload, PATIENCE).await.map_err(|error| error.to_string())?;
        if !(200..300).contains(&reply.status) {
            let told = reply.reason.or_else(|| {
                let answer: serde_json::Value = serde_json::from_slice(&reply.body).ok()?;
                Some(answer.get("message")?.as_str()?.to_owned())
            });
            return Err(quoted(&format!("{} {}", reply.status, told.unwrap_or_default())));
        }
        let descriptor: Descriptor =
            serde_json::from_slice(&reply.body).map_err(|_| "its answer is no description of a file".to_owned())?;
        self.check(descriptor)
    }

    /// A server that has changed the file, or means another one, does not have it.
    fn check(&self, descriptor: Descriptor) -> Result<Descriptor, String> {
        if !descriptor.sha256.eq_ignore_ascii_case(&self.hash) {
            return Err("it says that it has another file: the hash differs".to_owned());
        }
        if descriptor.size.is_some_and(|size| size != self.bytes.len() as u64) {
            return Err("it says that it has another file: the size differs".to_owned());
        }
        let is_named = Url::parse(&descriptor.url).is_ok_and(|url| {
            matches!(url.scheme(), "http" | "https") && url.path().to_lowercase().contains(&self.hash)
        });
        if !is_named {
            return Err("the address that it gives is not that of the file".to_owned());
        }
        Ok(descriptor)
    }
}

impl Turn<'_> {
    /// The servers that the active key has chosen.
    pub(crate) async fn blossom_servers(&self, timeout: Option<u64>) -> Result<Vec<Url>, Failure> {
        let filter = Filter::new().author(self.me()?).kind(SERVERS).limit(1);
        let found = self.fetch(&[filter], Route::Usual, patience(timeout)).await?;
        let named = found.first().into_iter().flat_map(|event| event.tags.iter()).filter(|tag| tag.kind() == "server");
        let servers: Vec<Url> = named.filter_map(|tag| server(tag.content()?)).take(MAX_SERVERS).collect();
        if servers.is_empty() {
            let words = "you have published no list of Blossom servers (kind 10063); name one in `servers`";
            return Err(Failure::not_found(words).at("/servers"));
        }
        Ok(servers)
    }
}
