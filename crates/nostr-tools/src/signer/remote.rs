//! A signer elsewhere (NIP-46): requests and answers are encrypted events on relays that both sides watch.
//!
//! A tie begins in one of two ways: the signer gives an address (`bunker://…`) that we [`join`], or we give one
//! (`nostrconnect://…`, an [`Invitation`]) that the signer joins. After that both are the same, and last over restarts.

use super::bond::Bond;
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

/// How long a signer may take. Its owner may have to look at a screen first.
const ANSWER: Duration = Duration::from_secs(60);

/// Messages about one request that wait to be read: that it must be allowed first, and the answer.
const MAX_ANSWERS: usize = 8;

/// Clocks differ.
const SPREAD: Duration = Duration::from_secs(60);

/// What we ask a signer to let us do.
const PERMISSIONS: &str = "sign_event,nip44_encrypt,nip44_decrypt";

/// A message that came for us.
struct Message {
    id: String,
    result: Option<String>,
    error: Option<String>,
    from: PublicKey,
}

type Waiting = Arc<Mutex<HashMap<String, mpsc::Sender<Message>>>>;

/// Our end of the line, before and after it is known who is at the other.
struct Line {
    client: Keys,
    relays: Vec<RelayUrl>,
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
    /// Begins to listen. What no request waits for goes to `strangers`.
    fn open(client: Keys, relays: Vec<RelayUrl>, strangers: Option<oneshot::Sender<PublicKey>>, secret: &str) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let filter = Filter::new().kind(KIND).pubkey(client.public_key());
        let options = pool::Options { keys: Some(client.clone()), give_up: ANSWER, clock, ..pool::Options::default() };
        let (pool, arrivals) = Pool::start(&relays, vec![Watch { filter, spread: SPREAD }], options);
        let waiting = Waiting::default();
        let (heard, is_heard) = watch::channel(false);
        let ear = Ear { client: client.clone(), waiting: waiting.clone(), heard, strangers, secret: secret.to_owned() };
        let reader = tokio::spawn(ear.listen(arrivals)).abort_handle();
        Self { client, relays, pool, waiting, is_heard, reader }
    }

    /// Waits until a relay listens for us: answers are not kept by relays, so that nothing may be asked before.
    async fn heard(&self) -> Result<(), Failure> {
        let mut is_heard = self.is_heard.clone();
        let listening = is_heard.wait_for(|is_heard| *is_heard);
        match tokio::time::timeout(LISTEN, listening).await {
            Ok(Ok(_)) => Ok(()),
            _ => Err(Failure::relays("none of the relays on which to meet the signer can be reached")),
        }
    }

    /// Asks the signer one thing.
    async fn ask(&self, signer: &PublicKey, method: &str, params: &[&str]) -> Result<String, Failure> {
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
        let mut address = None;
        let answered = async {
            while let Some(message) = answers.recv().await {
                if message.from != *signer {
                    continue;
                }
                match (message.result, message.error) {
                    // It has to be allowed elsewhere first; the real answer comes later.
                    (Some(result), url) if result == "auth_url" => address = url,
                    (_, Some(error)) if !error.is_empty() => return Err(refused(&error)),
                    (Some(result), _) => return Ok(result),
                    (None, _) => return Err(refused("it gave no reason")),
                }
            }
            Err(Failure::internal("the connection to the signer has ended"))
        };
        match tokio::time::timeout(ANSWER, answered).await {
            Ok(outcome) => outcome,
            Err(_) => Err(match address.filter(|url| url.starts_with("https://")) {
                Some(url) => Failure::timeout(format!("the signer wants its owner to allow this first, at {url}"))
                    .with("auth_url", url),
                None => Failure::timeout("the signer did not answer"),
            }),
        }
    }

    async fn begin(self, signer: PublicKey) -> Result<Remote, Failure> {
        let user = self.ask(&signer, "get_public_key", &[]).await?;
        let user = PublicKey::from_hex(user.trim())
            .map_err(|_| Failure::internal("the signer does not say for whom it signs"))?;
        let bond = Bond { client: self.client.clone(), signer, relays: self.relays.clone(), user };
        Ok(Remote { bond, line: self })
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
    /// Who is told when somebody unknown proves to have our invitation.
    strangers: Option<oneshot::Sender<PublicKey>>,
    secret: String,
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
        let Ok(value) = serde_json::from_str::<Value>(&text) else { return };
        let member = |name: &str| value.get(name).and_then(Value::as_str).map(ToOwned::to_owned);
        let Some(id) = member("id") else { return };
        let message = Message { id, result: member("result"), error: member("error"), from: event.pubkey };
        if let Some(asker) = lock(&self.waiting).get(&message.id) {
            // A signer that says more at once than it was asked is not listened to.
            let _ = asker.try_send(message);
        } else if message.result.as_deref() == Some(self.secret.as_str())
            && !self.secret.is_empty()
            && let Some(stranger) = self.strangers.take()
        {
            let _ = stranger.send(message.from);
        }
    }
}

/// A signer that we are tied to.
pub struct Remote {
    bond: Bond,
    line: Line,
}

impl std::fmt::Debug for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Remote").field("user", &self.bond.user).field("signer", &self.bond.signer).finish()
    }
}

impl Remote {
    /// Takes up a tie again.
    pub(crate) fn resume(bond: Bond) -> Self {
        let line = Line::open(bond.client.clone(), bond.relays.clone(), None, "");
        Self { bond, line }
    }

