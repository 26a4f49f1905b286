//! The identities: labels, public keys, and where their secrets are. Secrets themselves are never part of what is listed.
//!
//! `identities.json` names them; each secret is a file of its own in `secrets`, named after its public key. So a label can
//! change without its secret being touched, and whatever happens in between two steps, the secret is where it was. Secrets
//! can also be left to others: the keyring of the system, a variable, a file of somebody else, a remote signer.

mod files;
mod material;
mod passphrase;
mod system;

#[cfg(test)]
mod tests;

pub use self::material::Material;
pub use self::passphrase::Passphrase;

use crate::failure::Failure;
use crate::signer::{Bond, Meeting, Remote, Signer};
use nostr::nips::nip19::ToBech32;
use nostr::prelude::{Keys, PublicKey};
use rialto_store::{Changed, Document};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// No label is longer.
const MAX_LABEL: usize = 100;

/// One identity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    pub label: String,
    pub public_key: PublicKey,
    pub created_at: i64,
    pub secret: Place,
}

/// Where the secret of an identity is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// Nowhere: it can only be watched.
    None,
    /// In a file of ours.
    File,
    /// In a file of ours, sealed with a passphrase (NIP-49).
    Sealed,
    /// In the keyring of the system.
    System,
    /// In a variable of the environment.
    Variable(String),
    /// In a file of somebody else.
    Path(PathBuf),
    /// With a remote signer (NIP-46); what ties us to it is in a file of ours.
    Signer,
}

impl Place {
    /// In a few words.
    pub fn words(&self) -> String {
        match self {
            Place::None => "watch-only".to_owned(),
            Place::File => "file".to_owned(),
            Place::Sealed => "sealed file".to_owned(),
            Place::System => "system keyring".to_owned(),
            Place::Variable(name) => format!("env:{name}"),
            Place::Path(path) => format!("file:{}", path.display()),
            Place::Signer => "remote signer".to_owned(),
        }
    }
}

/// Where the secrets of new keys go that tools make or get.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Home {
    /// Into files of ours, sealed if there is a passphrase.
    #[default]
    Files,
    /// Into the keyring of the system.
    System,
}

/// What becomes of the secret of an identity that is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is moved to `secrets/removed`, where its owner can find it again. In the keyring of the system it stays.
    SetAside,
    /// It is deleted.
    Erase,
}

/// Whether a new identity is acted as from now on. The first one always is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activate {
    Yes,
    No,
}

impl From<bool> for Activate {
    fn from(yes: bool) -> Self {
        if yes { Activate::Yes } else { Activate::No }
    }
}

/// What is kept in `identities.json`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Book {
    #[serde(default)]
    active: Option<String>,
    #[serde(default)]
    identities: Vec<Identity>,
}

impl Book {
    /// That there is no such key, and which ones there are.
    fn unknown(&self, label: &str) -> Failure {
        let labels: Vec<String> = self.identities.iter().map(|identity| format!("`{}`", identity.label)).collect();
        let rest = if labels.is_empty() {
            "there are none yet".to_owned()
        } else {
            format!("known are {}", labels.join(", "))
        };
        Failure::invalid(format!("there is no key `{label}`; {rest}")).at("/label")
    }

    /// Whether an identity can be added: neither its label nor its key is there, or the key was only watched so far.
    fn admit(&self, new: &Identity) -> Result<(), Failure> {
        let is_like = |known: &&Identity| known.label == new.label || known.public_key == new.public_key;
        let Some(known) = self.identities.iter().find(is_like) else { return Ok(()) };
        let is_same = known.label == new.label && known.public_key == new.public_key;
        if is_same && known.secret == Place::None && new.secret != Place::None {
            return Ok(());
        }
        let words = match known.label == new.label {
            true => format!("there is a key `{}` already", new.label),
            false => format!("this key is kept already, as `{}`", known.label),
        };
        Err(Failure::invalid(words).at("/label"))
    }
}

