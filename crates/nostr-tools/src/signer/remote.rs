//! A signer elsewhere (NIP-46).
//!
//! A tie begins in one of two ways: the signer gives an address (`bunker://…`) that we [`join`], or we give one
//! (`nostrconnect://…`, an [`Invitation`]) that the signer joins. After that both are the same, and last over restarts. A
//! signer may move to other relays; it is asked about that at the beginning and now and then, and followed.

use super::address::{self, Bunker};
use super::bond::Bond;
use super::line::{Line, Stranger};
use super::meeting::Meeting;
use crate::failure::Failure;
use nostr::prelude::{Event, Keys, PublicKey, RelayUrl, UnsignedEvent};
use std::collections::HashSet;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

/// What we ask a signer to let us do.
const PERMISSIONS: &str = "sign_event,nip44_encrypt,nip44_decrypt";

/// How long a signer may take to say where it wants to be met. Nobody is asked about that, and many signers do not know the
/// question.
const MOVE: Duration = Duration::from_secs(5);

/// How long it may take until it has answered where it said that it is.
const ARRIVE: Duration = Duration::from_secs(10);

/// How often it is asked.
const AGAIN: Duration = Duration::from_secs(60 * 60);

/// A signer that we are tied to.
pub struct Remote {
    signer: PublicKey,
    user: PublicKey,
    trusted: Vec<String>,
    meeting: Meeting,
    line: RwLock<Arc<Line>>,
    follower: OnceLock<AbortHandle>,
}

impl Drop for Remote {
    fn drop(&mut self) {
        if let Some(follower) = self.follower.get() {
            follower.abort();
        }
    }
}

impl std::fmt::Debug for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Remote").field("user", &self.user).field("signer", &self.signer).finish_non_exhaustive()
    }
}

impl Remote {
    /// Takes up a tie again.
    pub(crate) fn resume(bond: Bond, meeting: Meeting) -> Result<Self, Failure> {
        let Bond { client, signer, relays, user, trusted } = bond;
        let line = Line::open(client, meeting.admit(&relays)?, &trusted, &meeting, None);
        Ok(Self { signer, user, trusted, meeting, line: RwLock::new(Arc::new(line)), follower: OnceLock::new() })
    }

    /// A tie that begins: the signer says where it wants to be met, and whom it signs for.
    async fn begin(line: Line, signer: PublicKey, trusted: Vec<String>, meeting: Meeting) -> Result<Self, Failure> {
        let (line, user) = match moved(&line, &signer, &trusted, &meeting).await {
            Some(found) => found,
            None => {
                let answer = line.ask(&signer, "get_public_key", &[]).await?;
                let user = PublicKey::from_hex(answer.trim())
                    .map_err(|_| Failure::internal("the signer does not say for whom it signs"))?;
                (line, user)
            }
        };
        Ok(Self { signer, user, trusted, meeting, line: RwLock::new(Arc::new(line)), follower: OnceLock::new() })
    }

    /// Whom it signs for.
    pub fn user(&self) -> PublicKey {
        self.user
    }

