//! One client: reads its messages, answers them, and sends it what its subscriptions find.
//!
//! Reading and writing happen in one task. While a client does not take what it asked for, nothing more is read from
//! it, so it can only fill its own buffers; events that come for it meanwhile wait in its outbox, which is bounded.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{FutureExt, SinkExt, StreamExt};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

use super::auth::Challenge;
use super::client::Client;
use super::engine::Engine;
use super::message;
use super::options::Limits;
use super::outbox::{Outbox, event_message};

/// Silence after which we ask whether anybody is there; half of what routers commonly allow.
const PING: Duration = Duration::from_secs(45);

/// How long a client may refuse to take any of what it asked for.
const WRITE_PATIENCE: Duration = Duration::from_secs(30);

/// How many messages are answered before the answers are sent and others get their turn.
const BATCH: usize = 32;

/// Buffers of a connection. Larger ones would only help clients that send megabytes.
const BUFFER: usize = 16 * 1024;

/// After a message that is too large even to be thrown away: how much of it we let pass so that the goodbye arrives.
const DRAIN_BYTES: usize = 64 * 1024 * 1024;
const DRAIN_TIME: Duration = Duration::from_secs(5);

/// A stream on which WebSocket has been agreed, and what has been read from it too early.
#[derive(Debug)]
pub(super) struct Wire {
    pub(super) stream: TcpStream,
    pub(super) already_read: Vec<u8>,
}

/// Why a session ends.
enum End {
    /// The client has gone, or there is no way to tell it anything.
    Gone,
    /// The relay stops.
    Stopping,
    /// The client broke a rule of WebSocket.
    Broken(CloseCode, &'static str),
    /// A message was larger than anything we are ready to hold.
    TooLarge,
}

/// Serves one client until either side ends it.
pub(super) async fn run(wire: Wire, local: SocketAddr, engine: Arc<Engine>, mut stopping: watch::Receiver<bool>) {
    let limits = engine.options.limits.clone();
    let Ok(challenge) = Challenge::new(engine.options.url.as_deref(), local) else { return };
    let outbox = Arc::new(Outbox::new(limits.max_queue_messages, limits.max_queue_bytes));
    let config = config(&limits);
    let socket = WebSocketStream::from_partially_read(wire.stream, wire.already_read, Role::Server, Some(config)).await;
    let client = Client::new(engine, outbox.clone(), challenge);
    let mut session = Session { socket, client, outbox: outbox.clone(), max_message_bytes: limits.max_message_bytes };
    let end = tokio::select! {
        end = session.talk() => end,
        // It does not read, so there is no use in saying why.
        () = outbox.overflowed() => End::Gone,
        _ = stopping.changed() => End::Stopping,
    };
    session.end(end).await;
}

/// A message may be somewhat larger than allowed and still be refused in words instead of by hanging up.
fn config(limits: &Limits) -> WebSocketConfig {
    let bearable = limits.max_message_bytes.saturating_mul(2);
    WebSocketConfig::default()
        .read_buffer_size(BUFFER)
        .write_buffer_size(BUFFER)
        .max_message_size(Some(bearable))
        .max_frame_size(Some(bearable))
}

struct Session {
    socket: WebSocketStream<TcpStream>,
    client: Client,
    outbox: Arc<Outbox>,
    max_message_bytes: usize,
}

impl Session {
    async fn talk(&mut self) -> End {
        match self.converse().await {
            Ok(()) => End::Gone,
            Err(Error::Capacity(_)) => End::TooLarge,
            Err(Error::Utf8(_)) => End::Broken(CloseCode::Invalid, "text must be UTF-8"),
            Err(Error::Protocol(_)) => End::Broken(CloseCode::Protocol, "not WebSocket as in RFC 6455"),
            Err(_) => End::Gone,
        }
    }

    async fn converse(&mut self) -> Result<(), Error> {
        self.feed(self.client.greeting()).await?;
        let outbox = self.outbox.clone();
        let mut pings = interval(PING);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        pings.tick().await;
        let mut heard = Instant::now();
        loop {
            self.send_waiting().await?;
            tokio::select! {
                message = self.socket.next() => {
                    heard = Instant::now();
                    let Some(message) = message else { return Ok(()) };
                    if self.receive_batch(message?).await? == Flow::Over {
                        return Ok(());
                    }
                }
                () = outbox.filled() => {}
                _ = pings.tick() => {
                    if heard.elapsed() > PING * 2 {
                        return Ok(());
                    }
                    self.feed_message(Message::Ping(Default::default())).await?;
                }
            }
        }
    }