/// All identities of one user.
#[derive(Debug)]
pub struct Keyring {
    directory: PathBuf,
    document: Document,
    passphrase: Passphrase,
    home: Home,
    /// How remote signers are met.
    meeting: Meeting,
    /// Signers that took time to make.
    ready: Mutex<HashMap<PublicKey, Signer>>,
}

impl Keyring {
    pub fn open(directory: &Path, passphrase: Passphrase) -> Result<Self, Failure> {
        files::make_directory(&directory.join("secrets"))?;
        let document = Document::new(directory.join("identities.json"));
        let (directory, home, meeting) = (directory.to_owned(), Home::default(), Meeting::default());
        Ok(Self { directory, document, passphrase, home, meeting, ready: Mutex::default() })
    }

    /// Keeps new secrets there.
    #[must_use]
    pub(crate) fn at(mut self, home: Home) -> Self {
        self.home = home;
        self
    }

    /// Meets remote signers under these conditions.
    #[must_use]
    pub(crate) fn within(mut self, meeting: Meeting) -> Self {
        self.meeting = meeting;
        self
    }

    /// Whether the signer of the active key, if it is a remote one, may be met at all. Better known at the start than in the
    /// middle of something.
    pub(crate) fn check_signer(&self) -> Result<(), Failure> {
        match self.active()?.filter(|identity| identity.secret == Place::Signer) {
            // A file that cannot be read is told about by whoever needs the key.
            Some(identity) => match self.bond(&identity) {
                Ok(bond) => bond.check(&self.meeting),
                Err(_) => Ok(()),
            },
            None => Ok(()),
        }
    }

    /// What is kept of a remote signer.
    fn bond(&self, identity: &Identity) -> Result<Bond, Failure> {
        let bond = Bond::parse(&files::read(&self.secret_file(identity))?)?;
        if !bond.is_for(&identity.public_key) {
            let words = format!("the signer that is kept for `{}` is another's", identity.label);
            return Err(Failure::no_signer(words));
        }
        Ok(bond)
    }

    pub fn passphrase(&self) -> &Passphrase {
        &self.passphrase
    }

    fn book(&self) -> Result<Book, Failure> {
        Ok(self.document.read()?)
    }

    fn change<T>(&self, change: impl FnOnce(&mut Book) -> Result<T, Failure>) -> Result<T, Failure> {
        self.document.update(|book: &mut Book| {
            let outcome = change(book);
            let changed = if outcome.is_ok() { Changed::Yes } else { Changed::No };
            (outcome, changed)
        })?
    }

    /// Everybody, and who is active.
    pub fn list(&self) -> Result<(Vec<Identity>, Option<String>), Failure> {
        let book = self.book()?;
        Ok((book.identities, book.active))
    }

    pub fn active(&self) -> Result<Option<Identity>, Failure> {
        let book = self.book()?;
        Ok(book.identities.into_iter().find(|identity| Some(&identity.label) == book.active.as_ref()))
    }

    /// The identity of this label.
    pub fn find(&self, label: &str) -> Result<Identity, Failure> {
        let label = label.trim();
        let book = self.book()?;
        let found = book.identities.iter().find(|identity| identity.label == label).cloned();
        found.ok_or_else(|| book.unknown(label))
    }

    /// Adds an identity. A key that was only watched so far gets its secret if it is added again by the same label.
    pub fn add(&self, label: &str, material: &Material, now: i64, activate: Activate) -> Result<Identity, Failure> {
        let label = checked(label, "/label")?;
        let public_key = material.public_key();
        // Sealing takes its time, which must not pass while others wait for the document.
        let (place, file) = match material {
            Material::Watched(_) => (Place::None, None),
            Material::Elsewhere { place, .. } => (place.clone(), None),
            Material::Remote(remote) => (Place::Signer, Some(remote.bond().to_text()?)),
            Material::Sealed { text, .. } => (Place::Sealed, Some(text.clone())),
            Material::Secret(keys) => match self.passphrase.seal(keys)? {
                Some(text) => (Place::Sealed, Some(text)),
                None => (Place::File, Some(keys.secret_key().to_bech32().map_err(unwritten)?)),
            },
        };
        let identity = Identity { label: label.clone(), public_key, created_at: now, secret: place };
        self.change(|book| {
            book.admit(&identity)?;
            if let Some(text) = &file {
                files::write(&self.secret_file(&identity), &format!("{text}\n"))?;
            }
            book.identities.retain(|known| known.label != label);
            book.identities.push(identity.clone());
            if activate == Activate::Yes || book.active.is_none() {
                book.active = Some(label.clone());
            }
            Ok(())
        })?;
        Ok(identity)
    }

