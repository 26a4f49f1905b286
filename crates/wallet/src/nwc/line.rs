//! Our end of the line to a wallet: requests out, answers in.
//!
//! An answer counts only if the wallet's key has signed it, it names our request and nobody but us, it can be read with the
//! wallet's key, and it is about the method that was asked for. There are wallets that do not say whom an answer is for;
//! theirs are asked for by the request, until one is seen that does. All else is as if it had not come: whoever can write to
//! the relay could make us believe something otherwise. Relays do not keep answers, so nothing is asked before one listens
//! for us; an answer that is lost nevertheless has to be looked up.

use super::address::Address;
use super::protocol::{self, Encryption};
use crate::answer::one_line;
use nostr::prelude::{Event, EventId, Filter, Keys, PublicKey, Timestamp};
use rialto_payment::secret::PaymentHash;
use rialto_payment::wallet::Error;
use rialto_relay::pool::{self, Arrival, Pool, Watch};
use rialto_relay::publication::{Publication, Report};
use rialto_relay::status::State;
use rialto_relay::verdict::Verdict;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{OnceCell, broadcast, mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// How long relays may take to listen for us, and to tell what the wallet says of itself.
const LISTEN: Duration = Duration::from_secs(10);

/// How long a relay may take to take a request. Shorter than any answer is waited for, so that a request that was not sent
/// until then never is.
const GIVE_UP: Duration = Duration::from_secs(10);

/// When a request is sent once more that is not answered: relays do not keep requests either, and a wallet that was away for
/// a moment has not seen it. It is the same event, which a wallet that has seen it knows again.
const ONCE_MORE: Duration = Duration::from_secs(5);

/// How long a wallet may take up a request: no wallet whose clock is a little off should have to refuse it.
pub(super) const REQUEST_LIFE: Duration = Duration::from_secs(60);

/// Clocks differ.
const SPREAD: Duration = Duration::from_secs(60);

/// Requests that may wait for their answers at once.
const MAX_OPEN: usize = 1000;

/// Hints that wait for somebody who is slow to take them; the oldest go first.
const HINTS: usize = 256;

/// What a wallet says instead of a result.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Complaint {
    #[serde(default)]
    pub(super) code: String,
    #[serde(default, rename = "message")]
    pub(super) words: String,
}

pub(super) type Answer = Result<Value, Complaint>;

/// What a wallet says of itself.
#[derive(Debug, Clone)]
pub(super) struct Info {
    pub(super) methods: Vec<String>,
    encryption: Encryption,
}

/// How often a request is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Insistence {
    /// For what must not be done twice, whatever the wallet remembers.
    Once,
    /// Until it is answered.
    Again,
}

/// A request that waits for its answer.
struct Open {
    method: &'static str,
    encryption: Encryption,
    answer: oneshot::Sender<Answer>,
}

type Waiting = Arc<Mutex<HashMap<EventId, Open>>>;

fn watch(filter: Filter) -> Watch {
    Watch { filter, spread: SPREAD }
}

pub(super) struct Line {
    keys: Keys,
    wallet: PublicKey,
    pool: Pool,
    waiting: Waiting,
    info: OnceCell<Info>,
    hints: broadcast::Sender<PaymentHash>,
    /// The wallet says whom its answers are for.
    addresses: Arc<AtomicBool>,
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
    pub(super) fn open(address: Address) -> Self {
        let Address { wallet, relays, keys } = address;
        let watches = vec![watch(protocol::answers_filter(wallet, keys.public_key()))];
        let options =
            pool::Options { keys: Some(keys.clone()), give_up: GIVE_UP, quorum: 1, ..pool::Options::default() };
        let (pool, arrivals) = Pool::start(&relays, watches, options);
        let waiting = Waiting::default();
        let hints = broadcast::Sender::new(HINTS);
        let addresses = Arc::<AtomicBool>::default();
        let ear = Ear {
            keys: keys.clone(),
            wallet,
            waiting: waiting.clone(),
            hints: hints.clone(),
            addresses: addresses.clone(),
        };
        let reader = tokio::spawn(ear.listen(arrivals)).abort_handle();
        Self { keys, wallet, pool, waiting, info: OnceCell::new(), hints, addresses, reader }
    }

