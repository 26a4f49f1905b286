//! A small remote signer (NIP-46), written from the NIP and not from our client.

#![allow(dead_code, reason = "not every test file uses all of it")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should panic")]

use nostr::nips::nip44;
use nostr::prelude::{Event, Filter, Keys, Kind, PublicKey, RelayUrl, Tag, Timestamp, UnsignedEvent};
use rialto_relay::pool::{self, Arrival, Pool, Watch};
use rialto_relay::sign::sign;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc::Receiver;
use tokio::task::JoinHandle;

/// How the signer behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    Honest,
    /// Refuses to sign.
    Refuses,
    /// Refuses to sign events of one kind.
    RefusesKind(Kind),
    /// Signs something else.
    Lies,
    /// Wants its owner to look at a page first, then answers.
    AsksElsewhere,
    /// Wants its owner to look at a page, and nobody does.
    AsksInVain,
    /// Does not answer when it is to sign.
    Silent,
}

/// A signer with a key of its own beside that of the user.
pub(crate) struct Bunker {
    pub(crate) user: Keys,
    pub(crate) signer: Keys,
    pub(crate) secret: String,
    /// The methods that were asked for.
    pub(crate) asked: Arc<Mutex<Vec<String>>>,
    /// The kinds of events that were signed.
    pub(crate) signed: Arc<Mutex<Vec<Kind>>>,
    /// Where it says that it wants to be met from now on.
    pub(crate) wanted: Arc<Mutex<Option<Value>>>,
    relay: RelayUrl,
    pool: Pool,
    task: JoinHandle<()>,
}

impl Drop for Bunker {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Work {
    user: Keys,
    signer: Keys,
    secret: String,
    manner: Manner,
    asked: Arc<Mutex<Vec<String>>>,
    signed: Arc<Mutex<Vec<Kind>>>,
    wanted: Arc<Mutex<Option<Value>>>,
    known: HashSet<PublicKey>,
    pool: Pool,
}

impl Bunker {
    pub(crate) async fn start(relay: &RelayUrl, manner: Manner) -> Self {
        Self::start_on(std::slice::from_ref(relay), manner).await
    }

    /// Listens on all of these, and names the first one in its address.
    pub(crate) async fn start_on(relays: &[RelayUrl], manner: Manner) -> Self {
        let (user, signer) = (Keys::generate(), Keys::generate());
        let filter = Filter::new().kind(Kind::from(24133)).pubkey(signer.public_key());
        let watch = Watch { filter, spread: Duration::from_secs(60) };
        let (pool, mut arrivals) = Pool::start(relays, vec![watch], pool::Options::default());
        for _ in relays {
            while !matches!(arrivals.recv().await.unwrap(), Arrival::Subscribed { .. }) {}
        }
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (signed, wanted) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(None)));
        let secret = "only once & never again".to_owned();
        let work = Work {
            user: user.clone(),
            signer: signer.clone(),
            secret: secret.clone(),
            manner,
            asked: asked.clone(),
            signed: signed.clone(),
            wanted: wanted.clone(),
            known: HashSet::new(),
            pool: pool.clone(),
        };
        let task = tokio::spawn(work.run(arrivals));
        Self { user, signer, secret, asked, signed, wanted, relay: relays[0].clone(), pool, task }
    }

    /// The address that the owner copies into a client.
    pub(crate) fn address(&self) -> String {
        let relay = self.relay.as_str().replace(':', "%3A").replace('/', "%2F");
        let secret = self.secret.replace(' ', "%20").replace('&', "%26");
        format!("bunker://{}?relay={relay}&secret={secret}", self.signer.public_key().to_hex())
    }

    /// The owner scans the address of a client.
    pub(crate) fn join(&self, address: &str) {
        let rest = address.strip_prefix("nostrconnect://").unwrap();
        let (client, query) = rest.split_once('?').unwrap();
        let client = PublicKey::from_hex(client).unwrap();
        let secret = query.split('&').find_map(|pair| pair.strip_prefix("secret=")).unwrap();
        answer(&self.pool, &self.signer, &client, &json!({ "id": "1", "result": secret }));
    }
}

