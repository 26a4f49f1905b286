//! The driver's connection to the relay: a raw WebSocket that neither verifies nor parses what it carries.

use std::time::Duration;

use futures_util::{FutureExt, SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::{net::TcpStream, time::timeout};
use tokio_tungstenite::{
    WebSocketStream, client_async,
    tungstenite::{Message, Utf8Bytes},
};

use crate::Failure;

/// How long nothing may arrive before a run has failed. The slowest subject needs a second for 64 calls.
const SILENCE: Duration = Duration::from_secs(20);

pub struct Link {
    socket: WebSocketStream<TcpStream>,
}

impl Link {
    pub async fn open(url: &str) -> Result<Self, Failure> {
        let address = url.strip_prefix("ws://").ok_or("the relay's address must begin with ws://")?;
        let stream = TcpStream::connect(address.trim_end_matches('/')).await?;
        // Small frames that wait for each other's acknowledgement would cost 40 ms each.
        stream.set_nodelay(true)?;
        let (socket, _) = client_async(url, stream).await?;
        Ok(Self { socket })
    }

    /// Subscribes and waits until the subscription stands.
    pub async fn subscribe(&mut self, name: &str, filter: &Value) -> Result<(), Failure> {
        self.socket.send(Message::text(json!(["REQ", name, filter]).to_string())).await?;
        loop {
            let frame = self.next().await?;
            if frame.starts_with("[\"CLOSED\"") {
                return Err(format!("the relay refused the subscription: {frame}").into());
            }
            if frame.starts_with("[\"EOSE\"") {
                return Ok(());
            }
        }
    }

    /// Puts a frame into the buffer; [`Link::flush`] sends it.
    pub async fn feed(&mut self, frame: Utf8Bytes) -> Result<(), Failure> {
        Ok(self.socket.feed(Message::Text(frame)).await?)
    }

    pub async fn flush(&mut self) -> Result<(), Failure> {
        Ok(self.socket.flush().await?)
    }

    pub async fn send(&mut self, frame: &str) -> Result<(), Failure> {
        self.feed(frame.into()).await?;
        self.flush().await
    }

    /// The next text.
    pub async fn next(&mut self) -> Result<Utf8Bytes, Failure> {
        self.next_within(SILENCE).await?.ok_or_else(|| "nothing arrived for 20 seconds".into())
    }

    pub async fn next_within(&mut self, limit: Duration) -> Result<Option<Utf8Bytes>, Failure> {
        loop {
            let Ok(message) = timeout(limit, self.socket.next()).await else { return Ok(None) };
            match message.ok_or("the relay closed the connection")?? {
                Message::Text(text) => return Ok(Some(text)),
                Message::Close(_) => return Err("the relay closed the connection".into()),
                _ => {}
            }
        }
    }

    /// The next text if it has arrived already.
    pub fn arrived(&mut self) -> Result<Option<Utf8Bytes>, Failure> {
        loop {
            match self.socket.next().now_or_never() {
                None => return Ok(None),
                Some(None) => return Err("the relay closed the connection".into()),
                Some(Some(message)) => {
                    if let Message::Text(text) = message? {
                        return Ok(Some(text));
                    }
                }
            }
        }
    }
}
