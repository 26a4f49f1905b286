//! A relay that lets nobody write who has not said who they are (NIP-42), and writes down what happened on each connection.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should panic")]

use futures_util::{SinkExt, StreamExt};
use nostr::prelude::{Event, Kind, PublicKey, RelayUrl};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_tungstenite::accept_async;
use tokio_tungstenite::tungstenite::Message;

/// What one connection showed of whoever was at its other end.
#[derive(Debug, Clone, Default)]
pub(crate) struct Visit {
    /// Who they said they are.
    pub(crate) names: Vec<PublicKey>,
    /// What they published, and was taken.
    pub(crate) taken: Vec<Event>,
    /// What they asked for, as text.
    pub(crate) asked: Vec<String>,
}

/// Whether those who only read must say who they are as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Readers {
    Anonymous,
    Named,
}

pub(crate) struct Doorman {
    pub(crate) url: RelayUrl,
    visits: Arc<Mutex<Vec<Visit>>>,
    task: JoinHandle<()>,
}

impl Drop for Doorman {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Doorman {
    pub(crate) async fn start(readers: Readers) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = RelayUrl::parse(&format!("ws://{}", listener.local_addr().unwrap())).unwrap();
        let visits = Arc::new(Mutex::new(Vec::new()));
        let (shared, own) = (visits.clone(), url.clone());
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let number = {
                    let mut visits = shared.lock().unwrap();
                    visits.push(Visit::default());
                    visits.len() - 1
                };
                tokio::spawn(attend(stream, number, shared.clone(), own.clone(), readers));
            }
        });
        Self { url, visits, task }
    }

    /// Those who said or did something. Questions about the relay itself are no visits.
    pub(crate) fn visits(&self) -> Vec<Visit> {
        self.visits.lock().unwrap().clone()
    }

    /// The visit in which an event was published.
    pub(crate) fn visit_of(&self, id: &str) -> Visit {
        let visits = self.visits();
        let mut found = visits.into_iter().filter(|visit| visit.taken.iter().any(|event| event.id.to_hex() == id));
        let visit = found.next().expect("the event was published");
        assert!(found.next().is_none(), "it was published once");
        visit
    }
}

async fn attend(
    stream: TcpStream,
    number: usize,
    visits: Arc<Mutex<Vec<Visit>>>,
    own: RelayUrl,
    readers: Readers,
) -> Option<()> {
    let mut socket = accept_async(stream).await.ok()?;
    let challenge = format!("challenge {number}");
    let say = |value: Value| Message::text(value.to_string());
    socket.send(say(json!(["AUTH", challenge]))).await.ok()?;
    while let Some(Ok(message)) = socket.next().await {
        let Message::Text(text) = message else { continue };
        let frame: Value = serde_json::from_str(&text).unwrap();
        let is_named = !visits.lock().unwrap()[number].names.is_empty();
        let answer = match frame[0].as_str().unwrap() {
            "AUTH" => {
                let event: Event = serde_json::from_value(frame[1].clone()).unwrap();
                let tag = |name: &str| event.tags.iter().find(|tag| tag.kind() == name).and_then(|tag| tag.content());
                event.verify().unwrap();
                assert_eq!((event.kind, tag("challenge")), (Kind::Authentication, Some(challenge.as_str())));
                assert_eq!(RelayUrl::parse(tag("relay").unwrap()).unwrap(), own, "the answer is for this relay");
                visits.lock().unwrap()[number].names.push(event.pubkey);
                json!(["OK", event.id.to_hex(), true, ""])
            }
            "EVENT" => {
                let event: Event = serde_json::from_value(frame[1].clone()).unwrap();
                let id = event.id.to_hex();
                if is_named {
                    visits.lock().unwrap()[number].taken.push(event);
                    json!(["OK", id, true, ""])
                } else {
                    json!(["OK", id, false, "auth-required: say who you are"])
                }
            }
            "REQ" => {
                visits.lock().unwrap()[number].asked.push(text.to_string());
                match is_named || readers == Readers::Anonymous {
                    true => json!(["EOSE", frame[1]]),
                    false => json!(["CLOSED", frame[1], "auth-required: say who you are"]),
                }
            }
            _ => continue,
        };
        socket.send(say(answer)).await.ok()?;
    }
    Some(())
}