    pub(super) fn hints(&self) -> broadcast::Receiver<PaymentHash> {
        self.hints.subscribe()
    }

    /// What the wallet says of itself, read once.
    pub(super) async fn info(&self) -> Result<&Info, Error> {
        self.info.get_or_try_init(|| self.read_info()).await
    }

    async fn read_info(&self) -> Result<Info, Error> {
        self.listening().await?;
        let found = self.pool.query(&[protocol::info_filter(self.wallet)], LISTEN).all().await;
        let of_wallet = |event: &&Event| event.pubkey == self.wallet && event.kind == protocol::INFO;
        let newest = found.iter().filter(of_wallet).max_by_key(|event| event.created_at);
        let event = newest.ok_or_else(|| Error::Unreachable("its relays do not know it".to_owned()))?;
        let encryption = Encryption::choose(protocol::encryption(event))
            .ok_or(Error::Unsupported("it offers no encryption that is known here"))?;
        Ok(Info { methods: event.content.split_ascii_whitespace().map(ToOwned::to_owned).collect(), encryption })
    }

    /// The relays that listen for us; waits for the first.
    async fn listening(&self) -> Result<Vec<Arc<str>>, Error> {
        self.pool
            .wait(LISTEN, |relays| relays.iter().any(|relay| relay.state == State::Subscribed))
            .await
            .then(|| {
                let relays = self.pool.status().into_iter();
                relays.filter(|relay| relay.state == State::Subscribed).map(|relay| relay.url).collect()
            })
            .ok_or_else(|| Error::Unreachable("none of its relays answers".to_owned()))
    }

    /// Asks the wallet for one thing.
    pub(super) async fn ask(
        &self,
        method: &'static str,
        params: &Value,
        patience: Duration,
        insistence: Insistence,
    ) -> Result<Answer, Error> {
        let encryption = self.info().await?.encryption;
        let relays = self.listening().await?;
        let text = json!({ "method": method, "params": params }).to_string();
        let hidden = encryption.hide(&self.keys, &self.wallet, &text);
        let hidden = hidden.ok_or_else(|| Error::Refused("the request is too long".to_owned()))?;
        let now = Timestamp::now();
        let end = Timestamp::from(now.as_secs().saturating_add(patience.max(REQUEST_LIFE).as_secs()));
        let event = protocol::request(&self.keys, self.wallet, encryption, hidden, (now, end));
        let (answer, answered) = oneshot::channel();
        let _forget = self.expect(event.id, Open { method, encryption, answer })?;
        let publish = || self.pool.publish_to(&event, |relay| relays.iter().any(|listening| **listening == *relay));
        let publication = publish();
        let mut again = tokio::time::interval_at(Instant::now() + ONCE_MORE, ONCE_MORE);
        let insisting = async {
            loop {
                again.tick().await;
                if insistence == Insistence::Again {
                    publish();
                }
            }
        };
        tokio::select! {
            biased;
            answered = answered => {
                answered.map_err(|_| Error::Unknown("nobody listens to it any more".to_owned()))
            }
            never = insisting => never,
            words = undeliverable(&publication) => Err(Error::Unreachable(words)),
            () = tokio::time::sleep(patience) => Err(if publication.was_sent() {
                Error::Unknown(format!("nothing was heard within {} s", patience.as_secs()))
            } else {
                Error::Unreachable("none of its relays took the request in time".to_owned())
            }),
        }
    }

    /// Waits for the answer to a request, until what is returned is dropped.
    fn expect(&self, id: EventId, open: Open) -> Result<Forget<'_>, Error> {
        let mut waiting = lock(&self.waiting);
        if waiting.len() >= MAX_OPEN {
            return Err(Error::Unreachable("too many requests wait for it".to_owned()));
        }
        waiting.insert(id, open);
        if !self.addresses.load(Ordering::Relaxed) {
            // Sent before what is published from now on.
            let named = protocol::named_filter(self.wallet, waiting.keys().copied());
            let ours = protocol::answers_filter(self.wallet, self.keys.public_key());
            self.pool.watch(vec![watch(ours), watch(named)]);
        }
        Ok(Forget { waiting: &self.waiting, id })
    }
}