    /// Answers a message and those that have already arrived behind it, so that the answers leave together.
    async fn receive_batch(&mut self, first: Message) -> Result<Flow, Error> {
        let mut message = first;
        for _ in 1..BATCH {
            if self.receive(message).await? == Flow::Over {
                return Ok(Flow::Over);
            }
            match self.socket.next().now_or_never() {
                Some(Some(next)) => message = next?,
                Some(None) => return Ok(Flow::Over),
                None => return Ok(Flow::On),
            }
        }
        let flow = self.receive(message).await?;
        tokio::task::yield_now().await;
        Ok(flow)
    }

    async fn receive(&mut self, message: Message) -> Result<Flow, Error> {
        match message {
            Message::Text(text) if text.len() > self.max_message_bytes => {
                let answer = self.client.refuse_large(&text);
                self.feed(answer).await?;
            }
            Message::Text(text) => {
                let reply = self.client.receive(&text).await;
                for (opening, event) in reply.stored() {
                    self.feed(event_message(opening, event)).await?;
                }
                for text in reply.last_words {
                    self.feed(text).await?;
                }
            }
            Message::Binary(_) => {
                self.feed(message::notice("invalid: messages are text, not binary")).await?;
            }
            Message::Close(_) => return Ok(Flow::Over),
            // Pings are answered by the library with the next flush.
            Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
        }
        Ok(Flow::On)
    }

    /// Sends what waits, and everything that has been fed before, in as few writes as possible.
    async fn send_waiting(&mut self) -> Result<(), Error> {
        loop {
            for letter in self.outbox.take() {
                self.feed(letter.into_text()).await?;
            }
            timeout(WRITE_PATIENCE, self.socket.flush()).await.map_err(|_| Error::ConnectionClosed)??;
            // Only a slow write gives others the time to put in more.
            if self.outbox.is_empty() {
                return Ok(());
            }
        }
    }

    async fn feed(&mut self, text: String) -> Result<(), Error> {
        self.feed_message(Message::text(text)).await
    }

    async fn feed_message(&mut self, message: Message) -> Result<(), Error> {
        timeout(WRITE_PATIENCE, self.socket.feed(message)).await.map_err(|_| Error::ConnectionClosed)?
    }

    /// Says goodbye as far as that makes sense.
    async fn end(mut self, end: End) {
        let (code, reason) = match end {
            End::Gone => {
                // Answers a close message, if one has come.
                let _ = timeout(Duration::from_secs(1), self.socket.flush()).await;
                return;
            }
            End::Stopping => (CloseCode::Away, "the relay stops"),
            End::Broken(code, reason) => (code, reason),
            End::TooLarge => (CloseCode::Size, "the message is too large"),
        };
        let is_too_large = matches!(end, End::TooLarge);
        let goodbye = async {
            if is_too_large {
                self.socket.feed(Message::text(self.client.too_large())).await?;
            }
            self.socket.close(Some(CloseFrame { code, reason: reason.into() })).await
        };
        let said = timeout(Duration::from_secs(1), goodbye).await;
        if is_too_large && matches!(said, Ok(Ok(()))) {
            // Closing a socket with unread input resets it, and the reset may overtake the goodbye.
            let _ = timeout(DRAIN_TIME, drain(self.socket.into_inner())).await;
        }
    }
}

/// Whether the conversation goes on.
#[derive(PartialEq, Eq)]
enum Flow {
    On,
    Over,
}

async fn drain(mut stream: TcpStream) -> std::io::Result<()> {
    stream.shutdown().await?;
    let mut rest = DRAIN_BYTES;
    let mut buffer = vec![0; BUFFER];
    while rest > 0 {
        let read = stream.read(&mut buffer).await?;
        if read == 0 {
            break;
        }
        rest = rest.saturating_sub(read);
    }
    Ok(())
}
