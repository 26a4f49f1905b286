//! A server in this process, and a client that speaks JSON-RPC to it in any version of the protocol.

#![allow(dead_code, reason = "not every test file uses all of it")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should panic")]

pub(crate) mod bunker;
pub(crate) mod doorman;
pub(crate) mod other;

use nostr::prelude::RelayUrl;
use rialto_mcp::serve::{Streams, serve};
use rialto_nostr_tools::{Options, Server, Session};
use rialto_relay::embedded::{self, Relay};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf};

/// The versions in which errors look different, and the one that has no handshake.
pub(crate) const VERSIONS: [&str; 3] = ["2025-06-18", "2025-11-25", "2026-07-28"];

/// Long enough for a machine under load; nothing that works takes this long.
pub(crate) const SOON: Duration = Duration::from_secs(30);

/// A folder, a relay, and what a session begins with.
pub(crate) struct World {
    pub(crate) home: TempDir,
    pub(crate) relay: Relay,
}

impl World {
    pub(crate) async fn new() -> Self {
        let relay = Relay::start(embedded::Options::default()).await.unwrap();
        Self { home: tempfile::tempdir().unwrap(), relay }
    }

    pub(crate) fn url(&self) -> RelayUrl {
        RelayUrl::parse(&self.relay.url()).unwrap()
    }

    pub(crate) fn directory(&self) -> &Path {
        self.home.path()
    }

    pub(crate) fn options(&self) -> Options {
        Options { relays: vec![self.url()], ..Options::new(self.home.path()) }
    }

    pub(crate) async fn client(&self, version: &str) -> Client {
        Client::open(self.options(), version).await
    }
}

/// What the user answers when asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum User {
    /// The client cannot ask.
    Unreachable,
    Accepts,
    Declines,
}

/// An MCP client.
pub(crate) struct Client {
    version: String,
    user: User,
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    writer: WriteHalf<DuplexStream>,
    next: u64,
    /// The questions that the user was asked.
    pub(crate) questions: Vec<Value>,
    /// What the server told on its own account.
    pub(crate) notes: Vec<Value>,
}

impl Client {
    pub(crate) async fn open(options: Options, version: &str) -> Self {
        Self::with_user(options, version, User::Unreachable).await
    }

    pub(crate) async fn with_user(options: Options, version: &str, user: User) -> Self {
        let server = Arc::new(Server::new(Session::open(options).unwrap()));
        let (ours, theirs) = tokio::io::duplex(1024 * 1024);
        let (reader, writer) = tokio::io::split(theirs);
        let streams =
            Streams { reader: Box::pin(reader), writer: Box::pin(writer), closed: Box::pin(std::future::pending()) };
        tokio::spawn(async move { serve(server, streams).await });
        let (reader, writer) = tokio::io::split(ours);
        let lines = BufReader::new(reader).lines();
        let mut client = Self {
            version: version.to_owned(),
            user,
            lines,
            writer,
            next: 1,
            questions: Vec::new(),
            notes: Vec::new(),
        };
        if !client.is_modern() {
            let about = json!({ "name": "test", "version": "1" });
            let params =
                json!({ "protocolVersion": version, "capabilities": client.capabilities(), "clientInfo": about });
            let welcome = client.request("initialize", params).await;
            assert_eq!(welcome["result"]["protocolVersion"], version);
            client.write(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        }
        client
    }

    fn is_modern(&self) -> bool {
        self.version.as_str() >= "2026"
    }

    fn capabilities(&self) -> Value {
        if self.user == User::Unreachable { json!({}) } else { json!({ "elicitation": {} }) }
    }

    async fn write(&mut self, message: &Value) {
        self.writer.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn read(&mut self) -> Value {
        let line = tokio::time::timeout(SOON, self.lines.next_line()).await.expect("there is an answer");
        serde_json::from_str(&line.unwrap().expect("the server is there")).unwrap()
    }

    /// Sends a request and gives the whole response.
    pub(crate) async fn request(&mut self, method: &str, mut params: Value) -> Value {
        let id = self.next;
        self.next += 1;
        if self.is_modern() {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": self.version,
                "io.modelcontextprotocol/clientCapabilities": self.capabilities(),
                "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
            });
        }
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
        loop {
            let message = self.read().await;
            if message["method"] == "elicitation/create" {
                self.questions.push(message["params"].clone());
                let answer = self.answer();
                self.write(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": answer })).await;
            } else if message["id"] == id {
                return message;
            } else if message["id"].is_null() {
                self.notes.push(message);
            }
        }
    }

    /// Waits for a notification.
    pub(crate) async fn note(&mut self, method: &str) -> Value {
        loop {
            if let Some(place) = self.notes.iter().position(|note| note["method"] == method) {
                return self.notes.remove(place)["params"].clone();
            }
            let message = self.read().await;
            self.notes.push(message);
        }
    }

    fn answer(&self) -> Value {
        match self.user {
            User::Accepts => json!({ "action": "accept", "content": {} }),
            _ => json!({ "action": "decline" }),
        }
    }

    /// Calls a tool and gives the whole response; answers questions of the stateless era too.
    pub(crate) async fn call_raw(&mut self, tool: &str, arguments: &Value) -> Value {
        let params = json!({ "name": tool, "arguments": arguments });
        let response = self.request("tools/call", params.clone()).await;
        if response["result"]["resultType"] != "input_required" {
            return response;
        }
        let mut again = params;
        for (name, question) in response["result"]["inputRequests"].as_object().unwrap() {
            self.questions.push(question["params"].clone());
            again["inputResponses"][name] = self.answer();
        }
        again["requestState"] = response["result"]["requestState"].clone();
        self.request("tools/call", again).await
    }

    /// Calls a tool: its result, or its error as an object with `code`, `message` and `data`.
    pub(crate) async fn call(&mut self, tool: &str, arguments: Value) -> Result<Value, Value> {
        let response = self.call_raw(tool, &arguments).await;
        if response["error"].is_object() {
            return Err(response["error"].clone());
        }
        let result = &response["result"];
        let text = result["content"][0]["text"].as_str().unwrap_or_default();
        if result["isError"] == true {
            let error = result["structuredContent"]["error"].clone();
            assert_eq!(error["message"], text);
            return Err(error);
        }
        let output = result["structuredContent"].clone();
        assert_eq!(serde_json::from_str::<Value>(text).unwrap(), output, "the text says the same");
        Ok(output)
    }
}

/// Everything in a folder, as text.
pub(crate) fn files(directory: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
            found.push((path.display().to_string(), text));
        }
    }
    found
}
