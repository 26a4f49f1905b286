//! A cache on disk: opened, its manifest read, its documents handed out only if they are what the manifest says.

use crate::beneath::{Folder, Stamp, Trouble};
use crate::digest::{self, Hash, Hasher};
use crate::document::Document;
use crate::error::{Error, Kind};
use crate::manifest::{DOCUMENTS, MANIFEST, Manifest, document_file};
use std::path::Path;

/// The largest manifest that is read: enough for a million documents.
pub(crate) const MAX_MANIFEST: u64 = 256 << 20;

/// The largest file of a document that is read.
pub(crate) const MAX_DOCUMENT: u64 = 256 << 20;

/// The documents of a cache, sorted by id.
#[derive(Debug)]
pub(crate) struct Table {
    /// As the manifest says it.
    pub(crate) declared_version: String,
    /// What the hash over the entries really is.
    pub(crate) cache_version: String,
    pub(crate) rows: Vec<Row>,
    /// A hash over ids and contents in which no list looks like another, unlike in `cache_version`.
    pub(crate) fingerprint: Hash,
}

/// One document as the manifest has it.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) id: Box<str>,
    pub(crate) version: Hash,
    /// The name of its file among the documents.
    pub(crate) file: Box<str>,
}

impl Table {
    pub(crate) fn of(manifest: Manifest) -> Result<Self, Error> {
        let Manifest { cache_version, build_config, mut documents, .. } = manifest;
        documents.sort_by(|left, right| left.id.cmp(&right.id));
        let computed = crate::manifest::cache_version(&build_config, &documents);
        let mut hasher = Hasher::new();
        let mut rows = Vec::with_capacity(documents.len());
        for entry in documents {
            let version = digest::read_version(&entry.version)
                .ok_or_else(|| Error::invalid(format!("`{}` has no usable hash", entry.id)))?;
            let file = document_file(&entry.file)
                .ok_or_else(|| Error::invalid(format!("`{}` is not in a file of the cache", entry.id)))?;
            hasher.add_piece(entry.id.as_bytes());
            hasher.add(&version);
            rows.push(Row { file: file.into(), id: entry.id.into_boxed_str(), version });
        }
        Ok(Self { declared_version: cache_version, cache_version: computed, rows, fingerprint: hasher.finish() })
    }

    /// The place of a document.
    pub(crate) fn find(&self, id: &str) -> Option<usize> {
        self.rows.binary_search_by(|row| (*row.id).cmp(id)).ok()
    }
}

/// Opens the folder of a cache that was named on the command line.
pub(crate) fn open(path: &Path) -> Result<Folder, Error> {
    Folder::open(path).map_err(|trouble| missing(&trouble, path.display()))
}

/// Opens the folder of a cache beneath a root. Names that could mean anything else are the names of no cache.
pub(crate) fn open_beneath(root: &Path, name: &str) -> Result<Folder, Error> {
    if name.contains("..") || name.starts_with(['/', '\\']) || name.contains('\0') {
        return Err(Error::because(Kind::CacheMissing, "the name leads outside of the root"));
    }
    // A root that is not there has no caches.
    let root = Folder::open(root).map_err(|trouble| missing(&trouble, "the root"))?;
    root.folder(name).map_err(|trouble| missing(&trouble, name))
}

fn missing(trouble: &Trouble, what: impl std::fmt::Display) -> Error {
    let kind = if matches!(trouble, Trouble::Io(_)) { Kind::Io } else { Kind::CacheMissing };
    Error::because(kind, format!("{what}: {trouble}"))
}

/// Something inside of the cache cannot be read.
pub(crate) fn damaged(trouble: &Trouble, what: impl std::fmt::Display) -> Error {
    let kind = if matches!(trouble, Trouble::Io(_)) { Kind::Io } else { Kind::CacheInvalid };
    Error::because(kind, format!("{what}: {trouble}"))
}

pub(crate) fn read_manifest(cache: &Folder) -> Result<Manifest, Error> {
    let bytes = cache.read(MANIFEST, MAX_MANIFEST).map_err(|trouble| damaged(&trouble, MANIFEST))?;
    Manifest::read(&bytes)
}

/// The folder with the documents; `None` when a cache without documents has none.
pub(crate) fn documents(cache: &Folder, table: &Table) -> Result<Option<Folder>, Error> {
    match cache.folder(DOCUMENTS) {
        Ok(folder) => Ok(Some(folder)),
        Err(_) if table.rows.is_empty() => Ok(None),
        Err(trouble) => Err(damaged(&trouble, DOCUMENTS)),
    }
}

/// Reads one document and makes sure that it is the right one.
pub(crate) fn read_document(documents: Option<&Folder>, row: &Row) -> Result<Document, Error> {
    let folder = documents.ok_or_else(|| Error::invalid(format!("{DOCUMENTS}: it is not there")))?;
    let bytes = folder.read(&row.file, MAX_DOCUMENT).map_err(|trouble| damaged(&trouble, &row.file))?;
    Document::read(&bytes, &row.id, &row.version)
        .map_err(|problem| Error::invalid(format!("{DOCUMENTS}/{}: {problem}", row.file)))
}

/// What the state of everything in a cache was at some moment, for telling whether anything has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seal {
    pub(crate) hash: Hash,
    /// When the youngest file last changed.
    pub(crate) youngest: i128,
}

/// Looks at every document, without reading any.
pub(crate) fn seal(documents: Option<&Folder>, table: &Table) -> Result<Seal, Error> {
    let mut hasher = Hasher::new();
    let mut youngest = i128::MIN;
    hasher.add(&table.fingerprint);
    for row in &table.rows {
        let folder = documents.ok_or_else(|| Error::invalid(format!("{DOCUMENTS}: it is not there")))?;
        let stamp: Stamp = folder.stamp(&*row.file).map_err(|trouble| damaged(&trouble, &row.file))?;
        youngest = youngest.max(stamp.changed_at());
        hasher.add_piece(row.file.as_bytes());
        hasher.add(&stamp.to_bytes());
    }
    Ok(Seal { hash: hasher.finish(), youngest })
}
