//! The way of 2024-11-05: a stream is opened first, its first event names the address for messages, and all answers come
//! on the stream.

use super::carrier::{Carrier, End, Signal};
use super::endpoint::{is_same_origin, to_uri};
use super::events::{Events, TooLong};
use super::exchange::{is_stream, refusal};
use http_body_util::BodyExt;
use hyper::Uri;
use hyper::body::Incoming;
use rialto_mcp::client::Host;
use rialto_mcp::line::DEFAULT_LIMIT;
use rialto_mcp::pending::Fault;
use std::sync::Arc;
use std::time::Duration;

/// How long a server may take to name the address for messages.
const ADDRESS_PATIENCE: Duration = Duration::from_secs(15);

impl<H: Host> Carrier<H> {
    /// Opens the stream; from then on messages go to the address that it names.
    pub(super) async fn open_oldest(self: &Arc<Self>) -> Result<(), Fault> {
        let opened = async {
            let response = self.open_stream(None).await?;
            if !is_stream(&response) {
                return Err(refusal(response.status()));
            }
            let mut stream = Stream { body: response.into_body(), events: Events::new(DEFAULT_LIMIT) };
            let address = self.read_address(&mut stream).await?;
            Ok((address, stream))
        };
        let late = |_| Fault::Timeout(ADDRESS_PATIENCE);
        let (address, stream) = tokio::time::timeout(ADDRESS_PATIENCE, opened).await.map_err(late)??;
        let _ = self.oldest.set(address);
        let carrier = self.clone();
        self.run_beside(async move { carrier.read_oldest(stream).await }).await;
        Ok(())
    }

    async fn read_address(&self, stream: &mut Stream) -> Result<Uri, Fault> {
        let event = stream.next(|kind| kind == b"endpoint").await?;
        let text = std::str::from_utf8(&event).map_err(|error| Fault::Unreadable(error.to_string()))?;
        let url = self.remote.endpoint.url();
        let target = url.join(text.trim()).map_err(|error| Fault::Unreadable(error.to_string()))?;
        // What we say, with the user's headers, is for nobody else.
        if !is_same_origin(url, &target) {
            return Err(Fault::Unreadable("it wants messages to be sent to another host".to_owned()));
        }
        to_uri(&target).ok_or_else(|| Fault::Unreadable("the address for messages is none".to_owned()))
    }

    async fn read_oldest(&self, mut stream: Stream) {
        let end = loop {
            match stream.next(|kind| kind.is_empty() || kind == b"message").await {
                Ok(text) => self.client.receive(&self.host, text).await,
                Err(fault) => break fault,
            }
        };
        self.signal(Signal::End(End::Lost(end))).await;
    }
}

struct Stream {
    body: Incoming,
    events: Events,
}

impl Stream {
    /// The data of the next event of a kind that is wanted.
    async fn next(&mut self, wanted: impl Fn(&[u8]) -> bool) -> Result<bytes::Bytes, Fault> {
        loop {
            while let Some(event) = self.events.next().map_err(|TooLong| Fault::TooLong)? {
                if wanted(&event.kind) {
                    return Ok(event.data);
                }
            }
            match self.body.frame().await {
                None => return Err(Fault::Lost("the stream ended".into())),
                Some(Err(error)) => return Err(Fault::Lost(error.to_string().into())),
                Some(Ok(frame)) => self.events.push(&frame.into_data().unwrap_or_default()),
            }
        }
    }
}