    /// Adds an identity whose secret goes where new secrets go.
    pub(crate) async fn keep(
        &self,
        label: &str,
        material: &Material,
        now: i64,
        activate: Activate,
    ) -> Result<Identity, Failure> {
        match (self.home, material) {
            (Home::System, Material::Secret(keys)) => self.add_to_system(label, keys, now, activate).await,
            _ => self.add(label, material, now, activate),
        }
    }

    /// Adds an identity whose secret is left to the keyring of the system.
    pub async fn add_to_system(
        &self,
        label: &str,
        keys: &Keys,
        now: i64,
        activate: Activate,
    ) -> Result<Identity, Failure> {
        let (label, public_key) = (checked(label, "/label")?, keys.public_key());
        // Found out first: a secret that nobody has a name for should not be left there.
        let identity = Identity { label, public_key, created_at: now, secret: Place::System };
        self.book()?.admit(&identity)?;
        system::keep(keys).await?;
        let material = Material::Elsewhere { place: Place::System, keys: keys.clone() };
        self.add(&identity.label, &material, now, activate)
    }

    /// Acts as this identity from now on.
    pub fn activate(&self, label: &str) -> Result<Identity, Failure> {
        let label = label.trim();
        self.change(|book| {
            let found = book.identities.iter().find(|identity| identity.label == label).cloned();
            let found = found.ok_or_else(|| book.unknown(label))?;
            book.active = Some(found.label.clone());
            Ok(found)
        })
    }

    /// Gives an identity another label: the one of label `from`, or the active one.
    pub fn rename(&self, from: Option<&str>, to: &str) -> Result<Identity, Failure> {
        let to = checked(to, "/to")?;
        self.change(|book| {
            let from = from.map(|from| from.trim().to_owned()).or_else(|| book.active.clone());
            let from = from.ok_or_else(|| Failure::invalid("there is no active key; say which one with `from`"))?;
            if from != to && book.identities.iter().any(|known| known.label == to) {
                return Err(Failure::invalid(format!("there is a key `{to}` already")).at("/to"));
            }
            let unknown = book.unknown(&from).at("/from");
            let found = book.identities.iter_mut().find(|identity| identity.label == from).ok_or(unknown)?;
            found.label.clone_from(&to);
            if book.active.as_ref() == Some(&from) {
                book.active = Some(to.clone());
            }
            Ok(found.clone())
        })
    }

    /// Forgets an identity; `None` if there is none of this label.
    pub async fn remove(&self, label: &str, fate: Fate) -> Result<Option<Identity>, Failure> {
        let label = label.trim();
        if let Ok(known) = self.find(label)
            && (&known.secret, fate) == (&Place::System, Fate::Erase)
        {
            // A keyring that is locked or away is noticed before the name of what it holds is gone.
            system::read(&known.public_key).await?;
        }
        let removed = self.change(|book| {
            let place = book.identities.iter().position(|identity| identity.label == label);
            let removed = place.map(|place| book.identities.remove(place));
            if removed.is_some() && book.active.as_deref() == Some(label) {
                book.active = None;
            }
            Ok(removed)
        })?;
        // What is no longer named can be put away; the other way round, a name could be left without its secret.
        if let Some(removed) = &removed {
            self.ready.lock().unwrap_or_else(PoisonError::into_inner).remove(&removed.public_key);
            let file = self.secret_file(removed);
            match (&removed.secret, fate) {
                (Place::None | Place::Variable(_) | Place::Path(_), _) | (Place::System, Fate::SetAside) => {}
                (Place::System, Fate::Erase) => system::erase(&removed.public_key).await?,
                (_, Fate::SetAside) => files::set_aside(&file, &self.directory.join("secrets/removed"))?,
                (_, Fate::Erase) => files::erase(&file)?,
            }
        }
        Ok(removed)
    }

