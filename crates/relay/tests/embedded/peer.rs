//! A client for tests: a WebSocket and nothing else, so that it can also say what no proper client would.

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use nostr::event::{Event, EventBuilder, FinalizeEvent, Kind, Tag};
use nostr::key::Keys;
use nostr::types::Timestamp;
use rialto_relay::embedded::{Limits, Options, Relay};
use serde_json::{Value, json};
use tokio::net::{TcpSocket, TcpStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

/// Far longer than anything takes; only a test that fails waits for it.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Peer {
    pub(crate) socket: WebSocketStream<TcpStream>,
    pub(crate) challenge: String,
}

impl Peer {
    pub(crate) async fn connect(relay: &Relay) -> Self {
        Self::connect_to(relay.address()).await
    }

    pub(crate) async fn connect_to(address: SocketAddr) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        // What the system holds for us need not be much; some tests want to see what happens when it is full.
        socket.set_recv_buffer_size(64 * 1024).unwrap();
        let stream = socket.connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let url = format!("ws://{address}/");
        let (socket, _) = tokio_tungstenite::client_async(url, stream).await.unwrap();
        let mut peer = Self { socket, challenge: String::new() };
        let greeting = peer.next().await;
        assert_eq!(greeting[0], "AUTH");
        peer.challenge = greeting[1].as_str().unwrap().to_owned();
        peer
    }

    pub(crate) async fn send(&mut self, message: Value) {
        self.send_text(&message.to_string()).await;
    }

    pub(crate) async fn send_text(&mut self, text: &str) {
        self.socket.send(Message::text(text)).await.unwrap();
    }

    /// The next message of any kind; `None` when the relay has closed the connection.
    pub(crate) async fn next_frame(&mut self) -> Option<Message> {
        let next = tokio::time::timeout(PATIENCE, self.socket.next()).await.expect("the relay said nothing");
        next.and_then(Result::ok)
    }

    /// The next message that is text.
    pub(crate) async fn next(&mut self) -> Value {
        serde_json::from_str(&self.next_text().await).unwrap()
    }

    pub(crate) async fn next_text(&mut self) -> String {
        loop {
            match self.next_frame().await.expect("the relay closed the connection") {
                Message::Text(text) => return text.to_string(),
                Message::Close(close) => panic!("the relay closed: {close:?}"),
                _ => {}
            }
        }
    }

    /// Publishes and returns whether it was accepted, and why not.
    pub(crate) async fn publish(&mut self, event: &Event) -> (bool, String) {
        self.send(json!(["EVENT", event])).await;
        let answer = self.next().await;
        assert_eq!((&answer[0], &answer[1]), (&json!("OK"), &json!(event.id.to_hex())), "{answer}");
        (answer[2].as_bool().unwrap(), answer[3].as_str().unwrap().to_owned())
    }

    pub(crate) async fn accept(&mut self, event: &Event) {
        assert_eq!(self.publish(event).await, (true, String::new()));
    }

    /// Publishes what must be refused with these words.
    pub(crate) async fn refuse(&mut self, event: &Event, why: &str) {
        let (accepted, reason) = self.publish(event).await;
        assert!(!accepted && reason.starts_with(why), "{accepted} {reason}");
    }

    /// Opens a subscription and returns the ids of the stored events.
    pub(crate) async fn open(&mut self, name: &str, filters: &[Value]) -> Vec<String> {
        let mut message = vec![json!("REQ"), json!(name)];
        message.extend_from_slice(filters);
        self.send(Value::Array(message)).await;
        let mut ids = Vec::new();
        loop {
            let answer = self.next().await;
            assert_eq!(answer[1], name, "{answer}");
            match answer[0].as_str().unwrap() {
                "EVENT" => ids.push(answer[2]["id"].as_str().unwrap().to_owned()),
                "EOSE" => return ids,
                _ => panic!("{answer}"),
            }
        }
    }

    /// The ids of the stored events that match one filter.
    pub(crate) async fn find(&mut self, filter: Value) -> Vec<String> {
        let ids = self.open("find", &[filter]).await;
        self.send(json!(["CLOSE", "find"])).await;
        ids
    }

    pub(crate) async fn count(&mut self, filters: &[Value]) -> u64 {
        let mut message = vec![json!("COUNT"), json!("n")];
        message.extend_from_slice(filters);
        self.send(Value::Array(message)).await;
        let answer = self.next().await;
        assert_eq!((&answer[0], &answer[1]), (&json!("COUNT"), &json!("n")), "{answer}");
        answer[2]["count"].as_u64().unwrap()
    }

    /// Expects an event of a subscription.
    pub(crate) async fn receive(&mut self, name: &str) -> String {
        let answer = self.next().await;
        assert_eq!((&answer[0], &answer[1]), (&json!("EVENT"), &json!(name)), "{answer}");
        answer[2]["id"].as_str().unwrap().to_owned()
    }

    /// Asks something harmless; whatever comes before the answer was meant for us.
    pub(crate) async fn expect_silence(&mut self) {
        self.send(json!(["COUNT", "silence", { "ids": [] }])).await;
        let answer = self.next().await;
        assert_eq!(answer, json!(["COUNT", "silence", { "count": 0 }]));
    }

    pub(crate) async fn authenticate(&mut self, keys: &Keys, relay: &str) -> (bool, String) {
        let event = self.authentication(keys, relay);
        self.send(json!(["AUTH", event])).await;
        let answer = self.next().await;
        assert_eq!((&answer[0], &answer[1]), (&json!("OK"), &json!(event.id.to_hex())), "{answer}");
        (answer[2].as_bool().unwrap(), answer[3].as_str().unwrap().to_owned())
    }

    pub(crate) fn authentication(&self, keys: &Keys, relay: &str) -> Event {
        let challenge = self.challenge.clone();
        Draft::new(22242).tag(&["relay", relay]).tag(&["challenge", &challenge]).sign(keys)
    }
}

/// An event to be signed.
#[derive(Clone)]
pub(crate) struct Draft {
    kind: u16,
    content: String,
    created_at: u64,
    tags: Vec<Vec<String>>,
}

impl Draft {
    pub(crate) fn new(kind: u16) -> Self {
        Self { kind, content: String::new(), created_at: now(), tags: Vec::new() }
    }

    pub(crate) fn note(content: &str) -> Self {
        Self::new(1).content(content)
    }

    pub(crate) fn content(mut self, content: &str) -> Self {
        self.content = content.to_owned();
        self
    }

    pub(crate) fn at(mut self, created_at: u64) -> Self {
        self.created_at = created_at;
        self
    }

    pub(crate) fn tag(mut self, tag: &[&str]) -> Self {
        self.tags.push(tag.iter().map(|part| (*part).to_owned()).collect());
        self
    }

    pub(crate) fn sign(self, keys: &Keys) -> Event {
        let tags = self.tags.into_iter().map(|tag| Tag::parse(tag).unwrap());
        EventBuilder::new(Kind::from_u16(self.kind), self.content)
            .tags(tags)
            .custom_created_at(Timestamp::from_secs(self.created_at))
            .finalize(keys)
            .unwrap()
    }
}

pub(crate) fn now() -> u64 {
    Timestamp::now().as_secs()
}

pub(crate) async fn start() -> Relay {
    Relay::start(Options::default()).await.unwrap()
}

pub(crate) async fn start_with(limits: Limits) -> Relay {
    Relay::start(Options { limits, ..Options::default() }).await.unwrap()
}

pub(crate) fn id(event: &Event) -> String {
    event.id.to_hex()
}
