//! The keyring of the system: what the desktop unlocks when its user logs in. On Linux that is whoever answers for the Secret
//! Service on the session bus, on a Mac the login keychain.
//!
//! A secret is found by the public key that belongs to it, so that a label can change without anybody being asked. Whoever
//! asks may have to wait for a person who types a password; nobody waits for ever.

#[cfg(not(target_os = "macos"))]
mod secret_service;
#[cfg(not(target_os = "macos"))]
use self::secret_service as backend;

#[cfg(target_os = "macos")]
mod keychain;
#[cfg(target_os = "macos")]
use self::keychain as backend;

use crate::failure::Failure;
use nostr::nips::nip19::ToBech32;
use nostr::prelude::{Keys, PublicKey};
use std::time::Duration;

/// How long it may take: its owner may have to unlock it first.
const PATIENCE: Duration = Duration::from_secs(60);

/// Why the keyring of the system did not do what it was asked for.
#[derive(Debug)]
enum Trouble {
    /// There is none.
    Absent,
    /// Its owner did not unlock it.
    Locked,
    /// Anything else, in the words of whoever noticed. They are about the service, never about what it keeps.
    Other(String),
}

impl From<Trouble> for Failure {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Absent => Failure::no_keyring("no keyring service runs on this system"),
            Trouble::Locked => Failure::no_keyring("the keyring of this system is locked, and nobody unlocked it"),
            Trouble::Other(words) => Failure::no_keyring(format!("the keyring of this system failed: {words}")),
        }
    }
}

async fn within<T>(work: impl Future<Output = Result<T, Trouble>>) -> Result<T, Failure> {
    match tokio::time::timeout(PATIENCE, work).await {
        Ok(outcome) => Ok(outcome?),
        Err(_) => Err(Failure::timeout("the keyring of this system did not answer; it may wait to be unlocked")),
    }
}

/// Keeps a secret. One that was kept for the same key is replaced, by the same secret.
pub(super) async fn keep(keys: &Keys) -> Result<(), Failure> {
    let secret = keys.secret_key().to_bech32().map_err(super::unwritten)?;
    within(backend::keep(&keys.public_key(), &secret)).await
}

/// The secret of a key; `None` if it is not there.
pub(super) async fn read(key: &PublicKey) -> Result<Option<String>, Failure> {
    within(backend::read(key)).await
}

/// Deletes the secret of a key. One that is not there is no error.
pub(super) async fn erase(key: &PublicKey) -> Result<(), Failure> {
    within(backend::erase(key)).await
}

/// How it is called where people look at what their keyring holds.
fn title(key: &PublicKey) -> String {
    format!("Rialto: the Nostr key {}", key.to_bech32().unwrap_or_default())
}
