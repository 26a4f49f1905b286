//! A client of Nostr Wallet Connect that shares no code with the wallets: the relay's pool carries its events, the `nostr`
//! crate reads what comes.

use super::PATIENCE;
use nostr::nips::nip47::{NostrWalletConnectUri, Notification, Response};
use nostr::nips::{nip04, nip44};
use nostr::prelude::{Event, EventBuilder, EventId, Filter, FinalizeEvent, Keys, Kind, Tag, Timestamp};
use rialto_relay::pool::{Arrival, Options, Pool, Watch};
use rialto_relay::status::State;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cipher {
    Nip44,
    Nip04,
}

/// What has come from the wallet.
#[derive(Debug, Default)]
struct Heard {
    /// All responses to each request.
    responses: HashMap<EventId, Vec<Event>>,
    notifications: Vec<Event>,
    /// What has come again.
    repeated: Vec<EventId>,
}

#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) uri: NostrWalletConnectUri,
    pub(crate) keys: Keys,
    pub(crate) pool: Pool,
    heard: Arc<Mutex<Heard>>,
    changes: watch::Receiver<u64>,
}

/// An answer: the result, or the error's code.
pub(crate) type Answer = Result<Value, String>;

impl Client {
    pub(crate) async fn connect(address: &str) -> Self {
        let uri = NostrWalletConnectUri::parse(address).unwrap();
        let keys = Keys::new(uri.secret.clone());
        let kinds = [23195, 23196, 23197].map(Kind::from);
        let filter = Filter::new().kinds(kinds).author(uri.public_key).pubkey(keys.public_key());
        let watch = Watch { filter, spread: Duration::from_secs(60) };
        let (pool, mut arrivals) = Pool::start(&uri.relays, vec![watch], Options { quorum: 1, ..Options::default() });
        assert!(pool.wait(PATIENCE, |relays| relays.iter().all(|relay| relay.state == State::Subscribed)).await);
        let heard: Arc<Mutex<Heard>> = Arc::default();
        let (changed, changes) = watch::channel(0);
        let listening = heard.clone();
        tokio::spawn(async move {
            while let Some(arrival) = arrivals.recv().await {
                match arrival {
                    Arrival::Event { event, .. } => listening.lock().unwrap().take(*event),
                    Arrival::Repeat { id, .. } => listening.lock().unwrap().repeated.push(id),
                    Arrival::Subscribed { .. } => {}
                }
                changed.send_modify(|count| *count += 1);
            }
        });
        Self { uri, keys, pool, heard, changes }
    }

    /// A signed request, which nobody has yet.
    pub(crate) fn request(&self, method: &str, params: &Value, cipher: Cipher, tags: Vec<Tag>) -> Event {
        self.request_by(&self.keys, &json!({"method": method, "params": params}).to_string(), cipher, tags)
    }

    pub(crate) fn request_by(&self, keys: &Keys, text: &str, cipher: Cipher, tags: Vec<Tag>) -> Event {
        let (secret, wallet) = (keys.secret_key(), &self.uri.public_key);
        let (content, encryption) = match cipher {
            Cipher::Nip44 => {
                let content = nip44::encrypt(secret, wallet, text, nip44::Version::V2).unwrap();
                (content, Some(Tag::custom("encryption", ["nip44_v2"])))
            }
            Cipher::Nip04 => (nip04::encrypt(secret, wallet, text).unwrap(), None),
        };
        let builder = EventBuilder::new(Kind::from(23194), content).tag(Tag::public_key(*wallet));
        builder.tags(encryption).tags(tags).finalize(keys).unwrap()
    }

    /// Sends a request and waits until the relay has it.
    pub(crate) async fn send(&self, event: &Event) {
        let report = tokio::time::timeout(PATIENCE, self.pool.publish(event).finished()).await.unwrap();
        assert_eq!(report.accepted, 1, "{report:?}");
    }