fn answer(pool: &Pool, signer: &Keys, client: &PublicKey, message: &Value) {
    let sealed = nip44::encrypt(signer.secret_key(), client, message.to_string(), nip44::Version::V2).unwrap();
    let tags = [Tag::public_key(*client)];
    let draft = UnsignedEvent::new(signer.public_key(), Timestamp::now(), Kind::from(24133), tags, sealed);
    pool.publish(&sign(signer, draft));
}

impl Work {
    async fn run(mut self, mut arrivals: Receiver<Arrival>) {
        while let Some(arrival) = arrivals.recv().await {
            if let Arrival::Event { event, .. } = arrival {
                self.handle(&event);
            }
        }
    }

    fn handle(&mut self, event: &Event) {
        let Ok(text) = nip44::decrypt(self.signer.secret_key(), &event.pubkey, &event.content) else { return };
        let request: Value = serde_json::from_str(&text).unwrap();
        let method = request["method"].as_str().unwrap();
        let params: Vec<&str> = request["params"].as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect();
        self.asked.lock().unwrap().push(method.to_owned());
        let is_signing = method == "sign_event";
        if method == "switch_relays" {
            let wanted = self.wanted.lock().unwrap().clone();
            let message = match wanted {
                Some(result) => json!({ "id": request["id"], "result": result }),
                None => json!({ "id": request["id"], "result": "", "error": "unknown method" }),
            };
            return answer(&self.pool, &self.signer, &event.pubkey, &message);
        }
        let kind = || serde_json::from_str::<Value>(params[0]).unwrap()["kind"].as_u64().unwrap();
        let outcome = match method {
            "connect" if params.get(1) == Some(&self.secret.as_str()) => {
                self.known.insert(event.pubkey);
                Ok("ack".to_owned())
            }
            "connect" => Err("wrong secret"),
            "get_public_key" => Ok(self.user.public_key().to_hex()),
            "ping" => Ok("pong".to_owned()),
            "sign_event" if self.manner == Manner::Refuses => Err("the owner said no"),
            "sign_event" if matches!(self.manner, Manner::RefusesKind(bad) if u64::from(bad.as_u16()) == kind()) => {
                Err("not this kind")
            }
            "sign_event" => Ok(self.sign(params[0])),
            "nip44_encrypt" => {
                let peer = PublicKey::from_hex(params[0]).unwrap();
                Ok(nip44::encrypt(self.user.secret_key(), &peer, params[1], nip44::Version::V2).unwrap())
            }
            "nip44_decrypt" => {
                let peer = PublicKey::from_hex(params[0]).unwrap();
                nip44::decrypt(self.user.secret_key(), &peer, params[1]).map_err(|_| "damaged")
            }
            _ => Err("unknown method"),
        };
        if is_signing && matches!(self.manner, Manner::AsksElsewhere | Manner::AsksInVain) {
            let first = json!({ "id": request["id"], "result": "auth_url", "error": "https://signer.example/ok" });
            answer(&self.pool, &self.signer, &event.pubkey, &first);
        }
        if is_signing && matches!(self.manner, Manner::Silent | Manner::AsksInVain) {
            return;
        }
        // Somebody else answers as well, and does not count.
        let forged = json!({ "id": request["id"], "result": "forged" });
        answer(&self.pool, &Keys::generate(), &event.pubkey, &forged);
        let message = match outcome {
            Ok(result) => json!({ "id": request["id"], "result": result }),
            Err(error) => json!({ "id": request["id"], "result": "", "error": error }),
        };
        answer(&self.pool, &self.signer, &event.pubkey, &message);
    }

    fn sign(&self, draft: &str) -> String {
        let mut draft: Value = serde_json::from_str(draft).unwrap();
        draft["pubkey"] = self.user.public_key().to_hex().into();
        if self.manner == Manner::Lies {
            draft["content"] = "buy my coins".into();
        }
        let draft: UnsignedEvent = serde_json::from_value(draft).unwrap();
        self.signed.lock().unwrap().push(draft.kind);
        serde_json::to_string(&sign(&self.user, draft)).unwrap()
    }
}
