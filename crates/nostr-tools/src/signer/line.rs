//! Our end of the line to a signer: requests out, answers in, both encrypted events on relays that both sides watch.

use super::meeting::Meeting;
use super::page;
use crate::failure::Failure;
use nostr::nips::nip44;
use nostr::prelude::{Event, Filter, Keys, Kind, PublicKey, RelayUrl, Tag, Timestamp, UnsignedEvent};
use rialto_relay::clock::{Clock, SystemClock};
use rialto_relay::pool::{self, Arrival, Pool, Watch};
use rialto_relay::sign::sign;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::AbortHandle;

const KIND: Kind = Kind::NostrConnect;

/// How long relays may take to listen for us.
const LISTEN: Duration = Duration::from_secs(15);

/// Messages about one request that wait to be read: that it must be allowed first, and the answer.
const MAX_ANSWERS: usize = 8;

/// Clocks differ.
const SPREAD: Duration = Duration::from_secs(60);

/// A message that came for us.
struct Message {
    id: String,
    result: Option<String>,
    error: Option<String>,
    from: PublicKey,
}

type Waiting = Arc<Mutex<HashMap<String, mpsc::Sender<Message>>>>;

/// Who is told when somebody unknown proves to have our invitation, by the secret in it.
pub(super) struct Stranger {
    pub(super) joined: oneshot::Sender<PublicKey>,
    pub(super) secret: String,
}

/// Our end of the line, before and after it is known who is at the other.
pub(super) struct Line {
    pub(super) client: Keys,
    pub(super) relays: Vec<RelayUrl>,
    patience: Duration,
    pool: Pool,
    waiting: Waiting,
    /// Whether a relay listens for us.
    is_heard: watch::Receiver<bool>,
    reader: AbortHandle,
}

impl Drop for Line {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Line {
    /// Begins to listen on these relays, as far as the hosts that are trusted and the meeting allow it.
    pub(super) fn open(
        client: Keys,
        relays: Vec<RelayUrl>,
        trusted: &[String],
        meeting: &Meeting,
        stranger: Option<Stranger>,
    ) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let filter = Filter::new().kind(KIND).pubkey(client.public_key());
        let options = pool::Options {
            keys: Some(client.clone()),
            give_up: meeting.patience,
            dial: meeting.dial(trusted),
            clock,
            ..pool::Options::default()
        };
        let (pool, arrivals) = Pool::start(&relays, vec![Watch { filter, spread: SPREAD }], options);
        let waiting = Waiting::default();
        let (heard, is_heard) = watch::channel(false);
        let ear = Ear { client: client.clone(), waiting: waiting.clone(), heard, stranger };
        let reader = tokio::spawn(ear.listen(arrivals)).abort_handle();
        Self { client, relays, patience: meeting.patience, pool, waiting, is_heard, reader }
    }

    /// Waits until a relay listens for us: answers are not kept by relays, so that nothing may be asked before.
    pub(super) async fn heard(&self) -> Result<(), Failure> {
        let mut is_heard = self.is_heard.clone();
        let listening = is_heard.wait_for(|is_heard| *is_heard);
        match tokio::time::timeout(LISTEN, listening).await {
            Ok(Ok(_)) => Ok(()),
            _ => Err(Failure::relays("none of the relays on which to meet the signer can be reached")),
        }
    }

    /// Asks the signer one thing.
    pub(super) async fn ask(&self, signer: &PublicKey, method: &str, params: &[&str]) -> Result<String, Failure> {
        self.ask_within(self.patience, signer, method, params).await
    }

    /// The same, with another patience.
    pub(super) async fn ask_within(
        &self,
        patience: Duration,
        signer: &PublicKey,
        method: &str,
        params: &[&str],
    ) -> Result<String, Failure> {
        self.heard().await?;
        let id = Keys::generate().public_key().to_hex();
        let text = json!({ "id": id, "method": method, "params": params }).to_string();
        let sealed = nip44::encrypt(self.client.secret_key(), signer, text, nip44::Version::V2);
        let sealed = sealed.map_err(|_| Failure::invalid("this is too long for a remote signer"))?;
        let draft =
            UnsignedEvent::new(self.client.public_key(), Timestamp::now(), KIND, [Tag::public_key(*signer)], sealed);
        let event = sign(&self.client, draft);
        let (sender, mut answers) = mpsc::channel(MAX_ANSWERS);
        lock(&self.waiting).insert(id.clone(), sender);
        let _forget = Forget { waiting: &self.waiting, id: &id };
        self.pool.publish(&event);
        let mut page = None;
        let answered = async {
            while let Some(message) = answers.recv().await {
                if message.from != *signer {
                    continue;
                }
                match (message.result, message.error) {
                    // It has to be allowed elsewhere first; the real answer comes later.
                    (Some(result), url) if result == "auth_url" => {
                        page = page::checked(url);
                        page.iter().for_each(|page| page::show(page));
                    }
                    (_, Some(error)) if !error.is_empty() => return Err(refused(&error)),
                    (Some(result), _) => return Ok(result),
                    (None, _) => return Err(refused("it gave no reason")),
                }
            }
            Err(Failure::internal("the connection to the signer has ended"))
        };
        match tokio::time::timeout(patience, answered).await {
            Ok(outcome) => outcome,
            Err(_) => Err(match page {
                Some(page) => Failure::timeout(page::words(&page)).with("auth_url", page),
                None => Failure::timeout(format!("the signer did not answer within {} seconds", patience.as_secs())),
            }),
        }
    }
}

/// A request that nobody waits for any more.
struct Forget<'a> {
    waiting: &'a Waiting,
    id: &'a str,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        lock(self.waiting).remove(self.id);
    }
}

fn refused(words: &str) -> Failure {
    // What a signer says is told to a model: a line of it, no more.
    let words: String = words.chars().filter(|letter| !letter.is_control()).take(200).collect();
    Failure::no_signer(format!("the signer refused: {words}"))
}

/// Reads what comes.
struct Ear {
    client: Keys,
    waiting: Waiting,
    heard: watch::Sender<bool>,
    stranger: Option<Stranger>,
}

impl Ear {
    async fn listen(mut self, mut arrivals: mpsc::Receiver<Arrival>) {
        while let Some(arrival) = arrivals.recv().await {
            match arrival {
                Arrival::Subscribed { .. } => {
                    self.heard.send_replace(true);
                }
                Arrival::Event { event, .. } => self.hear(&event),
                Arrival::Repeat { .. } => {}
            }
        }
    }

    fn hear(&mut self, event: &Event) {
        if event.kind != KIND {
            return;
        }
        let Ok(text) = nip44::decrypt(self.client.secret_key(), &event.pubkey, &event.content) else { return };
        let Some(message) = Message::read(&text, event.pubkey) else { return };
        if let Some(asker) = lock(&self.waiting).get(&message.id) {
            // A signer that says more at once than it was asked is not listened to.
            let _ = asker.try_send(message);
        } else if let Some(stranger) = self.stranger.take_if(|one| message.result.as_ref() == Some(&one.secret)) {
            let _ = stranger.joined.send(message.from);
        }
    }
}

impl Message {
    fn read(text: &str, from: PublicKey) -> Option<Self> {
        let value: Value = serde_json::from_str(text).ok()?;
        let id = value.get("id")?.as_str()?.to_owned();
        // Results are texts; some signers give a list as it is.
        let result = value.get("result").map(|result| match result {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        });
        let error = value.get("error").and_then(Value::as_str).map(ToOwned::to_owned);
        Some(Self { id, result, error, from })
    }
}