/// Resolves when it is certain that no relay has a request and none will have it, and only then.
async fn undeliverable(publication: &Publication) -> String {
    let Report { accepted, verdicts, .. } = publication.settled().await;
    // What was sent and not acknowledged may have arrived.
    let is_lost = |verdict: &Verdict| !matches!(verdict, Verdict::Accepted | Verdict::GaveUp(_) | Verdict::Stopped);
    if accepted > 0 || (publication.was_sent() && !verdicts.iter().all(|(_, verdict)| is_lost(verdict))) {
        return std::future::pending().await;
    }
    let words = verdicts.iter().find_map(|(_, verdict)| match verdict {
        Verdict::Refused(words) | Verdict::GaveUp(words) => Some(one_line(words)),
        Verdict::Work { message, .. } => Some(one_line(message)),
        Verdict::Accepted | Verdict::TooLarge { .. } | Verdict::Stopped => None,
    });
    format!("none of its relays took the request: {}", words.unwrap_or_default())
}

/// Whoever does not wait any more is not answered.
struct Forget<'a> {
    waiting: &'a Waiting,
    id: EventId,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        lock(self.waiting).remove(&self.id);
    }
}

/// What listens to the wallet.
struct Ear {
    keys: Keys,
    wallet: PublicKey,
    waiting: Waiting,
    hints: broadcast::Sender<PaymentHash>,
    addresses: Arc<AtomicBool>,
}

impl Ear {
    async fn listen(self, mut arrivals: mpsc::Receiver<Arrival>) {
        while let Some(arrival) = arrivals.recv().await {
            let Arrival::Event { event, .. } = arrival else { continue };
            if event.pubkey != self.wallet {
                continue;
            }
            if event.kind == protocol::RESPONSE {
                self.take(&event);
            } else if let Some(hash) = self.hint(&event) {
                // Nobody may be listening.
                let _ = self.hints.send(hash);
            }
        }
    }

    fn take(&self, event: &Event) {
        #[derive(Deserialize)]
        struct Response {
            result_type: String,
            #[serde(default)]
            error: Option<Complaint>,
            #[serde(default)]
            result: Option<Value>,
        }
        let Some(id) = protocol::answered(event) else { return };
        let is_addressed = protocol::is_addressed(event);
        let mut waiting = lock(&self.waiting);
        let Some(Open { method, encryption, .. }) = waiting.get(&id) else { return };
        if is_addressed && protocol::addressee(event) != Some(self.keys.public_key()) {
            return;
        }
        let Some(text) = encryption.reveal(&self.keys, &self.wallet, &event.content) else { return };
        let Ok(response) = serde_json::from_str::<Response>(&text) else { return };
        if response.result_type != *method {
            return;
        }
        let answer = match (response.error, response.result) {
            (Some(complaint), _) => Err(complaint),
            (None, Some(result)) => Ok(result),
            (None, None) => return,
        };
        if let Some(open) = waiting.remove(&id) {
            self.addresses.store(is_addressed, Ordering::Relaxed);
            // Whoever asked may have gone meanwhile.
            let _ = open.answer.send(answer);
        }
    }

    /// The payment that a wallet speaks of by itself.
    fn hint(&self, event: &Event) -> Option<PaymentHash> {
        #[derive(Deserialize)]
        struct Notice {
            notification: About,
        }
        #[derive(Deserialize)]
        struct About {
            payment_hash: String,
        }
        let mut both = [Encryption::Nip44, Encryption::Nip04].into_iter();
        let encryption = both.find(|encryption| encryption.notice() == event.kind)?;
        if protocol::addressee(event)? != self.keys.public_key() {
            return None;
        }
        let text = encryption.reveal(&self.keys, &self.wallet, &event.content)?;
        let notice: Notice = serde_json::from_str(&text).ok()?;
        notice.notification.payment_hash.parse().ok()
    }
}
