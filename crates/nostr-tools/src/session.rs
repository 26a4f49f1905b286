//! Everything that tools work on.

use crate::failure::Failure;
use crate::guard::Guard;
use crate::keyring::{Home, Identity, Keyring, Passphrase};
use crate::network::Network;
use crate::signer::{ANSWER, Meeting, Signer};
use nostr::prelude::{Keys, RelayUrl};
use rialto_relay::clock::{Clock, SystemClock};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

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
    /// Where new secrets are kept.
    pub home: Home,
    /// How long a remote signer may take.
    pub signer_patience: Duration,
}

impl Options {
    /// No relays, no limits, no passphrase.
    pub fn new(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            relays: Vec::new(),
            guard: Guard::default(),
            passphrase: Passphrase::none(),
            home: Home::default(),
            signer_patience: ANSWER,
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
        let Options { directory, relays, guard, passphrase, home, signer_patience } = options.clone();
        relays.iter().try_for_each(|relay| guard.admit_relay(relay))?;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let network = Network::new(&directory, relays, clock.clone())?.within(&guard);
        let meeting = Meeting::within(&guard, &network.reach, signer_patience);
        let keyring = Keyring::open(&directory, passphrase)?.at(home).within(meeting);
        if !guard.is_read_only {
            keyring.check_signer()?;
        }
        Ok(Self { keyring, network, guard, clock, options, next: Mutex::default() })
    }

    /// How signers are met that a model names.
    pub(crate) fn meeting(&self) -> Meeting {
        Meeting::within(&self.guard, &self.network.reach, self.options.signer_patience)
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

    /// The words of a text that are secret keys, as far as they can be recognised: `nsec1…`, and hexadecimal digits that
    /// are the secret of a key of ours.
    fn secrets_in<'a>(&self, text: &'a str) -> Result<Vec<&'a str>, Failure> {
        let words = text.split(|letter: char| !letter.is_ascii_alphanumeric());
        let is_hex = |word: &str| word.len() == 64 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
        let mut known: Option<Vec<Identity>> = None;
        let mut found = Vec::new();
        for word in words.filter(|word| word.len() > 5) {
            if word.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("nsec1")) {
                found.push(word);
            } else if is_hex(word) {
                let known = match &mut known {
                    Some(known) => known,
                    None => known.insert(self.keyring.list()?.0),
                };
                // Most words of this form are public, and to find out costs a multiplication on the curve.
                let is_public = known.iter().any(|identity| identity.public_key.to_hex().eq_ignore_ascii_case(word));
                if !known.is_empty()
                    && !is_public
                    && let Ok(keys) = Keys::parse(&word.to_lowercase())
                    && known.iter().any(|identity| identity.public_key == keys.public_key())
                {
                    found.push(word);
                }
            }
        }
        Ok(found)
    }

    /// A text without the secret keys in it.
    pub(crate) fn masked(&self, text: &str) -> Result<String, Failure> {
        Ok(self.secrets_in(text)?.into_iter().fold(text.to_owned(), |text, secret| hide(&text, secret)))
    }

    /// The secret keys in the strings of a value, and where they are.
    pub(crate) fn secrets_of(&self, value: &Value) -> Result<Vec<(String, String)>, Failure> {
        let mut found = Vec::new();
        self.search(value, "", &mut found)?;
        Ok(found)
    }

    fn search(&self, value: &Value, pointer: &str, found: &mut Vec<(String, String)>) -> Result<(), Failure> {
        match value {
            Value::String(text) => {
                let secrets = self.secrets_in(text)?;
                found.extend(secrets.into_iter().map(|secret| (pointer.to_owned(), secret.to_owned())));
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.search(item, &format!("{pointer}/{index}"), found)?;
                }
            }
            Value::Object(members) => {
                for (name, member) in members {
                    // A name can hold a secret as well; it is not repeated in the pointer.
                    let secrets = self.secrets_in(name)?;
                    found.extend(secrets.into_iter().map(|secret| (pointer.to_owned(), secret.to_owned())));
                    let pointer = format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"));
                    self.search(member, &pointer, found)?;
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// A text in which a secret is replaced, however it is written.
pub(crate) fn hide(text: &str, secret: &str) -> String {
    const INSTEAD: &str = "(a secret key)";
    text.replace(secret, INSTEAD).replace(&secret.to_lowercase(), INSTEAD).replace(&secret.to_uppercase(), INSTEAD)
}

#[cfg(test)]
mod tests {
    use super::{Options, Session};
    use crate::keyring::{Activate, Material};
    use nostr::prelude::Keys;
    use serde_json::json;

    #[tokio::test]
    async fn secrets_are_masked_wherever_they_stand() {
        let home = tempfile::tempdir().unwrap();
        let session = Session::open(Options::new(home.path())).unwrap();
        let cases = [
            ("hello", "hello"),
            ("nsec1abc", "(a secret key)"),
            ("É NSEC1ABC. x (nsec1q) nsec1", "É (a secret key). x ((a secret key)) nsec1"),
        ];
        for (text, expected) in cases {
            assert_eq!(session.masked(text).unwrap(), expected);
        }
        let value = json!({ "a": ["x", "nostr:nsec1q"], "b/c": { "d": "nsec1r" } });
        let expected = [("/a/1", "nsec1q"), ("/b~1c/d", "nsec1r")];
        let found = session.secrets_of(&value).unwrap();
        assert_eq!(found, expected.map(|(pointer, secret)| (pointer.to_owned(), secret.to_owned())));
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
