//! Indexes that are kept between runs, in the user's cache folder, so that a new process does not read the whole corpus.
//!
//! Nothing here needs to be there, and nothing is trusted: an index carries a hash over itself and over the ids and contents
//! it was made of. A *seal* says in which state the files of a cache were when all of them were checked; as long as they are in
//! that state, they need not be read again.
//!
//! Both are signed with a key that lies elsewhere: folders of caches are shared, restored from archives and cleaned by
//! others, and an index that somebody else made would be believed otherwise.

use super::Index;
use crate::beneath::{Folder, Trouble};
use crate::cache::{Seal, Table};
use crate::digest::{self, Hash, Hasher};
use ring::hmac;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const INDEX: &str = "index";
const SEAL: &str = "seal";
const NEW: &str = "new";

/// What all indexes together may take.
const MAX_BYTES: u64 = 1 << 30;

/// How many indexes and seals are kept of each.
const MAX_FILES: usize = 200;

/// A file that changed less than this ago could change again without showing a later time.
const SETTLED_NANOSECONDS: i128 = 50_000_000;

/// How long the key and a signature are.
const KEY: usize = 32;

/// After this long, what was not finished never will be.
const ABANDONED: Duration = Duration::from_secs(3600);

/// Where indexes are kept between runs, and the key that they are signed with.
#[derive(Debug, Clone)]
pub struct Store {
    folder: PathBuf,
    key: hmac::Key,
}

impl Store {
    /// The folder is made when there is something to keep; the key is made now, unless it is there. Without a key nothing can
    /// be kept.
    pub fn open(folder: &Path, key: &Path) -> Option<Self> {
        let (above, name) = (key.parent()?, key.file_name()?.to_str()?);
        fs::DirBuilder::new().recursive(true).mode(0o700).create(above).ok()?;
        let read = || Folder::open(above).and_then(|above| above.read(name, KEY as u64));
        let bytes = match read() {
            Ok(bytes) if bytes.len() == KEY => bytes,
            Ok(_) | Err(Trouble::Missing) => {
                write_key(key)?;
                read().ok()?
            }
            Err(_) => return None,
        };
        Some(Self { folder: folder.to_owned(), key: hmac::Key::new(hmac::HMAC_SHA256, &bytes) })
    }

    /// The signature of a hash, which is different for each use.
    fn sign(&self, extension: &str, hash: &Hash) -> hmac::Tag {
        hmac::sign(&self.key, &[extension.as_bytes(), hash].concat())
    }

    fn is_signed(&self, extension: &str, hash: &[u8], tag: &[u8]) -> bool {
        hmac::verify(&self.key, &[extension.as_bytes(), hash].concat(), tag).is_ok()
    }

    /// A file of ours: a regular one, not too large, and nothing that a link leads to.
    fn read(&self, name: &str) -> Option<Vec<u8>> {
        Folder::open(&self.folder).ok()?.read(name, MAX_BYTES).ok()
    }

    fn index_name(table: &Table) -> String {
        let version = table.cache_version.strip_prefix(digest::PREFIX).unwrap_or_default();
        format!("{version}.{INDEX}")
    }

    fn seal_name(table: &Table, documents: &Folder) -> Option<String> {
        let (device, inode) = documents.own_stamp().ok()?.identity();
        let mut hasher = Hasher::new();
        hasher.add(&device.to_le_bytes());
        hasher.add(&inode.to_le_bytes());
        hasher.add(&table.fingerprint);
        Some(format!("{}.{SEAL}", digest::hex(&hasher.finish()[..16])))
    }

    /// The index of these documents, if it is there and sound.
    pub(crate) fn load(&self, table: &Table) -> Option<Index> {
        let mut bytes = self.read(&Self::index_name(table))?;
        let tag = bytes.split_off(bytes.len().checked_sub(KEY)?);
        // The hash at its end is what is signed; whether it is the hash is looked at next.
        let hash = bytes.get(bytes.len().checked_sub(size_of::<Hash>())?..)?;
        if !self.is_signed(INDEX, hash, &tag) {
            return None;
        }
        let index = Index::read(bytes, &table.fingerprint)?;
        (index.len() == table.rows.len()).then_some(index)
    }

    /// Keeps an index. When that fails, the next process makes it again.
    pub(crate) fn save(&self, table: &Table, index: &Index) {
        let tag = self.sign(INDEX, &index.hash());
        if self.write(&Self::index_name(table), &[index.bytes(), tag.as_ref()]).is_some() {
            self.prune(INDEX, MAX_BYTES);
        }
    }

