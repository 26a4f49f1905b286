//! Where an ecash wallet lives: a directory of its own that only its owner may enter, with the store, the seed that all coins
//! are made from, and a lock. Two processes with one seed would make the same coins twice, so only one may open it.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Why a wallet's directory cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unusable {
    #[error("cannot use `{path}`: {why}", path = path.display())]
    File { path: PathBuf, why: io::Error },
    #[error("another process uses the wallet in `{path}`; stop it, or give each its own directory", path = .0.display())]
    InUse(PathBuf),
    #[error("`{path}` can be read by others; it is money: chmod 600 it, if it is still yours alone", path = .0.display())]
    Open(PathBuf),
    #[error("there are coins in `{path}`, but the seed beside them is missing or damaged; restore it", path = .0.display())]
    NoSeed(PathBuf),
    #[error("the store `{path}` cannot be opened: {words}", path = path.display())]
    Store { path: PathBuf, words: String },
}

/// What all coins of a wallet are made from.
#[derive(Clone)]
pub(super) struct Seed(pub(super) [u8; 64]);

impl std::fmt::Debug for Seed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seed(…)")
    }
}

/// A directory that is ours for as long as this is kept.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) seed: Seed,
    pub(super) store: PathBuf,
    _lock: File,
}

impl Place {
    pub(super) fn open(directory: &Path) -> Result<Self, Unusable> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |why| Unusable::File { path, why }
        };
        fs::DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(failed(directory))?;
        fs::set_permissions(directory, Permissions::from_mode(0o700)).map_err(failed(directory))?;
        let lock = rialto_store::hold(directory, "lock");
        let lock = lock.map_err(|error| failed(directory)(io::Error::other(error.to_string())))?;
        let lock = lock.ok_or_else(|| Unusable::InUse(directory.to_owned()))?;
        let (path, store) = (directory.join("seed"), directory.join("coins.redb"));
        let is_new = fs::metadata(&store).map_or(true, |store| store.len() == 0);
        let seed = match fs::metadata(&path) {
            Ok(found) if found.permissions().mode() & 0o077 != 0 => return Err(Unusable::Open(path)),
            Ok(_) => {
                let text = fs::read_to_string(&path).map_err(failed(&path))?;
                from_hex(text.trim()).ok_or_else(|| Unusable::NoSeed(directory.to_owned()))?
            }
            Err(why) if why.kind() == io::ErrorKind::NotFound && is_new => {
                make(directory, &path).map_err(failed(&path))?
            }
            Err(why) if why.kind() == io::ErrorKind::NotFound => return Err(Unusable::NoSeed(directory.to_owned())),
            Err(why) => return Err(failed(&path)(why)),
        };
        // Made here, since the store itself would let everybody read it.
        OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(&store)
            .and_then(|file| file.set_permissions(Permissions::from_mode(0o600)))
            .map_err(failed(&store))?;
        Ok(Self { seed, store, _lock: lock })
    }
}

/// Draws a seed and keeps it, before any coin is made from it.
fn make(directory: &Path, path: &Path) -> io::Result<Seed> {
    let seed = Seed(random()?);
    let draft = path.with_extension("new");
    let mut file = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&draft)?;
    file.write_all(hex(&seed.0).as_bytes())?;
    file.sync_all()?;
    fs::rename(&draft, path)?;
    File::open(directory)?.sync_all()?;
    Ok(seed)
}

/// From the system's source of randomness.
pub(super) fn random<const LENGTH: usize>() -> io::Result<[u8; LENGTH]> {
    let mut bytes = [0; LENGTH];
    let mut filled = 0;
    while filled < LENGTH {
        filled += rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty())?;
    }
    Ok(bytes)
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Option<Seed> {
    let digits: Vec<u8> = text.chars().map(|digit| digit.to_digit(16)?.try_into().ok()).collect::<Option<_>>()?;
    let bytes: Vec<u8> = digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect();
    Some(Seed(bytes.try_into().ok()?)).filter(|_| digits.len() == 128)
}