    fn line(&self) -> Arc<Line> {
        self.line.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn bond(&self) -> Bond {
        let line = self.line();
        let (signer, user, trusted) = (self.signer, self.user, self.trusted.clone());
        Bond { client: line.client.clone(), signer, relays: line.relays.clone(), user, trusted }
    }

    /// Follows the signer wherever it moves, as long as it is used. What is to be remembered of it is given to `keep`.
    pub(crate) fn follow(self: &Arc<Self>, keep: impl Fn(&Bond) + Send + Sync + 'static) {
        let weak = Arc::downgrade(self);
        let task = tokio::spawn(async move {
            while let Some(remote) = weak.upgrade() {
                let line = remote.line();
                if let Some((next, user)) = moved(&line, &remote.signer, &remote.trusted, &remote.meeting).await
                    && user == remote.user
                {
                    *remote.line.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(next);
                    keep(&remote.bond());
                }
                drop((remote, line));
                tokio::time::sleep(AGAIN).await;
            }
        });
        let _ = self.follower.set(task.abort_handle());
    }

    pub(crate) async fn ask(&self, method: &str, params: &[&str]) -> Result<String, Failure> {
        self.line().ask(&self.signer, method, params).await
    }

    /// Has an event signed, and sees to it that it is this event which was signed.
    pub(crate) async fn sign(&self, mut draft: UnsignedEvent) -> Result<Event, Failure> {
        draft.pubkey = self.user;
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

/// If a signer wants to be met elsewhere: a line that it has answered on, and for whom it signs. A signer that cannot be found
/// where it said is met where it was.
async fn moved(line: &Line, signer: &PublicKey, trusted: &[String], meeting: &Meeting) -> Option<(Line, PublicKey)> {
    let answer = line.ask_within(MOVE, signer, "switch_relays", &[]).await.ok()?;
    let relays = meeting.admit(&address::relays_of(&answer)?).ok()?;
    let same = |relays: &[RelayUrl]| relays.iter().cloned().collect::<HashSet<_>>();
    if same(&relays) == same(&line.relays) {
        return None;
    }
    let next = Line::open(line.client.clone(), relays, trusted, meeting, None);
    let answer = tokio::time::timeout(ARRIVE, next.ask(signer, "get_public_key", &[])).await.ok()?.ok()?;
    Some((next, PublicKey::from_hex(answer.trim()).ok()?))
}

/// Joins a signer by its address, `bunker://…`, as the operator gives it.
pub async fn join(address: &str) -> Result<Remote, Failure> {
    join_within(address, Meeting::default()).await
}

/// The same within limits.
pub(crate) async fn join_within(address: &str, meeting: Meeting) -> Result<Remote, Failure> {
    let Bunker { signer, relays, secret } = Bunker::read(address)?;
    let relays = meeting.admit(&relays)?;
    let trusted = meeting.trusted(&relays);
    let line = Line::open(Keys::generate(), relays, &trusted, &meeting, None);
    let answer = line.ask(&signer, "connect", &[&signer.to_hex(), &secret, PERMISSIONS]).await?;
    // Signers answer with a word, or with the secret to show that they are the ones who gave it.
    if answer != "ack" && (secret.is_empty() || answer != secret) {
        return Err(Failure::no_signer("the signer does not know the secret in its address"));
    }
    Remote::begin(line, signer, trusted, meeting).await
}

/// Our own address, which a signer can join.
pub struct Invitation {
    line: Line,
    address: String,
    joined: oneshot::Receiver<PublicKey>,
    trusted: Vec<String>,
    meeting: Meeting,
}

impl std::fmt::Debug for Invitation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Invitation")
    }
}

impl Invitation {
    /// Begins to listen for a signer on relays that the operator has chosen.
    pub fn new(relays: &[RelayUrl]) -> Result<Self, Failure> {
        if relays.is_empty() {
            return Err(Failure::invalid("a signer needs a relay to meet us on"));
        }
        let client = Keys::generate();
        // Half a random key is as hard to guess as the whole.
        let secret = Keys::generate().public_key().to_hex().split_off(32);
        let address = address::invitation(&client.public_key(), relays, &secret, PERMISSIONS);
        let meeting = Meeting::default();
        let trusted = meeting.trusted(relays);
        let (sender, joined) = oneshot::channel();
        let stranger = Stranger { joined: sender, secret };
        let line = Line::open(client, relays.to_vec(), &trusted, &meeting, Some(stranger));
        Ok(Self { line, address, joined, trusted, meeting })
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
            Ok(Ok(signer)) => Remote::begin(self.line, signer, self.trusted, self.meeting).await,
            Ok(Err(_)) => Err(Failure::internal("the connection to the relays has ended")),
            Err(_) => Err(Failure::timeout("no signer has joined")),
        }
    }
}
