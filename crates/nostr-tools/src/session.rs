//! Everything that tools work on.

use crate::failure::Failure;
use crate::guard::Guard;
use crate::keyring::{Keyring, Passphrase};
use crate::network::Network;
use crate::signer::Signer;
use nostr::prelude::{Keys, RelayUrl};
use rialto_relay::clock::{Clock, SystemClock};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// What a session begins with.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where identities and settings are kept.
    pub directory: PathBuf,
    /// Relays to use beside those that the user has chosen.
    pub relays: Vec<RelayUrl>,
    pub guard: Guard,
    /// What seals new secrets, and opens sealed ones.
    pub passphrase: Passphrase,
}

impl Options {
    /// No relays, no limits, no passphrase.
    pub fn new(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            relays: Vec::new(),
            guard: Guard::default(),
            passphrase: Passphrase::none(),
        }
    }
}

/// One user's tools at work.
#[derive(Debug)]
pub struct Session {
    pub(crate) keyring: Keyring,
    pub(crate) network: Network,
    pub(crate) guard: Guard,
    pub(crate) clock: Arc<dyn Clock>,
    options: Options,
    /// The one that is to take the place of this one.
    next: Mutex<Option<Box<Session>>>,
}

impl Session {
    /// Reads what is kept. Nothing is connected to before it is needed.
    pub fn open(options: Options) -> Result<Self, Failure> {
        let Options { directory, relays, guard, passphrase } = options.clone();
        relays.iter().try_for_each(|relay| guard.admit_relay(relay))?;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        Ok(Self {
            keyring: Keyring::open(&directory, passphrase)?,
            network: Network::new(&directory, relays, clock.clone())?,
            guard,
            clock,
            options,
            next: Mutex::default(),
        })
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.options.directory
    }

    /// Goes on in another folder after this call.
    pub(crate) fn move_to(&self, path: &Path) -> Result<PathBuf, Failure> {
        if !path.is_absolute() {
            return Err(Failure::invalid("the folder must be an absolute path"));
        }
        // A folder with other things in it is somebody else's.
        let is_ours = path.join("identities.json").exists() || path.join("secrets").is_dir();
        let is_free = match std::fs::read_dir(path) {
            Ok(mut entries) => entries.next().is_none(),
            Err(error) => error.kind() == std::io::ErrorKind::NotFound,
        };
        if !is_ours && !is_free {
            return Err(Failure::invalid("the folder must be new, empty, or one that was used for this before"));
        }
        let next = Session::open(Options { directory: path.to_owned(), ..self.options.clone() })?;
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(next));
        Ok(path.to_owned())
    }

    /// The session that takes the place of this one, if there is one.
    pub(crate) fn take_next(&self) -> Option<Session> {
        self.next.lock().unwrap_or_else(PoisonError::into_inner).take().map(|next| *next)
    }

    /// Seconds since 1970, as keys and settings count them.
    pub(crate) fn seconds(&self) -> i64 {
        i64::try_from(self.clock.now().as_secs()).unwrap_or(i64::MAX)
    }

    /// Who signs: the active key, the one of `label:NAME`, or a raw key if the operator allows that.
    pub(crate) async fn signer_named(&self, name: Option<&str>, pointer: &str) -> Result<Signer, Failure> {
        let Some(name) = name else { return self.keyring.signer().await };
        if let Some(label) = name.trim().strip_prefix("label:") {
            let identity = self.keyring.find(label).map_err(|failure| failure.at(pointer))?;
            return self.keyring.signer_of(&identity).await;
        }
        self.guard.admit_secret().map_err(|failure| failure.at(pointer))?;
        let keys = Keys::parse(name.trim());
        keys.map(Signer::Local).map_err(|_| Failure::invalid("it is no secret key").at(pointer))
    }

    /// A text without the secret keys in it, as far as they can be recognised: `nsec1…` anywhere, and hexadecimal digits
    /// that are the secret of a key of ours.
    pub(crate) fn masked(&self, text: &str) -> Result<String, Failure> {
        let masked = without_secrets(text);
        let bare = text.trim();
        let is_hex = bare.len() == 64 && bare.bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_hex && let Ok(keys) = Keys::parse(bare) {
            let (known, _) = self.keyring.list()?;
            if known.iter().any(|identity| identity.public_key == keys.public_key()) {
                return Ok("(a secret key)".to_owned());
            }
        }
        Ok(masked)
    }
}

/// A text with the end of each `nsec1…` cut off.
pub(crate) fn without_secrets(text: &str) -> String {
    const START: &str = "nsec1";
    let lower = text.to_ascii_lowercase();
    let mut out = String::with_capacity(text.len());
    let mut place = 0;
    while let Some(start) = lower[place..].find(START).map(|offset| place + offset) {
        let end = start + START.len();
        let length = lower[end..].bytes().take_while(u8::is_ascii_alphanumeric).count();
        out.push_str(&text[place..end]);
        if length > 0 {
            out.push('…');
        }
        place = end + length;
    }
    out.push_str(&text[place..]);
    out
}

#[cfg(test)]
mod tests {
    use super::{Options, Session, without_secrets};
    use crate::keyring::{Activate, Material};
    use nostr::prelude::Keys;

    #[test]
    fn secrets_are_cut_wherever_they_stand() {
        let cases =
            [("hello", "hello"), ("nsec1abc", "nsec1…"), ("É NSEC1ABC. x nsec1q nsec1", "É NSEC1…. x nsec1… nsec1")];
        for (text, expected) in cases {
            assert_eq!(without_secrets(text), expected);
        }
    }

    #[tokio::test]
    async fn a_secret_of_ours_is_known_in_hex() {
        let home = tempfile::tempdir().unwrap();
        let session = Session::open(Options::new(home.path())).unwrap();
        let keys = Keys::generate();
        let hex = keys.secret_key().to_secret_hex();
        assert_eq!(session.masked(&hex).unwrap(), hex);
        session.keyring.add("me", &Material::Secret(keys), 1, Activate::Yes).unwrap();
        assert_eq!(session.masked(&hex.to_uppercase()).unwrap(), "(a secret key)");
    }

    #[tokio::test]
    async fn only_a_free_folder_is_moved_to() {
        let home = tempfile::tempdir().unwrap();
        let session = Session::open(Options::new(&home.path().join("one"))).unwrap();
        let other = home.path().join("other");
        std::fs::create_dir(&other).unwrap();
        std::fs::write(other.join("letter"), "x").unwrap();
        assert!(session.move_to(&other).is_err());
        assert!(session.move_to("relative".as_ref()).is_err());
        session.move_to(&home.path().join("two")).unwrap();
        assert_eq!(session.take_next().unwrap().directory(), home.path().join("two"));
        assert!(session.take_next().is_none());
        session.move_to(&home.path().join("two")).unwrap();
    }
}