    /// Whether the files were in this state when they were last checked.
    pub(crate) fn is_sealed(&self, table: &Table, documents: &Folder, seal: &Seal) -> bool {
        let kept = Self::seal_name(table, documents).and_then(|name| self.read(&name));
        kept.is_some_and(|kept| self.is_signed(SEAL, &seal.hash, &kept))
    }

    /// Notes that files in this state have been checked.
    pub(crate) fn save_seal(&self, table: &Table, documents: &Folder, seal: &Seal) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as i128);
        if seal.youngest + SETTLED_NANOSECONDS > now {
            return;
        }
        let tag = self.sign(SEAL, &seal.hash);
        let written = Self::seal_name(table, documents).and_then(|name| self.write(&name, &[tag.as_ref()]));
        if written.is_some() {
            self.prune(SEAL, MAX_BYTES);
        }
    }

    fn write(&self, name: &str, parts: &[&[u8]]) -> Option<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder).ok()?;
        write_whole(&self.folder.join(name), parts)
    }

    /// The files of a kind, the oldest first.
    fn files(&self, extension: &str) -> Vec<(SystemTime, u64, PathBuf)> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let mut files: Vec<(SystemTime, u64, PathBuf)> = entries
            .filter(|entry| entry.path().extension().is_some_and(|found| found == extension))
            .filter_map(|entry| {
                let metadata = entry.metadata().ok()?;
                Some((metadata.modified().ok()?, metadata.len(), entry.path()))
            })
            .collect();
        files.sort();
        files
    }

    /// Removes the oldest files of a kind when there are too many, and what processes that died have left.
    fn prune(&self, extension: &str, max_bytes: u64) {
        for (modified, _, path) in self.files(NEW) {
            if modified.elapsed().is_ok_and(|age| age > ABANDONED) {
                let _ = fs::remove_file(path);
            }
        }
        let files = self.files(extension);
        let mut bytes: u64 = files.iter().map(|(_, size, _)| size).sum();
        let mut count = files.len();
        // The youngest stays, however large it is.
        for (_, size, path) in files.iter().take(files.len().saturating_sub(1)) {
            if bytes <= max_bytes && count <= MAX_FILES {
                break;
            }
            let _ = fs::remove_file(path);
            bytes -= size;
            count -= 1;
        }
    }
}

/// Writes a file that only its owner can read, whole or not at all.
fn write_whole(path: &Path, parts: &[&[u8]]) -> Option<()> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    // Each thread of each process has a name of its own for what is not whole yet.
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let beside = path.with_extension(format!("{}-{number}.{NEW}", std::process::id()));
    let _ = fs::remove_file(&beside);
    let new = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside);
    let written = new.and_then(|mut file| parts.iter().try_for_each(|part| file.write_all(part)));
    let placed = written.and_then(|()| fs::rename(&beside, path));
    if placed.is_err() {
        let _ = fs::remove_file(&beside);
    }
    placed.ok()
}

/// Makes a key. If two processes do so at once, what one of them keeps will be made again, no more.
fn write_key(path: &Path) -> Option<()> {
    let mut key = [0; KEY];
    ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut key).ok()?;
    write_whole(path, &[&key])
}

#[cfg(test)]
mod tests {
    use super::Store;
    use std::fs;

    #[test]
    fn the_oldest_go_first_and_the_youngest_never() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), &folder.path().join("key")).unwrap();
        let past = std::time::SystemTime::now() - std::time::Duration::from_secs(1000);
        for age in 0..4 {
            let path = folder.path().join(format!("{age}.index"));
            fs::write(&path, [0; 100]).unwrap();
            let file = fs::File::options().write(true).open(&path).unwrap();
            file.set_modified(past - std::time::Duration::from_secs(age)).unwrap();
        }
        fs::write(folder.path().join("other.seal"), [0; 1000]).unwrap();
        let left = || (0..4).filter(|age| folder.path().join(format!("{age}.index")).exists()).collect::<Vec<_>>();
        let abandoned = folder.path().join("x.1-0.new");
        for (name, age) in [("x.1-0.new", 4000), ("x.2-0.new", 10)] {
            let file = fs::File::create(folder.path().join(name)).unwrap();
            file.set_modified(std::time::SystemTime::now() - std::time::Duration::from_secs(age)).unwrap();
        }
        store.prune("index", 250);
        assert!(!abandoned.exists() && folder.path().join("x.2-0.new").exists());
        assert_eq!(left(), [0, 1]);
        store.prune("index", 0);
        assert_eq!(left(), [0]);
        assert!(folder.path().join("other.seal").exists());
    }
}
