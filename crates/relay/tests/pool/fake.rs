//! A relay that says what a test tells it to say, over a real socket.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use nostr::prelude::{Event, Filter, Keys, Kind, RelayUrl, Timestamp, UnsignedEvent};
use rialto_relay::clock::Clock;
use rialto_relay::pool::{Arrival, Options, Pool, Watch};
use rialto_relay::sign::sign;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

/// Far longer than anything takes; only a test that fails waits for it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// The kind of all events here.
pub(crate) const KIND: Kind = Kind::Custom(5910);

pub(crate) struct Fake {
    pub(crate) url: RelayUrl,
    connections: mpsc::UnboundedReceiver<Peer>,
}

impl Fake {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = RelayUrl::parse(&format!("ws://{}", listener.local_addr().unwrap())).unwrap();
        let (sender, connections) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let sender = sender.clone();
                tokio::spawn(async move {
                    // Whoever asks for the information document gets no answer.
                    if let Ok(socket) = tokio_tungstenite::accept_async(stream).await {
                        let _ = sender.send(Peer { socket });
                    }
                });
            }
        });
        Self { url, connections }
    }

    /// The next connection that the pool makes.
    pub(crate) async fn connection(&mut self) -> Peer {
        within(self.connections.recv()).await.unwrap()
    }

    /// The next connection, with its subscription answered.
    pub(crate) async fn subscribed(&mut self) -> Peer {
        let mut peer = self.connection().await;
        peer.expect("REQ").await;
        peer.say(json!(["EOSE", "rialto"])).await;
        peer
    }
}

/// The pool, as the relay sees it.
pub(crate) struct Peer {
    pub(crate) socket: WebSocketStream<TcpStream>,
}

impl Peer {
    pub(crate) async fn say(&mut self, message: Value) {
        self.say_text(&message.to_string()).await;
    }

    pub(crate) async fn say_text(&mut self, text: &str) {
        self.socket.send(Message::text(text)).await.unwrap();
    }

    /// What the pool says next; `None` when it has closed the connection.
    pub(crate) async fn hear(&mut self) -> Option<Value> {
        loop {
            match within(self.socket.next()).await {
                Some(Ok(Message::Text(text))) => return Some(serde_json::from_str(&text).unwrap()),
                Some(Ok(_)) => {}
                _ => return None,
            }
        }
    }

    /// What the pool says next, which must begin with this word.
    pub(crate) async fn expect(&mut self, word: &str) -> Value {
        let said = self.hear().await.expect("the pool closed the connection");
        assert_eq!(said[0], word, "{said}");
        said
    }

    pub(crate) async fn send(&mut self, event: &Event) {
        self.say_text(&format!("[\"EVENT\",\"rialto\",{}]", event.as_json())).await;
    }

    /// Takes the next event, and answers it.
    pub(crate) async fn judge(&mut self, accepted: bool, words: &str) -> Value {
        let event = self.expect("EVENT").await[1].clone();
        self.say(json!(["OK", event["id"], accepted, words])).await;
        event
    }
}

pub(crate) async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, work).await.expect("nothing happened")
}

/// A clock that stands still until it is told otherwise.
#[derive(Debug)]
pub(crate) struct Set(pub(crate) AtomicU64);

impl Set {
    pub(crate) fn at(seconds: u64) -> Arc<Self> {
        Arc::new(Self(AtomicU64::new(seconds)))
    }

    pub(crate) fn to(&self, seconds: u64) {
        self.0.store(seconds, Ordering::SeqCst);
    }
}

impl Clock for Set {
    fn now(&self) -> Timestamp {
        Timestamp::from(self.0.load(Ordering::SeqCst))
    }
}

pub(crate) fn event(content: &str) -> Event {
    let keys = Keys::generate();
    sign(&keys, UnsignedEvent::new(keys.public_key(), Timestamp::now(), KIND, [], content))
}

/// Everything of our kind, up to a hundred seconds old.
pub(crate) fn watches() -> Vec<Watch> {
    vec![Watch { filter: Filter::new().kind(KIND), spread: Duration::from_secs(100) }]
}

pub(crate) fn pool(relays: &[RelayUrl], options: Options) -> (Pool, mpsc::Receiver<Arrival>) {
    Pool::start(relays, watches(), options)
}

pub(crate) fn with_keys() -> Options {
    Options { keys: Some(Keys::generate()), ..Options::default() }
}

/// Waits until this many relays have taken the subscription.
pub(crate) async fn wait_for_subscriptions(arrivals: &mut mpsc::Receiver<Arrival>, count: usize) {
    let mut subscribed = 0;
    while subscribed < count {
        subscribed += usize::from(matches!(within(arrivals.recv()).await, Some(Arrival::Subscribed { .. })));
    }
}

/// The next event, whatever else arrives before.
pub(crate) async fn next_event(arrivals: &mut mpsc::Receiver<Arrival>) -> Event {
    loop {
        if let Arrival::Event { event, .. } = within(arrivals.recv()).await.expect("the pool is gone") {
            return *event;
        }
    }
}
