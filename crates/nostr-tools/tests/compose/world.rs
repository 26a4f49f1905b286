//! A relay, a user with a key, and their tools.

use nostr::prelude::{Event, Keys, Kind, RelayUrl, Tag, Timestamp, UnsignedEvent};
use rialto_hub::schema::Schema;
use rialto_mcp::local::Local;
use rialto_mcp::reply::Answer;
use rialto_nostr_tools::{Activate, Keyring, Material, Options, Passphrase, Server, Session};
use rialto_relay::embedded::{self, Relay};
use rialto_relay::sign::sign;
use serde_json::{Value, json};
use std::sync::Arc;
use tempfile::TempDir;

pub(crate) struct World {
    pub(crate) relay: Relay,
    pub(crate) me: Keys,
    local: Local<Server>,
    _home: TempDir,
}

/// Who the user is.
pub(crate) enum User {
    Somebody,
    Watched,
    Nobody,
}

/// An error as clients see it.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) code: i64,
    pub(crate) reason: String,
    pub(crate) pointer: String,
    pub(crate) message: String,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::of(User::Somebody).await
    }

    pub(crate) async fn of(user: User) -> Self {
        let relay = Relay::start(embedded::Options::default()).await.unwrap();
        let home = tempfile::tempdir().unwrap();
        let me = Keys::generate();
        let keyring = Keyring::open(home.path(), Passphrase::none()).unwrap();
        let material = match user {
            User::Somebody => Some(Material::Secret(me.clone())),
            User::Watched => Some(Material::Watched(me.public_key())),
            User::Nobody => None,
        };
        if let Some(material) = material {
            keyring.add("me", &material, 1, Activate::Yes).unwrap();
        }
        let relays = vec![RelayUrl::parse(&relay.url()).unwrap()];
        let session = Session::open(Options { relays, ..Options::new(home.path()) }).unwrap();
        let info = r#"{"name":"test","version":"1"}"#;
        let (local, ..) = Local::open(Arc::new(Server::new(session)), info).await;
        Self { relay, me, local, _home: home }
    }

    pub(crate) fn url(&self) -> String {
        self.relay.url()
    }

    pub(crate) fn my_key(&self) -> String {
        self.me.public_key().to_hex()
    }

    /// Calls a tool; what it gives must fit what it says that it gives.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Result<Value, Refusal> {
        let params = json!({ "name": format!("nostr_{tool}"), "arguments": arguments });
        let Answer::Result(result) = self.local.request("tools/call", params.to_string().as_bytes()).await else {
            panic!("{tool} was not called");
        };
        let result: Value = serde_json::from_slice(&result).unwrap();
        let output = result["structuredContent"].clone();
        if result["isError"] == true {
            let error = &output["error"];
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            return Err(Refusal {
                code: error["code"].as_i64().unwrap(),
                reason: text(&error["data"]["reason"]),
                pointer: text(&error["data"]["pointer"]),
                message: text(&error["message"]),
            });
        }
        let name = format!("nostr_{tool}");
        let entry = rialto_nostr_tools::tools().into_iter().find(|entry| entry.about.name == name).unwrap();
        Schema::compile(entry.output.to_string().as_bytes()).unwrap().check(&output).unwrap();
        Ok(output)
    }

    /// What a relay has under this id.
    pub(crate) async fn stored(&self, id: &str) -> Option<Value> {
        let found = self.call("events_query", json!({ "filters": [{ "ids": [id] }] })).await.unwrap();
        found["items"].get(0).cloned()
    }

    /// Publishes with a tool, and gives what the relay has then.
    pub(crate) async fn publish(&self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments).await.unwrap_or_else(|error| panic!("{tool}: {error:?}"));
        assert_eq!(result["success"], json!([self.url()]), "{tool}");
        self.stored(result["id"].as_str().unwrap()).await.unwrap()
    }

    /// The event must have this kind, content and these tags.
    pub(crate) async fn check(&self, tool: &str, arguments: Value, kind: u16, content: &str, tags: Value) {
        let event = self.publish(tool, arguments).await;
        assert_eq!(event["kind"], kind, "{tool}");
        assert_eq!(event["content"], content, "{tool}");
        assert_eq!(event["tags"], tags, "{tool}");
    }

    /// It must be refused as a fault in the arguments, there.
    pub(crate) async fn refuses(&self, tool: &str, arguments: Value, pointer: &str) {
        let words = format!("{tool} {arguments}");
        let refusal = self.call(tool, arguments).await.expect_err(&words);
        assert_eq!((refusal.code, refusal.pointer.as_str()), (-32602, pointer), "{words}: {}", refusal.message);
    }

    /// An event by somebody, on the relay.
    pub(crate) async fn plant(&self, keys: &Keys, kind: u16, tags: Value, content: &str) -> Event {
        self.plant_at(0, keys, kind, tags, content).await
    }

    /// The same, so many seconds from now.
    pub(crate) async fn plant_at(&self, offset: i64, keys: &Keys, kind: u16, tags: Value, content: &str) -> Event {
        let event = event_at(offset, keys, kind, tags, content);
        let text = serde_json::to_string(&event).unwrap();
        self.call("events_publish_signed", json!({ "event_json": text })).await.unwrap();
        event
    }
}

/// An event by somebody, nowhere.
pub(crate) fn event(keys: &Keys, kind: u16, tags: Value, content: &str) -> Event {
    event_at(0, keys, kind, tags, content)
}

fn event_at(offset: i64, keys: &Keys, kind: u16, tags: Value, content: &str) -> Event {
    let tags: Vec<Vec<String>> = serde_json::from_value(tags).unwrap();
    let tags = tags.iter().map(|tag| Tag::parse(tag).unwrap());
    let time = Timestamp::from(Timestamp::now().as_secs().saturating_add_signed(offset));
    sign(keys, UnsignedEvent::new(keys.public_key(), time, Kind::from_u16(kind), tags, content))
}

/// The same object with other members.
#[expect(clippy::needless_pass_by_value, reason = "calls are easier to read")]
pub(crate) fn with(base: &Value, members: Value) -> Value {
    let mut object = base.clone();
    for (name, value) in members.as_object().unwrap() {
        object[name] = value.clone();
    }
    object
}