    fn secret_file(&self, identity: &Identity) -> PathBuf {
        let ending = match identity.secret {
            Place::Sealed => ".ncryptsec",
            Place::Signer => ".signer",
            _ => "",
        };
        self.directory.join("secrets").join(format!("{}{ending}", identity.public_key.to_hex()))
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
        if let Some(signer) = self.ready.lock().unwrap_or_else(PoisonError::into_inner).get(&identity.public_key) {
            return Ok(signer.clone());
        }
        let label = &identity.label;
        let text = match &identity.secret {
            Place::None => {
                return Err(Failure::no_signer(format!("`{label}` can only be watched: its secret key is not here")));
            }
            Place::Signer => {
                let remote = Remote::resume(self.bond(identity)?, self.meeting.clone())?;
                let file = self.secret_file(identity);
                return Ok(self.keep_ready(identity, || {
                    let remote = Arc::new(remote);
                    remote.follow(move |bond| keep_bond(&file, bond));
                    Signer::Remote(remote)
                }));
            }
            Place::File | Place::Sealed => files::read(&self.secret_file(identity))?,
            Place::System => {
                let text = system::read(&identity.public_key).await?;
                text.ok_or_else(|| {
                    Failure::no_signer(format!("the keyring of this system does not hold the secret of `{label}`"))
                })?
            }
            place => material::read(place)?,
        };
        // Both take their time: to open a seal, and to ask the system.
        let is_slow = passphrase::is_sealed(&text) || identity.secret == Place::System;
        let passphrase = self.passphrase.clone();
        // Opening a seal is slow on purpose.
        let keys = tokio::task::spawn_blocking(move || passphrase.open(&text)).await;
        let keys = keys.map_err(|error| Failure::internal(error.to_string()))??;
        if keys.public_key() != identity.public_key {
            return Err(Failure::no_signer(format!("the secret that is kept for `{label}` belongs to another key")));
        }
        if is_slow {
            return Ok(self.keep_ready(identity, || Signer::Local(keys)));
        }
        Ok(Signer::Local(keys))
    }

    /// Two calls at once may come here; one of them makes the signer, and both get it.
    fn keep_ready(&self, identity: &Identity, make: impl FnOnce() -> Signer) -> Signer {
        let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        ready.entry(identity.public_key).or_insert_with(make).clone()
    }

    /// The keys of an identity whose secret is here. Only for what the operator asks for, or has allowed.
    pub async fn keys_of(&self, identity: &Identity) -> Result<Keys, Failure> {
        let signer = self.signer_of(identity).await?;
        let elsewhere = || Failure::no_signer(format!("the secret key of `{}` is with its signer", identity.label));
        signer.local().cloned().ok_or_else(elsewhere)
    }
}

/// A label that can be used.
fn checked(label: &str, pointer: &str) -> Result<String, Failure> {
    let label = label.trim();
    if label.is_empty() || label.chars().count() > MAX_LABEL || label.chars().any(char::is_control) {
        return Err(Failure::invalid(format!("a label has 1 to {MAX_LABEL} characters")).at(pointer));
    }
    Ok(label.to_owned())
}

/// Remembers where a signer is met now. If it was forgotten meanwhile, it stays so; if it cannot be written, the signer says it
/// again the next time.
fn keep_bond(file: &Path, bond: &Bond) {
    if let Ok(text) = bond.to_text()
        && file.exists()
    {
        let _ = files::write(file, &format!("{text}\n"));
    }
}

fn unwritten(error: impl std::fmt::Display) -> Failure {
    Failure::internal(format!("the key cannot be kept: {error}"))
}
