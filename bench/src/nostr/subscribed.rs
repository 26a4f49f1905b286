//! How long a provider takes from its start until it is subscribed at the relay.
//!
//! Not every subject says when it is ready, and none says it in the same way. So a door stands before the relay for this
//! measurement: it passes everything on and notes when the relay has confirmed (`EOSE`) the provider's subscription to
//! requests.

use std::time::{Duration, Instant};

use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    select,
    sync::mpsc::{UnboundedSender, unbounded_channel},
    time::{sleep, timeout},
};
use tokio_tungstenite::{accept_async, client_async, tungstenite::Message};

use super::{server::Server, subject::Subject};
use crate::Failure;

const LIMIT: Duration = Duration::from_secs(30);

/// Starts the provider once and ends it again.
pub async fn measure(subject: &Subject, relay: &str) -> Result<Duration, Failure> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let door = format!("ws://{}", listener.local_addr()?);
    let (subscribed, mut reports) = unbounded_channel();
    let address = relay.trim_start_matches("ws://").trim_end_matches('/').to_owned();
    let kind = subject.dialect.request_kind().to_string();
    let visitors = tokio::spawn(async move {
        while let Ok((visitor, _)) = listener.accept().await {
            let (address, kind, subscribed) = (address.clone(), kind.clone(), subscribed.clone());
            tokio::spawn(async move {
                // A connection that breaks shows as a subscription that never comes.
                let _ = pass(visitor, &address, &kind, &subscribed).await;
            });
        }
    });
    let begin = Instant::now();
    let server = Server::spawn(&subject.command(&door))?;
    let report = timeout(LIMIT, reports.recv()).await;
    visitors.abort();
    let complaint = server.complaint();
    server.stop().await;
    match report {
        Ok(Some(moment)) => Ok(moment - begin),
        _ => Err(format!("not subscribed after {} s{complaint}", LIMIT.as_secs()).into()),
    }
}

async fn pass(
    mut visitor: TcpStream,
    address: &str,
    kind: &str,
    subscribed: &UnboundedSender<Instant>,
) -> Result<(), Failure> {
    visitor.set_nodelay(true)?;
    let mut onward = TcpStream::connect(address).await?;
    onward.set_nodelay(true)?;
    if !wants_websocket(&visitor).await? {
        copy_bidirectional(&mut visitor, &mut onward).await?;
        return Ok(());
    }
    let mut visitor = accept_async(visitor).await?;
    let (mut onward, _) = client_async(format!("ws://{address}"), onward).await?;
    let mut wanted = None;
    loop {
        select! {
            message = visitor.next() => {
                let message = message.ok_or("gone")??;
                if let Message::Text(text) = &message
                    && wanted.is_none() && text.starts_with("[\"REQ\"") && text.contains("\"#p\"") && text.contains(kind)
                {
                    wanted = serde_json::from_str::<Value>(text)?[1].as_str().map(str::to_owned);
                }
                onward.send(message).await?;
            }
            message = onward.next() => {
                let message = message.ok_or("gone")??;
                if let (Message::Text(text), Some(name)) = (&message, &wanted)
                    && text.starts_with("[\"EOSE\"") && text.contains(name.as_str())
                {
                    let _ = subscribed.send(Instant::now());
                }
                visitor.send(message).await?;
            }
        }
    }
}

/// Whether this is a WebSocket or a plain request, such as for the relay's information document.
async fn wants_websocket(visitor: &TcpStream) -> Result<bool, Failure> {
    let mut head = vec![0; 4096];
    loop {
        let size = visitor.peek(&mut head).await?;
        let text = String::from_utf8_lossy(&head[..size]).to_ascii_lowercase();
        if text.contains("\r\n\r\n") || size == head.len() || size == 0 {
            return Ok(text.contains("upgrade: websocket"));
        }
        sleep(Duration::from_millis(1)).await;
    }
}
