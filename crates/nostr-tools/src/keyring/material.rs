//! What people give when they add a key: a key in any of its forms, or where it is.

use super::passphrase::{Passphrase, is_sealed};
use super::{Place, files, system};
use crate::argument;
use crate::failure::Failure;
use crate::signer::Remote;
use nostr::prelude::{Keys, PublicKey};
use std::path::PathBuf;

/// A key that is to be added. It can be neither printed nor written.
pub enum Material {
    /// Only the public part.
    Watched(PublicKey),
    /// A secret, to be kept in a file of ours.
    Secret(Keys),
    /// A secret that is sealed already; it is kept as it is.
    Sealed { text: String, keys: Keys },
    /// A secret that stays in a variable, in a file of somebody else, or in the keyring of the system.
    Elsewhere { place: Place, keys: Keys },
    /// A secret that stays with a signer.
    Remote(Box<Remote>),
}

impl std::fmt::Debug for Material {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Material").field(&self.public_key()).finish()
    }
}

impl Material {
    /// A new key.
    pub fn generate() -> Self {
        Material::Secret(Keys::generate())
    }

    /// Whether a text is a secret, or leads to one.
    pub fn is_secret(text: &str) -> bool {
        let text = text.trim().to_lowercase();
        ["nsec1", "env:", "file:", "keyring:", "bunker:", "nostrconnect:"].iter().any(|start| text.starts_with(start))
    }

    /// Understands what was typed. Bare hexadecimal digits could be either half of a key, and to take a secret for a
    /// public key would show it; so they are refused.
    pub fn parse(text: &str, passphrase: &Passphrase) -> Result<Self, Failure> {
        let text = text.trim();
        if let Some(name) = text.strip_prefix("env:") {
            return Self::elsewhere(Place::Variable(name.to_owned()), passphrase);
        }
        if let Some(path) = text.strip_prefix("file:") {
            let path = PathBuf::from(path.strip_prefix("//").unwrap_or(path));
            let path = std::path::absolute(&path).unwrap_or(path);
            return Self::elsewhere(Place::Path(path), passphrase);
        }
        if is_sealed(text) {
            return Ok(Material::Sealed { text: text.to_owned(), keys: passphrase.open(text)? });
        }
        if text.to_lowercase().starts_with("nsec1") {
            let keys = Keys::parse(text).map_err(|_| Failure::invalid("the secret key is damaged"))?;
            return Ok(Material::Secret(keys));
        }
        if text.len() == 64 && text.chars().all(|letter| letter.is_ascii_hexdigit()) {
            return Err(Failure::invalid(
                "64 hexadecimal digits can be a secret or a public key; give it as nsec1… or npub1…",
            ));
        }
        let key = argument::public_key(text, "");
        key.map(Material::Watched)
            .map_err(|_| Failure::invalid("a key is npub1…, nsec1…, ncryptsec1…, env:NAME, file:PATH or bunker://…"))
    }

    fn elsewhere(place: Place, passphrase: &Passphrase) -> Result<Self, Failure> {
        let text = read(&place)?;
        let keys = passphrase.open(&text)?;
        Ok(Material::Elsewhere { place, keys })
    }

    /// A secret that is in the keyring of the system already, such as that of a key which was forgotten here.
    pub async fn in_system(key: &str) -> Result<Self, Failure> {
        let key = argument::public_key(key.trim(), "")?;
        let text = system::read(&key).await?;
        let text = text.ok_or_else(|| Failure::not_found("the keyring of this system does not hold that key"))?;
        let keys = Passphrase::none().open(&text)?;
        if keys.public_key() != key {
            return Err(Failure::no_signer("the secret in the keyring of this system belongs to another key"));
        }
        Ok(Material::Elsewhere { place: Place::System, keys })
    }

    pub fn public_key(&self) -> PublicKey {
        match self {
            Material::Watched(key) => *key,
            Material::Remote(remote) => remote.user(),
            Material::Secret(keys) | Material::Sealed { keys, .. } | Material::Elsewhere { keys, .. } => {
                keys.public_key()
            }
        }
    }
}

/// What is in a variable or a file of somebody else.
pub(super) fn read(place: &Place) -> Result<String, Failure> {
    match place {
        Place::Variable(name) => std::env::var(name)
            .ok()
            .filter(|value| !value.is_empty())
            .ok_or_else(|| Failure::no_signer(format!("the variable {name} holds no key"))),
        Place::Path(path) => files::read(path),
        _ => Err(Failure::internal("it is not kept elsewhere")),
    }
}
