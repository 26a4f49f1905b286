//! Private messages (NIP-17): a message that nobody signs, in a seal that its sender signs, in a wrap that a throw-away key
//! signs. Relays see neither sender nor time.

use crate::failure::Failure;
use crate::network::{PATIENCE, Progress};
use crate::shape::record;
use crate::signer::Signer;
use crate::tool::Turn;
use nostr::prelude::{Event, Keys, Kind, PublicKey, RelayUrl, Tag, Timestamp, UnsignedEvent};
use rialto_relay::sign::sign;
use std::hash::{BuildHasher, Hasher, RandomState};

pub(crate) const MESSAGE: u16 = 14;
const FILE: u16 = 15;
const SEAL: u16 = 13;
pub(crate) const WRAP: u16 = 1059;
pub(crate) const INBOX: u16 = 10050;

/// Seals and wraps are dated back by up to this much, so that their times say nothing.
pub(crate) const BLUR: u64 = 2 * 86_400;

/// Inbox relays of one person that are used; the NIP asks people to name few.
const MAX_INBOX: usize = 4;

record! {
    /// A private message.
    struct Message {
        /// Its id, in hex
        id: String,
        /// Who wrote it, in hex
        sender: String,
        /// To whom, in hex
        recipients: Vec<String>,
        /// When (seconds since 1970)
        created_at: u64,
        /// The text, or the address of an encrypted file
        content: String,
        /// The conversation's subject
        subject: Option<String>,
        /// The message that it answers, in hex
        reply_to: Option<String>,
    }
}

fn blurred(now: Timestamp) -> Timestamp {
    // Seeded by the system for each hasher; a guess at the true time needs more than this gives away.
    let noise = RandomState::new().build_hasher().finish();
    Timestamp::from(now.as_secs().saturating_sub(noise % BLUR))
}

/// Wraps a message for one receiver. Also gives the key that signed the wrap.
pub(crate) async fn wrap(
    signer: &Signer,
    receiver: &PublicKey,
    rumor: &UnsignedEvent,
    now: Timestamp,
) -> Result<(Event, Keys), Failure> {
    let text = serde_json::to_string(rumor).map_err(|error| Failure::internal(error.to_string()))?;
    let hidden = signer.encrypt(receiver, &text).await?;
    let draft = UnsignedEvent::new(signer.public_key(), blurred(now), Kind::from(SEAL), [], hidden);
    let seal = signer.sign(draft).await?;
    let text = serde_json::to_string(&seal).map_err(|error| Failure::internal(error.to_string()))?;
    let keys = Keys::generate();
    let hidden = Signer::Local(keys.clone()).encrypt(receiver, &text).await?;
    let tags = [Tag::public_key(*receiver)];
    let draft = UnsignedEvent::new(keys.public_key(), blurred(now), Kind::from(WRAP), tags, hidden);
    Ok((sign(&keys, draft), keys))
}

/// Opens a wrap; `None` if it is not for us, is no message, or is not by whom it says.
pub(crate) async fn open(signer: &Signer, wrap: &Event) -> Option<Message> {
    let text = signer.decrypt(&wrap.pubkey, &wrap.content).await.ok()?;
    let seal: Event = serde_json::from_str(&text).ok()?;
    if seal.kind.as_u16() != SEAL || seal.verify().is_err() {
        return None;
    }
    let text = signer.decrypt(&seal.pubkey, &seal.content).await.ok()?;
    let rumor: UnsignedEvent = serde_json::from_str(&text).ok()?;
    // Only the seal is signed: whoever is named inside must be the one who sealed it.
    if rumor.pubkey != seal.pubkey || ![MESSAGE, FILE].contains(&rumor.kind.as_u16()) {
        return None;
    }
    let first = |name: &str| {
        rumor.tags.iter().find(|tag| tag.kind() == name).and_then(|tag| tag.content()).map(ToOwned::to_owned)
    };
    Some(Message {
        id: rumor.compute_id().to_hex(),
        sender: rumor.pubkey.to_hex(),
        recipients: rumor.tags.public_keys().map(|key| key.to_hex()).collect(),
        created_at: rumor.created_at.as_secs(),
        subject: first("subject"),
        reply_to: first("e"),
        content: rumor.content,
    })
}

impl Turn<'_> {
    /// Where somebody wants private messages.
    pub(crate) async fn inbox_of(&self, who: PublicKey) -> Result<Vec<RelayUrl>, Failure> {
        let network = &self.session.network;
        let found = network.newest(who, Kind::from(INBOX), PATIENCE, &Progress::of(self)).await?;
        let tags = found.iter().flat_map(|event| event.tags.iter()).filter(|tag| tag.kind() == "relay");
        let relays = tags.filter_map(|tag| RelayUrl::parse(tag.content()?).ok());
        let allowed = relays.filter(|relay| self.session.guard.allows_relay(relay));
        Ok(allowed.take(MAX_INBOX).collect())
    }
}
