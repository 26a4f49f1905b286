//! Indexes that are kept between runs, in the user's cache folder, so that a new process does not read the whole corpus.
//!
//! Nothing here needs to be there, and nothing is trusted: an index carries a hash over itself and over the ids and contents
//! it was made of. A *seal* says in which state the files of a cache were when all of them were checked; as long as they are in
//! that state, they need not be read again.

use super::Index;
use crate::beneath::Folder;
use crate::cache::{Seal, Table};
use crate::digest::{self, Hasher};
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// What all indexes together may take.
const MAX_BYTES: u64 = 1 << 30;

/// How many indexes and seals are kept of each.
const MAX_FILES: usize = 200;

/// A file that changed less than this ago could change again without showing a later time.
const SETTLED_NANOSECONDS: i128 = 50_000_000;

/// The folder with the indexes.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    folder: PathBuf,
}

impl Store {
    pub(crate) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    fn index_path(&self, table: &Table) -> PathBuf {
        let version = table.cache_version.strip_prefix(digest::PREFIX).unwrap_or_default();
        self.folder.join(format!("{version}.index"))
    }

    fn seal_path(&self, table: &Table, documents: &Folder) -> Option<PathBuf> {
        let (device, inode) = documents.own_stamp().ok()?.identity();
        let mut hasher = Hasher::new();
        hasher.add(&device.to_le_bytes());
        hasher.add(&inode.to_le_bytes());
        hasher.add(&table.fingerprint);
        Some(self.folder.join(format!("{}.seal", digest::hex(&hasher.finish()[..16]))))
    }

    /// The index of these documents, if it is there and sound.
    pub(crate) fn load(&self, table: &Table) -> Option<Index> {
        let index = Index::read(fs::read(self.index_path(table)).ok()?, &table.fingerprint)?;
        (index.len() == table.rows.len()).then_some(index)
    }

    /// Keeps an index. When that fails, the next process makes it again.
    pub(crate) fn save(&self, table: &Table, index: &Index) {
        if self.write(&self.index_path(table), index.bytes()).is_some() {
            self.prune("index", MAX_BYTES);
        }
    }

    /// Whether the files were in this state when they were last checked.
    pub(crate) fn is_sealed(&self, table: &Table, documents: &Folder, seal: &Seal) -> bool {
        self.seal_path(table, documents).and_then(|path| fs::read(path).ok()).is_some_and(|kept| kept == seal.hash)
    }

    /// Notes that files in this state have been checked.
    pub(crate) fn save_seal(&self, table: &Table, documents: &Folder, seal: &Seal) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as i128);
        if seal.youngest + SETTLED_NANOSECONDS > now {
            return;
        }
        let written = self.seal_path(table, documents).and_then(|path| self.write(&path, &seal.hash));
        if written.is_some() {
            self.prune("seal", MAX_BYTES);
        }
    }

    /// Writes a file whole or not at all.
    fn write(&self, path: &Path, bytes: &[u8]) -> Option<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder).ok()?;
        let beside = path.with_extension(format!("{}.new", std::process::id()));
        let written = fs::write(&beside, bytes).and_then(|()| fs::rename(&beside, path));
        if written.is_err() {
            let _ = fs::remove_file(&beside);
        }
        written.ok()
    }

    /// Removes the oldest files of a kind when there are too many.
    fn prune(&self, extension: &str, max_bytes: u64) {
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        let mut files: Vec<(SystemTime, u64, PathBuf)> = entries
            .flatten()
            .filter(|entry| entry.path().extension().is_some_and(|found| found == extension))
            .filter_map(|entry| {
                let metadata = entry.metadata().ok()?;
                Some((metadata.modified().ok()?, metadata.len(), entry.path()))
            })
            .collect();
        files.sort();
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

#[cfg(test)]
mod tests {
    use super::Store;
    use std::fs;

    #[test]
    fn the_oldest_go_first_and_the_youngest_never() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path());
        let past = std::time::SystemTime::now() - std::time::Duration::from_secs(1000);
        for age in 0..4 {
            let path = folder.path().join(format!("{age}.index"));
            fs::write(&path, [0; 100]).unwrap();
            let file = fs::File::options().write(true).open(&path).unwrap();
            file.set_modified(past - std::time::Duration::from_secs(age)).unwrap();
        }
        fs::write(folder.path().join("other.seal"), [0; 1000]).unwrap();
        let left = || (0..4).filter(|age| folder.path().join(format!("{age}.index")).exists()).collect::<Vec<_>>();
        store.prune("index", 250);
        assert_eq!(left(), [0, 1]);
        store.prune("index", 0);
        assert_eq!(left(), [0]);
        assert!(folder.path().join("other.seal").exists());
    }
}
