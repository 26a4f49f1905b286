//! `nostr_blobs_upload`: a file, to servers that keep it by its hash.

use crate::blossom::{self, AUTHORIZATION, Blob};
use crate::failure::Failure;
use crate::files;
use crate::shape::record;
use crate::tool::{self, About, Effect, Status, Turn};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nostr::types::url::Url;
use std::collections::BTreeMap;

record! {
    struct Input {
        /// The file itself, in base64
        data: Option<String>,
        /// A file below the folder that the operator has opened (--files)
        path: Option<String>,
        /// What it is, such as image/png (default application/octet-stream)
        content_type: Option<String>,
        /// Blossom servers, such as https://cdn.example.com (default the list of the active key, kind 10063)
        servers: Option<Vec<String>>,
        /// Copy it to all of these servers, not only to the first that takes it (default false)
        mirror: Option<bool>,
        /// Seconds to wait for the list of servers
        timeout_secs: Option<u64>,
    }
}

record! {
    struct Kept {
        /// The server
        server: String,
        /// Where the file is
        url: String,
    }
}

record! {
    struct Output {
        /// Where the file is
        url: String,
        /// Its hash (SHA-256, hex)
        sha256: String,
        /// Its size in bytes
        size: u64,
        /// What the server takes it for
        content_type: Option<String>,
        /// Since when the server has it (seconds since 1970)
        uploaded: Option<u64>,
        /// All servers that have it now
        copies: Vec<Kept>,
        /// Others, and why
        failed: BTreeMap<String, String>,
    }
}

/// Most servers take no more from strangers.
const MAX_BYTES: usize = 20 * 1024 * 1024;

/// Key files are small; to look for keys in large files would take long.
const MAX_SEARCHED: usize = 1024 * 1024;

const MAX_SERVERS: usize = 8;

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 112,
        name: "nostr_blobs_upload",
        title: "Upload a file",
        status: Status::Experimental,
        nips: &[0xB7],
        summary: "Uploads a file to Blossom servers, where everybody who knows its hash can read it. Gives its address, for use in posts.",
        effect: Effect::Publishes,
        example: r#"{"data":"aGVsbG8=","content_type":"text/plain","servers":["https://blossom.example.com"]}"#,
    };

    type Input = Input;
    type Output = Output;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<Output, Failure> {
        let signer = turn.session.keyring.signer().await?;
        turn.session.guard.admit_event(AUTHORIZATION, &[])?;
        let bytes = content(&input, turn)?;
        let content_type = content_type(input.content_type)?;
        let servers = match &input.servers {
            Some(named) => named_servers(named)?,
            None => turn.blossom_servers(input.timeout_secs).await?,
        };
        let size = bytes.len() as u64;
        let blob = Blob::sign(bytes, content_type, &signer, turn.session.clock.now()).await?;
        let reach = &turn.session.network.reach;
        let mut failed = BTreeMap::new();
        let mut copies: Vec<Kept> = Vec::new();
        let mut first = None;
        for server in &servers {
            let name = blossom::name(server);
            turn.progress(&format!("sending it to {name}")).await;
            let sent = match copies.first() {
                None => blob.upload(server, reach).await,
                Some(copy) => blob.mirror(server, &copy.url, reach).await,
            };
            match sent {
                Ok(descriptor) => {
                    copies.push(Kept { server: name, url: descriptor.url.clone() });
                    first.get_or_insert(descriptor);
                }
                Err(why) => drop(failed.insert(name, why)),
            }
            if first.is_some() && !input.mirror.unwrap_or(false) {
                break;
            }
        }
        let Some(descriptor) = first else { return Err(refused(&failed)) };
        Ok(Output {
            url: descriptor.url,
            sha256: blob.hash,
            size,
            content_type: descriptor.content_type,
            uploaded: descriptor.uploaded,
            copies,
            failed,
        })
    }
}

fn refused(failed: &BTreeMap<String, String>) -> Failure {
    let reasons: Vec<String> = failed.iter().map(|(server, why)| format!("{server}: {why}")).collect();
    let failed = serde_json::to_value(failed).unwrap_or_default();
    Failure::servers(format!("no server took the file ({})", reasons.join("; "))).with("failed", failed)
}

/// What is to be sent. What holds a secret key is not.
fn content(input: &Input, turn: &Turn<'_>) -> Result<Vec<u8>, Failure> {
    let (bytes, pointer) = match (&input.data, &input.path) {
        (Some(data), None) => {
            let bytes = STANDARD.decode(data.trim());
            (bytes.map_err(|_| Failure::invalid("`data` is no base64").at("/data"))?, "/data")
        }
        (None, Some(path)) => {
            let folder = turn.session.guard.files.as_deref().ok_or_else(|| {
                Failure::denied("no files may be read here; give `data`, or start the server with --files DIR")
                    .at("/path")
            })?;
            (files::read(folder, path, MAX_BYTES, "/path")?, "/path")
        }
        _ => return Err(Failure::invalid("give either `data` or `path`").at("/data")),
    };
    if bytes.is_empty() || bytes.len() > MAX_BYTES {
        return Err(Failure::invalid(format!("a file has 1 to {MAX_BYTES} bytes")).at(pointer));
    }
    let session = turn.session;
    if !session.guard.allows_secrets
        && bytes.len() <= MAX_SEARCHED
        && let Ok(text) = std::str::from_utf8(&bytes)
        && session.masked(text)? != text
    {
        return Err(Failure::denied("there is a secret key in the file").at(pointer));
    }
    Ok(bytes)
}

fn content_type(given: Option<String>) -> Result<String, Failure> {
    let Some(given) = given else { return Ok("application/octet-stream".to_owned()) };
    let is_plain = |c: char| c.is_ascii_graphic() || c == ' ';
    match given.contains('/') && given.len() <= 200 && given.chars().all(is_plain) {
        true => Ok(given),
        false => Err(Failure::invalid("a type is written as in image/png").at("/content_type")),
    }
}

fn named_servers(named: &[String]) -> Result<Vec<Url>, Failure> {
    if named.is_empty() || named.len() > MAX_SERVERS {
        return Err(Failure::invalid(format!("name 1 to {MAX_SERVERS} servers")).at("/servers"));
    }
    let read = |(index, text): (usize, &String)| {
        let words = "a server is https:// and a host, without anything after it";
        blossom::server(text).ok_or_else(|| Failure::invalid(words).at(format!("/servers/{index}")))
    };
    named.iter().enumerate().map(read).collect()
}
