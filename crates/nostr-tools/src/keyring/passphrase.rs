//! The passphrase that seals secret files (NIP-49). It comes from the operator, never through a tool.

use crate::failure::Failure;
use nostr::nips::nip19::{FromBech32, ToBech32};
use nostr::nips::nip49::{EncryptedSecretKey, KeySecurity};
use nostr::prelude::{Keys, SecretKey};
use std::path::Path;
use std::sync::Arc;

/// 64 MiB and about a tenth of a second for each guess.
const COST: u8 = 16;

/// A passphrase, or none. It can be neither printed nor written.
#[derive(Clone)]
pub struct Passphrase {
    text: Option<Arc<str>>,
    cost: u8,
}

impl Default for Passphrase {
    fn default() -> Self {
        Self { text: None, cost: COST }
    }
}

impl std::fmt::Debug for Passphrase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.is_set() { "Passphrase(set)" } else { "Passphrase(none)" })
    }
}

impl Passphrase {
    /// Nothing is sealed, and what is sealed cannot be opened.
    pub fn none() -> Self {
        Self::default()
    }

    pub fn new(text: &str) -> Self {
        Self { text: Some(text.into()), cost: COST }
    }

    /// The first line of a file that nobody else can read.
    pub fn from_file(path: &Path) -> Result<Self, Failure> {
        let text = super::files::read(path)?;
        match text.lines().next().filter(|line| !line.is_empty()) {
            Some(line) => Ok(Self::new(line)),
            None => Err(Failure::invalid(format!("the passphrase file `{}` is empty", path.display()))),
        }
    }

    /// Cheap to guess: for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn cheap(mut self) -> Self {
        self.cost = 1;
        self
    }

    pub fn is_set(&self) -> bool {
        self.text.is_some()
    }

    /// The sealed form of a key, if there is something to seal it with.
    pub(super) fn seal(&self, keys: &Keys) -> Result<Option<String>, Failure> {
        let Some(text) = &self.text else { return Ok(None) };
        let failed = |error: nostr::error::Error| Failure::internal(format!("the key cannot be sealed: {error}"));
        let sealed = EncryptedSecretKey::new(keys.secret_key(), text, self.cost, KeySecurity::Unknown);
        Ok(Some(sealed.map_err(failed)?.to_bech32().map_err(failed)?))
    }

    /// The key in a text: plain, or sealed with this passphrase. The text is not part of any message.
    pub(super) fn open(&self, text: &str) -> Result<Keys, Failure> {
        let text = text.trim();
        if !is_sealed(text) {
            let keys = Keys::parse(text);
            return keys
                .map_err(|_| Failure::no_signer("there is no secret key in it: one line, nsec1… or ncryptsec1…"));
        }
        let sealed = EncryptedSecretKey::from_bech32(text)
            .map_err(|_| Failure::no_signer("the sealed key is damaged: it is not what NIP-49 describes"))?;
        let Some(passphrase) = &self.text else {
            return Err(Failure::no_signer(
                "the key is sealed, and the server has no passphrase; its operator gives it with --passphrase-file or RIALTO_NOSTR_PASSPHRASE",
            ));
        };
        let secret: SecretKey = sealed
            .decrypt(passphrase)
            .map_err(|_| Failure::no_signer("the passphrase does not open the sealed key"))?;
        Ok(Keys::new(secret))
    }
}

/// Whether a text is a sealed key.
pub(super) fn is_sealed(text: &str) -> bool {
    text.trim_start().to_ascii_lowercase().starts_with("ncryptsec1")
}
