//! The keys that we sign with: one file each, made when first needed, readable by their owner alone.
//!
//! Selling and buying have different keys, so that nobody can tell by the key that they are the same person.

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use nostr::nips::nip19::ToBech32;
use nostr::prelude::Keys;

use crate::environment::Environment;
use crate::failure::Failure;
use crate::paths::Directories;
use crate::secret_file::{self, What};

/// Which key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Signs announcements and answers.
    Provider,
    /// Signs requests.
    Customer,
}

impl Role {
    fn file(self) -> &'static str {
        match self {
            Role::Provider => "key",
            Role::Customer => "customer-key",
        }
    }
}

/// A key and where it lives.
#[derive(Debug)]
pub(crate) struct Identity {
    pub(crate) keys: Keys,
    pub(crate) path: PathBuf,
    /// It was made just now.
    pub(crate) is_new: bool,
}

/// The directory of what must be kept; made if it is not there.
pub(crate) fn data_directory(environment: &Environment) -> Result<PathBuf, Failure> {
    let directories = Directories::find(environment).ok_or_else(|| {
        Failure::config("there is no home directory to keep keys in").hint("set HOME or XDG_DATA_HOME")
    })?;
    let unmade = |error: &std::io::Error| {
        Failure::unexpected(format!("cannot make `{}`", directories.data.display())).because(error)
    };
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&directories.data).map_err(|error| unmade(&error))?;
    Ok(directories.data)
}

/// Reads the key of this role, or the one in `file`; makes one if there is none.
pub(crate) fn load(role: Role, file: Option<&Path>, environment: &Environment) -> Result<Identity, Failure> {
    let path = match file {
        Some(file) => file.to_owned(),
        None => data_directory(environment)?.join(role.file()),
    };
    match read(&path)? {
        Some(keys) => Ok(Identity { keys, path, is_new: false }),
        None => {
            let keys = Keys::generate();
            match write(&path, &keys) {
                Ok(()) => Ok(Identity { keys, path, is_new: true }),
                // Another process may have made one meanwhile: that one counts.
                Err(failure) => match read(&path)? {
                    Some(keys) => Ok(Identity { keys, path, is_new: false }),
                    None => Err(failure),
                },
            }
        }
    }
}

/// The same, but makes none.
pub(crate) fn existing(role: Role, file: Option<&Path>, environment: &Environment) -> Result<Option<Keys>, Failure> {
    match file {
        Some(file) => read(file),
        None => read(&data_directory(environment)?.join(role.file())),
    }
}

/// `None` if there is no such file.
fn read(path: &Path) -> Result<Option<Keys>, Failure> {
    let Some(text) = secret_file::read(path, What::Key)? else { return Ok(None) };
    let keys = Keys::parse(&text).map_err(|_| {
        Failure::config(format!("`{}` holds no secret key", path.display()))
            .code("key_invalid")
            .hint("it must hold one line: nsec1… or 64 hexadecimal digits")
    })?;
    Ok(Some(keys))
}

fn write(path: &Path, keys: &Keys) -> Result<(), Failure> {
    let unwritable = |error: &dyn std::error::Error| {
        Failure::unexpected(format!("cannot write the key file `{}`", path.display())).because(error)
    };
    let secret = keys.secret_key().to_bech32().map_err(|error| unwritable(&error))?;
    secret_file::write(path, What::Key, &secret)
}

#[cfg(test)]
mod tests {
    use super::{Role, load};
    use crate::environment::Environment;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_key_is_made_once_and_kept_from_others() {
        let home = tempfile::tempdir().unwrap();
        let environment = Environment::of(&[("XDG_DATA_HOME", home.path().to_str().unwrap()), ("HOME", "/nowhere")]);
        let first = load(Role::Provider, None, &environment).unwrap();
        let again = load(Role::Provider, None, &environment).unwrap();
        let other = load(Role::Customer, None, &environment).unwrap();
        assert!(first.is_new && !again.is_new);
        assert_eq!(first.keys.public_key(), again.keys.public_key());
        assert_ne!(first.keys.public_key(), other.keys.public_key());
        let mode = std::fs::metadata(&first.path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        std::fs::set_permissions(&first.path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(load(Role::Provider, None, &environment).unwrap_err().code_word(), "key_exposed");
    }

    #[test]
    fn what_is_no_key_is_not_repeated() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("k");
        std::fs::write(&path, "nsec1almostasecret").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        let failure = load(Role::Provider, Some(&path), &Environment::of(&[])).unwrap_err();
        assert!(!failure.to_json().contains("almost"), "{}", failure.to_json());
    }
}
