//! A connection to a relay: frames go out, frames come in.

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio_tungstenite::client_async;
use tokio_tungstenite::tungstenite::Message;

use super::event::Event;
use super::log::{Log, until};
use super::{PATIENCE, runtime};

pub struct Client {
    out: UnboundedSender<Message>,
    /// Everything that came and was no event.
    answers: Log<Value>,
}

/// `ws://127.0.0.1:1234` without what TCP does not want to know.
pub fn address(url: &str) -> String {
    url.strip_prefix("ws://").unwrap_or_else(|| panic!("no ws:// in {url}")).trim_end_matches('/').to_owned()
}

impl Client {
    /// Connects; every event that comes is given to `on_event` with the name of its subscription.
    pub fn connect(url: &str, on_event: impl Fn(&str, Event) + Send + 'static) -> Self {
        let (address, url) = (address(url), url.to_owned());
        let mut stream = None;
        until("a relay answers", PATIENCE, || {
            stream = runtime().block_on(TcpStream::connect(&address)).ok();
            stream.is_some()
        });
        let stream = stream.unwrap();
        stream.set_nodelay(true).unwrap();
        let socket = runtime().block_on(client_async(url, stream)).unwrap().0;
        let (out, mut to_send) = unbounded_channel();
        let answers: Log<Value> = Log::default();
        let kept = answers.clone();
        let (mut sink, mut source) = socket.split();
        runtime().spawn(async move {
            while let Some(message) = to_send.recv().await {
                if sink.send(message).await.is_err() {
                    break;
                }
            }
        });
        runtime().spawn(async move {
            while let Some(Ok(message)) = source.next().await {
                let Message::Text(text) = message else { continue };
                let frame: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
                match (frame[0].as_str(), frame[1].as_str()) {
                    (Some("EVENT"), Some(name)) => on_event(name, Event::parse(&frame[2])),
                    _ => kept.push(frame),
                }
            }
            kept.push(json!(["the relay hung up"]));
        });
        Self { out, answers }
    }

    pub fn send(&self, frame: &Value) {
        self.send_text(frame.to_string());
    }

    pub fn send_text(&self, text: String) {
        let _ = self.out.send(Message::text(text));
    }

    /// Subscribes and waits until everything stored has come.
    pub fn subscribe(&self, name: &str, filters: &[Value]) {
        let mut frame = vec![json!("REQ"), json!(name)];
        frame.extend_from_slice(filters);
        let before = self.count(|answer| answer[0] == "EOSE" && answer[1] == name);
        self.send(&Value::Array(frame));
        let done = self.answers.wait(PATIENCE, |answers| {
            let count = answers.iter().filter(|answer| answer[0] == "EOSE" && answer[1] == name).count();
            (count > before).then_some(())
        });
        assert!(done.is_some(), "no EOSE for {name}: {:?}", self.answers.look(<[Value]>::to_vec));
    }

    fn count(&self, fits: impl Fn(&Value) -> bool) -> usize {
        self.answers.look(|answers| answers.iter().filter(|answer| fits(answer)).count())
    }

    /// Publishes and gives what the relay says to it: whether it took the event, and why not.
    pub fn publish(&self, event: &Event) -> (bool, String) {
        self.send(&json!(["EVENT", event]));
        let found = self.answers.wait(PATIENCE, |answers| {
            let answer = answers.iter().find(|answer| answer[0] == "OK" && answer[1] == event.id.as_str())?;
            Some((answer[2] == true, answer[3].as_str().unwrap_or_default().to_owned()))
        });
        found.unwrap_or_else(|| panic!("no OK for {}: {:?}", event.id, self.answers.look(<[Value]>::to_vec)))
    }
}
