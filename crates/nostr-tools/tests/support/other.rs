//! Somebody else on the same relay: another client of the same user, a friend, a web server.

use super::{Client, SOON};
use nostr::nips::nip19::ToBech32;
use nostr::prelude::{Event, Filter, Keys, Kind, RelayUrl, Tag, Timestamp, UnsignedEvent};
use rialto_nostr_tools::tools;
use rialto_relay::pool::{Arrival, Options, Pool, Watch};
use rialto_relay::sign::sign;
use rialto_relay::verdict::Verdict;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::{Mutex, mpsc};

/// Another client.
pub(crate) struct Other {
    pub(crate) keys: Keys,
    pool: Pool,
    arrivals: Mutex<mpsc::Receiver<Arrival>>,
}

impl Other {
    pub(crate) fn new(keys: Keys, relays: &[RelayUrl]) -> Self {
        let options = Options { keys: Some(keys.clone()), give_up: SOON, quorum: 1, ..Options::default() };
        let (pool, arrivals) = Pool::start(relays, Vec::new(), options);
        Self { keys, pool, arrivals: Mutex::new(arrivals) }
    }

    pub(crate) fn event(&self, kind: u16, tags: Vec<Tag>, content: &str, time: u64) -> Event {
        let time = Timestamp::from(time);
        sign(&self.keys, UnsignedEvent::new(self.keys.public_key(), time, Kind::from(kind), tags, content))
    }

    /// Publishes; says whether every relay keeps it.
    pub(crate) async fn publish(&self, event: &Event) -> bool {
        let report = tokio::time::timeout(SOON, self.pool.publish(event).finished()).await.unwrap();
        assert!(!report.verdicts.is_empty());
        let is_taken = report.verdicts.iter().all(|(_, verdict)| *verdict == Verdict::Accepted);
        let is_kept = event.kind.is_ephemeral() || !self.find(Filter::new().id(event.id)).await.is_empty();
        is_taken && is_kept
    }

    /// Publishes; says whether the relay took it as new. A relay says `duplicate` of an older version too, so what it hands
    /// on to those who listen is what counts.
    pub(crate) async fn publish_live(&self, event: &Event) -> bool {
        let filter = Filter::new().author(event.pubkey).kind(event.kind);
        let watch = Watch { filter, spread: std::time::Duration::from_secs(1 << 40) };
        self.pool.watch(vec![watch]);
        while !matches!(self.next().await, Arrival::Subscribed { .. }) {}
        tokio::time::timeout(SOON, self.pool.publish(event).finished()).await.unwrap();
        // Whatever the relay handed on before it answered has come by the time that it answers something else.
        self.find(Filter::new().id(event.id)).await;
        let mut arrivals = self.arrivals.lock().await;
        let mut is_new = false;
        while let Ok(arrival) = arrivals.try_recv() {
            is_new |= matches!(arrival, Arrival::Event { event: found, .. } if found.id == event.id);
        }
        is_new
    }

    async fn next(&self) -> Arrival {
        tokio::time::timeout(SOON, self.arrivals.lock().await.recv()).await.unwrap().unwrap()
    }

    pub(crate) async fn post(&self, kind: u16, tags: Vec<Tag>, content: &str) -> Event {
        let event = self.event(kind, tags, content, Timestamp::now().as_secs());
        assert!(self.publish(&event).await);
        event
    }

    pub(crate) async fn find(&self, filter: Filter) -> Vec<Event> {
        self.pool.query(&[filter], SOON).all().await
    }

    /// The newest event of a kind by somebody.
    pub(crate) async fn newest(&self, kind: u16) -> Option<Event> {
        let filter = Filter::new().author(self.keys.public_key()).kind(Kind::from(kind));
        self.find(filter).await.into_iter().max_by_key(|event| event.created_at)
    }
}

/// Calls a tool; its output must be what it says that it gives.
pub(crate) async fn call(client: &mut Client, tool: &str, arguments: Value) -> Result<Value, Value> {
    let output = client.call(tool, arguments).await?;
    static SCHEMAS: LazyLock<HashMap<&str, Value>> =
        LazyLock::new(|| tools().into_iter().map(|tool| (tool.about.name, tool.output)).collect());
    jsonschema::validate(&SCHEMAS[tool], &output).expect(tool);
    Ok(output)
}

/// A client whose active key the test knows.
pub(crate) async fn client_of(mut options: rialto_nostr_tools::Options, keys: &Keys) -> Client {
    options.guard.allows_secrets = true;
    let mut client = Client::open(options, "2025-11-25").await;
    let import = json!({ "label": "me", "key_material": keys.secret_key().to_bech32().unwrap() });
    client.call("nostr_keys_import", import).await.unwrap();
    client
}

pub(crate) fn tag(parts: &[&str]) -> Tag {
    Tag::parse(parts.iter().copied()).unwrap()
}

/// Answers every HTTP request with what `answer` says to its target: a status and a body. Gives its address.
pub(crate) async fn web(answer: impl Fn(&str) -> (u16, String) + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let answer = Arc::new(answer);
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let answer = answer.clone();
            tokio::spawn(async move {
                let mut request = Vec::new();
                let mut buffer = [0; 4096];
                while !request.windows(4).any(|window| window == b"\r\n\r\n") {
                    match stream.read(&mut buffer).await {
                        Ok(0) | Err(_) => return,
                        Ok(length) => request.extend_from_slice(&buffer[..length]),
                    }
                }
                let text = String::from_utf8_lossy(&request).into_owned();
                let target = text.split(' ').nth(1).unwrap_or_default();
                let (status, body) = answer(target);
                let head = format!(
                    "HTTP/1.1 {status} x\r\ncontent-length: {}\r\nlocation: http://127.0.0.1:1/\r\nconnection: close\r\n\r\n",
                    body.len()
                );
                let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
            });
        }
    });
    address
}