    /// Whom it signs for.
    pub fn user(&self) -> PublicKey {
        self.bond.user
    }

    pub(crate) fn bond(&self) -> &Bond {
        &self.bond
    }

    pub(crate) async fn ask(&self, method: &str, params: &[&str]) -> Result<String, Failure> {
        self.line.ask(&self.bond.signer, method, params).await
    }

    /// Has an event signed, and sees to it that it is this event which was signed.
    pub(crate) async fn sign(&self, mut draft: UnsignedEvent) -> Result<Event, Failure> {
        draft.pubkey = self.bond.user;
        draft.id = None;
        let id = draft.compute_id();
        let text = serde_json::to_string(&draft).map_err(|error| Failure::internal(error.to_string()))?;
        let answer = self.ask("sign_event", &[&text]).await?;
        let event: Event =
            serde_json::from_str(&answer).map_err(|_| Failure::internal("what the signer gave is no signed event"))?;
        if event.id != id || event.verify().is_err() {
            return Err(Failure::internal("the signer signed something else than it was asked to"));
        }
        Ok(event)
    }
}

/// Joins a signer by its address, `bunker://…`.
pub async fn join(address: &str) -> Result<Remote, Failure> {
    let (signer, relays, secret) = read_address(address)?;
    let line = Line::open(Keys::generate(), relays, None, "");
    let secret = secret.unwrap_or_default();
    let answer = line.ask(&signer, "connect", &[&signer.to_hex(), &secret, PERMISSIONS]).await?;
    // Signers answer with a word, or with the secret to show that they are the ones who gave it.
    if answer != "ack" && (secret.is_empty() || answer != secret) {
        return Err(Failure::no_signer("the signer does not know the secret in its address"));
    }
    line.begin(signer).await
}

fn read_address(address: &str) -> Result<(PublicKey, Vec<RelayUrl>, Option<String>), Failure> {
    let invalid = || Failure::invalid("a signer's address is bunker://PUBLIC-KEY?relay=wss://…&secret=…");
    let rest = address.trim().strip_prefix("bunker://").ok_or_else(invalid)?;
    let (key, query) = rest.split_once('?').ok_or_else(invalid)?;
    let signer = PublicKey::from_hex(key.trim_end_matches('/')).map_err(|_| invalid())?;
    let mut relays = Vec::new();
    let mut secret = None;
    for pair in query.split('&') {
        match pair.split_once('=') {
            Some(("relay", relay)) => relays.push(RelayUrl::parse(&decoded(relay)).map_err(|_| invalid())?),
            Some(("secret", given)) => secret = Some(decoded(given)),
            _ => {}
        }
    }
    if relays.is_empty() {
        return Err(invalid());
    }
    Ok((signer, relays, secret))
}

/// What stands for `%3A` and the like.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let code = (*first == b'%').then(|| tail.get(..2)).flatten();
        let code = code.and_then(|code| u8::from_str_radix(std::str::from_utf8(code).ok()?, 16).ok());
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// Our own address, which a signer can join.
pub struct Invitation {
    line: Line,
    address: String,
    joined: oneshot::Receiver<PublicKey>,
}

impl std::fmt::Debug for Invitation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Invitation")
    }
}

impl Invitation {
    /// Begins to listen for a signer.
    pub fn new(relays: &[RelayUrl]) -> Result<Self, Failure> {
        if relays.is_empty() {
            return Err(Failure::invalid("a signer needs a relay to meet us on"));
        }
        let client = Keys::generate();
        // Half a random key is as hard to guess as the whole.
        let secret = Keys::generate().public_key().to_hex().split_off(32);
        let (sender, joined) = oneshot::channel();
        let mut address = format!("nostrconnect://{}?", client.public_key().to_hex());
        for relay in relays {
            address.push_str(&format!("relay={}&", encoded(relay.as_str())));
        }
        address.push_str(&format!("secret={secret}&perms={}&name=Rialto", encoded(PERMISSIONS)));
        let line = Line::open(client, relays.to_vec(), Some(sender), &secret);
        Ok(Self { line, address, joined })
    }

    /// Waits until a signer that joins would be heard.
    pub async fn listening(&self) -> Result<(), Failure> {
        self.line.heard().await
    }

    /// What to show to the signer.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Waits for a signer to join.
    pub async fn accept(self, patience: Duration) -> Result<Remote, Failure> {
        match tokio::time::timeout(patience, self.joined).await {
            Ok(Ok(signer)) => self.line.begin(signer).await,
            Ok(Err(_)) => Err(Failure::internal("the connection to the relays has ended")),
            Err(_) => Err(Failure::timeout("no signer has joined")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{decoded, encoded, read_address};

    #[test]
    fn addresses_are_read() {
        let key = "a".repeat(64);
        let good = format!("bunker://{key}?relay=wss%3A%2F%2Frelay.example&secret=a%20b&other=1");
        let (signer, relays, secret) = read_address(&good).unwrap();
        assert_eq!((signer.to_hex(), relays.len(), secret.as_deref()), (key.clone(), 1, Some("a b")));
        for bad in
            ["bunker://x?relay=wss://a", &format!("bunker://{key}"), &format!("bunker://{key}?secret=x"), "npub1x"]
        {
            assert!(read_address(bad).is_err(), "{bad}");
        }
        assert_eq!(decoded(&encoded("wss://é?=&%")), "wss://é?=&%");
        assert_eq!(decoded("50%"), "50%");
    }
}
