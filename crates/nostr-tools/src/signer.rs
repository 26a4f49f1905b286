//! Who signs: a key on this machine, or somebody else who has it.

mod address;
mod bond;
mod line;
mod meeting;
pub mod page;
mod remote;

pub(crate) use self::bond::Bond;
pub(crate) use self::meeting::{ANSWER, Meeting};
pub(crate) use self::remote::join_within;
pub use self::remote::{Invitation, Remote, join};

use crate::failure::Failure;
use nostr::nips::nip44;
use nostr::prelude::{Event, Keys, PublicKey, UnsignedEvent};
use rialto_relay::sign::sign;
use std::sync::Arc;

/// Signs and encrypts for one identity. Never shows its key.
#[derive(Clone)]
pub(crate) enum Signer {
    Local(Keys),
    Remote(Arc<Remote>),
}

impl std::fmt::Debug for Signer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Signer").field(&self.public_key()).finish()
    }
}

impl Signer {
    pub(crate) fn public_key(&self) -> PublicKey {
        match self {
            Signer::Local(keys) => keys.public_key(),
            Signer::Remote(remote) => remote.user(),
        }
    }

    /// The keys, if they are here: relays that want to know who we are can be told without asking anybody.
    pub(crate) fn local(&self) -> Option<&Keys> {
        match self {
            Signer::Local(keys) => Some(keys),
            Signer::Remote(_) => None,
        }
    }

    pub(crate) async fn sign(&self, event: UnsignedEvent) -> Result<Event, Failure> {
        match self {
            Signer::Local(keys) => Ok(sign(keys, event)),
            Signer::Remote(remote) => remote.sign(event).await,
        }
    }

    pub(crate) async fn encrypt(&self, peer: &PublicKey, text: &str) -> Result<String, Failure> {
        match self {
            Signer::Local(keys) => nip44::encrypt(keys.secret_key(), peer, text, nip44::Version::V2)
                .map_err(|_| Failure::invalid("the text cannot be encrypted: it must have 1 to 65535 bytes")),
            Signer::Remote(remote) => remote.ask("nip44_encrypt", &[&peer.to_hex(), text]).await,
        }
    }

    pub(crate) async fn decrypt(&self, peer: &PublicKey, text: &str) -> Result<String, Failure> {
        match self {
            Signer::Local(keys) => nip44::decrypt(keys.secret_key(), peer, text)
                .map_err(|_| Failure::invalid("the text cannot be decrypted: it is damaged, or for somebody else")),
            Signer::Remote(remote) => remote.ask("nip44_decrypt", &[&peer.to_hex(), text]).await,
        }
    }
}
