//! Small JSON documents that survive: written whole or not at all, readable by their owner alone, and safe when several
//! processes use them at once.

use rustix::fs::FlockOperation;
use rustix::io::Errno;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// No document of ours becomes longer.
const MAX_FILE: u64 = 64 * 1024 * 1024;

/// Changes take milliseconds; whoever holds the lock for longer hangs.
const LOCK_PATIENCE: Duration = Duration::from_secs(5);

/// Why a document could not be read or written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot {action} `{}`: {words}", path.display())]
pub struct Error {
    action: &'static str,
    path: PathBuf,
    words: String,
}

/// Whether a document has to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changed {
    Yes,
    No,
}

/// One document.
#[derive(Debug, Clone)]
pub struct Document {
    path: PathBuf,
}

impl Document {
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    fn error(&self, action: &'static str, words: impl std::fmt::Display) -> Error {
        Error { action, path: self.path.clone(), words: words.to_string() }
    }

    /// What it holds; the default if it is not there. One that cannot be understood is an error: to begin anew would
    /// forget what it was kept for.
    pub fn read<T: DeserializeOwned + Default>(&self) -> Result<T, Error> {
        let file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(T::default()),
            Err(error) => return Err(self.error("read", error)),
        };
        let mut text = Vec::new();
        file.take(MAX_FILE).read_to_end(&mut text).map_err(|error| self.error("read", error))?;
        serde_json::from_slice(&text).map_err(|error| self.error("understand", error))
    }

    /// Changes it while nobody else can.
    pub fn update<T, R>(&self, change: impl FnOnce(&mut T) -> (R, Changed)) -> Result<R, Error>
    where
        T: DeserializeOwned + Serialize + Default,
    {
        let _lock = self.lock()?;
        let mut value: T = self.read()?;
        let (outcome, changed) = change(&mut value);
        if changed == Changed::Yes {
            self.write(&value)?;
        }
        Ok(outcome)
    }

    fn lock(&self) -> Result<File, Error> {
        let path = self.path.with_extension("lock");
        let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path);
        let file = file.map_err(|error| self.error("lock", error))?;
        let end = Instant::now() + LOCK_PATIENCE;
        loop {
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(file),
                Err(Errno::WOULDBLOCK) if Instant::now() < end => std::thread::sleep(Duration::from_millis(5)),
                Err(Errno::WOULDBLOCK) => return Err(self.error("lock", "another process holds it")),
                Err(error) => return Err(self.error("lock", error)),
            }
        }
    }

    fn write(&self, value: &impl Serialize) -> Result<(), Error> {
        let text = serde_json::to_vec(value).map_err(|error| self.error("write", error))?;
        if text.len() as u64 >= MAX_FILE {
            return Err(self.error("write", "it would become too long"));
        }
        let draft = self.path.with_extension(format!("new-{}", std::process::id()));
        let write = || {
            let mut file = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&draft)?;
            file.write_all(&text)?;
            file.sync_all()?;
            fs::rename(&draft, &self.path)
        };
        write().map_err(|error| {
            let _ = fs::remove_file(&draft);
            self.error("write", error)
        })
    }
}

/// Takes the lock of this name for as long as the file that is returned is kept; `None` if another process has it.
pub fn hold(directory: &Path, name: &str) -> Result<Option<File>, Error> {
    let path = directory.join(name);
    let error = |words: String| Error { action: "lock", path: path.clone(), words };
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(|why| error(why.to_string()))?;
    let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path);
    let file = file.map_err(|why| error(why.to_string()))?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(Errno::WOULDBLOCK) => Ok(None),
        Err(why) => Err(error(why.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::{Changed, Document};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn changes_of_many_writers_are_all_kept() {
        let directory = tempfile::tempdir().unwrap();
        let document = Document::new(directory.path().join("a.json"));
        assert!(document.read::<Vec<u32>>().unwrap().is_empty());
        std::thread::scope(|scope| {
            for number in 0..8 {
                let document = document.clone();
                scope.spawn(move || {
                    for step in 0..10 {
                        document.update(|all: &mut Vec<u32>| (all.push(number * 10 + step), Changed::Yes)).unwrap();
                    }
                });
            }
        });
        let mut all: Vec<u32> = document.read().unwrap();
        all.sort_unstable();
        assert_eq!(all, (0..80).collect::<Vec<_>>());
        let mode = std::fs::metadata(document.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2, "no drafts are left");
    }

    #[test]
    fn what_cannot_be_understood_is_not_overwritten() {
        let directory = tempfile::tempdir().unwrap();
        let document = Document::new(directory.path().join("a.json"));
        std::fs::write(document.path(), "{half").unwrap();
        let error = document.update(|all: &mut Vec<u32>| (all.push(1), Changed::Yes)).unwrap_err();
        assert!(error.to_string().contains("a.json"), "{error}");
        assert_eq!(std::fs::read_to_string(document.path()).unwrap(), "{half");
    }
}