    /// Waits for the answer to a request that was sent.
    pub(crate) async fn answer(&self, request: &Event, cipher: Cipher) -> Answer {
        let response = self.until(|heard| heard.responses.get(&request.id)?.first().cloned()).await;
        let text = match cipher {
            Cipher::Nip44 => nip44::decrypt(&self.uri.secret, &self.uri.public_key, &response.content),
            Cipher::Nip04 => nip04::decrypt(&self.uri.secret, &self.uri.public_key, &response.content),
        };
        let answer: Value = serde_json::from_str(&text.unwrap()).unwrap();
        if answer["error"].is_null() {
            // What we made of the specification is what somebody else made of it.
            Response::from_value(answer.clone()).unwrap();
            return Ok(answer["result"].clone());
        }
        assert!(answer["result"].is_null() && answer["error"]["message"].is_string(), "{answer}");
        Err(answer["error"]["code"].as_str().unwrap().to_owned())
    }

    pub(crate) async fn call(&self, method: &str, params: Value) -> Answer {
        let request = self.request(method, &params, Cipher::Nip44, vec![]);
        self.send(&request).await;
        self.answer(&request, Cipher::Nip44).await
    }

    pub(crate) async fn balance(&self) -> u64 {
        self.call("get_balance", json!({})).await.unwrap()["balance"].as_u64().unwrap()
    }

    /// Asks for money; returns the invoice.
    pub(crate) async fn invoice(&self, amount: u64) -> Value {
        self.call("make_invoice", json!({"amount": amount, "description": "a test"})).await.unwrap()
    }

    pub(crate) async fn lookup(&self, hash: &Value) -> Value {
        self.call("lookup_invoice", json!({"payment_hash": hash})).await.unwrap()
    }

    /// How many answers a request has had so far.
    pub(crate) fn answers(&self, request: &Event) -> usize {
        self.heard.lock().unwrap().responses.get(&request.id).map_or(0, Vec::len)
    }

    /// Waits until the answer to a request has come once more.
    pub(crate) async fn answer_again(&self, request: &Event) {
        let is_repeated = |heard: &Heard| {
            let response = heard.responses.get(&request.id)?.first()?;
            heard.repeated.contains(&response.id).then_some(())
        };
        self.until(is_repeated).await;
    }

    /// Waits for the news of a payment, once in each kind of encryption.
    pub(crate) async fn news(&self, name: &str, hash: &Value) -> Value {
        let mut found = Vec::new();
        for kind in [23196, 23197] {
            let event = self.until(|heard| {
                let mut of_kind = heard.notifications.iter().filter(|event| event.kind == Kind::from(kind));
                of_kind.find(|event| self.reads(event, name, hash)).cloned()
            });
            found.push(Notification::from_event(&self.uri, &event.await).unwrap());
        }
        assert_eq!(found[0], found[1]);
        serde_json::to_value(&found[0]).unwrap()["notification"].clone()
    }

    fn reads(&self, event: &Event, name: &str, hash: &Value) -> bool {
        let news = Notification::from_event(&self.uri, event).unwrap();
        let news = serde_json::to_value(&news).unwrap();
        news["notification_type"] == name && news["notification"]["payment_hash"] == *hash
    }

    async fn until<T>(&self, look: impl Fn(&Heard) -> Option<T>) -> T {
        let mut changes = self.changes.clone();
        let looking = async {
            loop {
                changes.mark_unchanged();
                if let Some(found) = look(&self.heard.lock().unwrap()) {
                    return found;
                }
                changes.changed().await.unwrap();
            }
        };
        tokio::time::timeout(PATIENCE, looking).await.expect("the wallet said nothing")
    }
}

impl Heard {
    fn take(&mut self, event: Event) {
        let request = event.tags.event_ids().next();
        match request {
            Some(request) => self.responses.entry(request).or_default().push(event),
            None => self.notifications.push(event),
        }
    }
}

/// A tag that says until when a request counts.
pub(crate) fn expiration(at: Timestamp) -> Tag {
    Tag::expiration(at)
}
