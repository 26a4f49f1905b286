//! The sockets of a relay.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio_tungstenite::accept_async;
use tokio_tungstenite::tungstenite::Message;

use super::FakeRelay;
use super::state::{Connection, Out};
use crate::nostr_side::runtime;

impl FakeRelay {
    pub(super) async fn attend(self, stream: TcpStream) {
        let _ = stream.set_nodelay(true);
        let mut head = [0; 4096];
        loop {
            let Ok(length) = stream.peek(&mut head).await else { return };
            if length == 0 {
                return;
            }
            let text = String::from_utf8_lossy(&head[..length]).to_lowercase();
            if !text.contains("\r\n\r\n") {
                tokio::time::sleep(Duration::from_millis(1)).await;
                continue;
            }
            if text.contains("upgrade: websocket") {
                break;
            }
            return self.introduce(stream).await;
        }
        let Ok(socket) = accept_async(stream).await else { return };
        let (out, to_send) = unbounded_channel();
        let unwritten = Arc::new(AtomicUsize::new(0));
        let number = {
            let mut state = self.lock();
            state.connected += 1;
            let number = state.connected;
            let connection = Connection::new(out, unwritten.clone());
            if state.rules.wants_auth {
                connection.say(json!(["AUTH", "prove it"]).to_string());
            }
            state.connections.insert(number, connection);
            number
        };
        self.state.1.notify_all();
        let (sink, mut source) = socket.split();
        let writer = runtime().spawn(write(sink, to_send, unwritten));
        let reading = async {
            while let Some(Ok(message)) = source.next().await {
                if let Message::Text(text) = message {
                    self.lock().hear(number, &text);
                    self.state.1.notify_all();
                }
            }
        };
        // Whichever side ends first ends both, so that a cut connection is really cut.
        tokio::select! {
            () = reading => {}
            _ = writer => {}
        }
        self.lock().connections.remove(&number);
        self.state.1.notify_all();
    }

    /// Answers a plain HTTP request: who the relay is.
    async fn introduce(self, mut stream: TcpStream) {
        let information = self.lock().rules.information.clone();
        let answer = match information {
            Some(value) => {
                let body = value.to_string();
                format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: application/nostr+json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
                    body.len()
                )
            }
            None => "HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".to_owned(),
        };
        let _ = stream.write_all(answer.as_bytes()).await;
        let _ = stream.shutdown().await;
    }
}

async fn write(
    mut sink: impl futures_util::Sink<Message> + Unpin,
    mut to_send: UnboundedReceiver<Out>,
    unwritten: Arc<AtomicUsize>,
) {
    while let Some(out) = to_send.recv().await {
        let text = match out {
            Out::Text(text) => text,
            Out::Later(delay, text) => {
                tokio::time::sleep(delay).await;
                text
            }
            Out::HangUp => return,
        };
        if sink.send(Message::text(text)).await.is_err() {
            return;
        }
        unwritten.fetch_sub(1, Ordering::Relaxed);
    }
}
