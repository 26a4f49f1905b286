//! The identities: labels, public keys, and where their secrets are. Secrets themselves are never part of what is listed.

use crate::failure::Failure;
use crate::signer::Signer;
use nostr::nips::nip19::ToBech32;
use nostr::prelude::{Keys, PublicKey};
use rialto_store::{Changed, Document};
use serde::{Deserialize, Serialize};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// One identity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    pub(crate) label: String,
    pub(crate) public_key: PublicKey,
    pub(crate) created_at: i64,
    pub(crate) secret: Place,
}

/// Where the secret of an identity is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Place {
    /// Nowhere: it can only be watched.
    None,
    /// In a file of ours.
    File,
}

/// What is kept in `identities.json`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Book {
    #[serde(default)]
    active: Option<String>,
    #[serde(default)]
    identities: Vec<Identity>,
}

/// All identities of one user.
#[derive(Debug)]
pub(crate) struct Keyring {
    directory: PathBuf,
    document: Document,
}

impl Keyring {
    pub(crate) fn open(directory: &Path) -> Result<Self, Failure> {
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(directory.join("secrets"));
        made.map_err(|error| Failure::internal(format!("cannot keep identities in {}: {error}", directory.display())))?;
        let document = Document::new(directory.join("identities.json"));
        Ok(Self { directory: directory.to_owned(), document })
    }

    fn book(&self) -> Result<Book, Failure> {
        self.document.read().map_err(|error| Failure::internal(error.to_string()))
    }

    fn change<T>(&self, change: impl FnOnce(&mut Book) -> Result<T, Failure>) -> Result<T, Failure> {
        let changed = self.document.update(|book: &mut Book| {
            let outcome = change(book);
            let changed = if outcome.is_ok() { Changed::Yes } else { Changed::No };
            (outcome, changed)
        });
        changed.map_err(|error| Failure::internal(error.to_string()))?
    }

    /// Everybody, and who is active.
    pub(crate) fn list(&self) -> Result<(Vec<Identity>, Option<String>), Failure> {
        let book = self.book()?;
        Ok((book.identities, book.active))
    }

    pub(crate) fn active(&self) -> Result<Option<Identity>, Failure> {
        let book = self.book()?;
        Ok(book.identities.into_iter().find(|identity| Some(&identity.label) == book.active.as_ref()))
    }

    /// Adds an identity whose secret, if there is one, is kept in a file.
    pub(crate) fn add(
        &self,
        label: &str,
        keys: Option<&Keys>,
        public_key: PublicKey,
        now: i64,
        activate: bool,
    ) -> Result<Identity, Failure> {
        let label = label.trim();
        if label.is_empty() || label.len() > 100 {
            return Err(Failure::invalid("`label` must have 1 to 100 characters").at("/label"));
        }
        let place = if keys.is_some() { Place::File } else { Place::None };
        let identity = Identity { label: label.to_owned(), public_key, created_at: now, secret: place };
        self.change(|book| {
            if book.identities.iter().any(|known| known.label == label) {
                return Err(Failure::invalid(format!("there is a key `{label}` already")).at("/label"));
            }
            if let Some(keys) = keys {
                self.write_secret(keys)?;
            }
            book.identities.push(identity.clone());
            if activate || book.active.is_none() {
                book.active = Some(label.to_owned());
            }
            Ok(())
        })?;
        Ok(identity)
    }

    fn secret_file(&self, public_key: &PublicKey) -> PathBuf {
        self.directory.join("secrets").join(public_key.to_hex())
    }

    fn write_secret(&self, keys: &Keys) -> Result<(), Failure> {
        let path = self.secret_file(&keys.public_key());
        let failed = |error: String| Failure::internal(format!("the key cannot be kept: {error}"));
        let text = keys.secret_key().to_bech32().map_err(|error| failed(error.to_string()))?;
        let draft = path.with_extension(format!("new-{}", std::process::id()));
        let write = || {
            let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&draft, &path)
        };
        write().map_err(|error| failed(error.to_string()))
    }

    /// Who signs for the active identity.
    pub(crate) async fn signer(&self) -> Result<Signer, Failure> {
        let identity = self.active()?.ok_or_else(|| {
            Failure::no_signer(
                "there is no active key; make one with nostr_keys_generate, or choose one with nostr_keys_set_active",
            )
        })?;
        self.signer_of(&identity).await
    }

    pub(crate) async fn signer_of(&self, identity: &Identity) -> Result<Signer, Failure> {
        match identity.secret {
            Place::None => {
                Err(Failure::no_signer(format!("`{}` can only be watched: its secret key is not here", identity.label)))
            }
            Place::File => {
                let text = fs::read_to_string(self.secret_file(&identity.public_key));
                let keys = text.ok().and_then(|text| Keys::parse(text.trim()).ok());
                let keys = keys.filter(|keys| keys.public_key() == identity.public_key);
                keys.map(Signer::Local)
                    .ok_or_else(|| Failure::no_signer(format!("the secret key of `{}` cannot be read", identity.label)))
            }
        }
    }
}
