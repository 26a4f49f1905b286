//! Checks a whole cache: everything that its hashes promise, and nothing more in it than its manifest names.

use crate::beneath::{Folder, ItemKind, Items};
use crate::cache::{self, Row, Table};
use crate::digest;
use crate::error::{Error, Kind};
use crate::manifest::{DOCUMENTS, INDEX, MANIFEST, Manifest};
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::Path;

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    pub cache_version: String,
    pub document_count: u64,
    pub valid: bool,
    pub problems: Vec<Problem>,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    pub check: Check,
    pub file: String,
    pub message: String,
}

/// The checks, in the order in which they are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Check {
    /// The manifest can be read and lists every document once, in order.
    Manifest,
    /// `cache_version` is the hash over the documents.
    CacheVersion,
    /// `index.json` says the same as the manifest.
    Index,
    /// Every document is there and holds what its hash says, in the file that its hash names.
    Document,
    /// There is nothing else.
    Orphan,
}

/// Checks the cache in this folder. An error means that there is no cache to check.
pub fn verify(path: &Path) -> Result<Report, Error> {
    let cache = cache::open(path)?;
    let manifest = match cache::read_manifest(&cache) {
        Ok(manifest) => manifest,
        Err(error) if error.kind == Kind::CacheInvalid => return Ok(unreadable(error)),
        Err(error) => return Err(error),
    };
    let mut report = Report {
        cache_version: manifest.cache_version.clone(),
        document_count: manifest.document_count,
        valid: false,
        problems: Vec::new(),
    };
    report.manifest(&manifest);
    report.index(&cache, &manifest);
    match Table::of(manifest) {
        Ok(table) => report.documents(&cache, &table)?,
        Err(error) => report.add(Check::Manifest, MANIFEST, reason(error)),
    }
    report.valid = report.problems.is_empty();
    Ok(report)
}

/// The detail of an error without the file, which stands beside it.
fn reason(error: Error) -> String {
    let detail = error.detail.unwrap_or_default();
    detail.split_once(": ").map_or(detail.clone(), |(_, reason)| reason.to_owned())
}

fn unreadable(error: Error) -> Report {
    let message = reason(error);
    let problem = Problem { check: Check::Manifest, file: MANIFEST.to_owned(), message };
    Report { cache_version: String::new(), document_count: 0, valid: false, problems: vec![problem] }
}

impl Report {
    fn add(&mut self, check: Check, file: &str, message: impl Into<String>) {
        self.problems.push(Problem { check, file: file.to_owned(), message: message.into() });
    }

    fn manifest(&mut self, manifest: &Manifest) {
        let count = manifest.documents.len();
        if manifest.document_count != count as u64 {
            let message = format!("document_count is {}, but {count} are listed", manifest.document_count);
            self.add(Check::Manifest, MANIFEST, message);
        }
        if !manifest.documents.is_sorted_by(|left, right| left.id < right.id) {
            self.add(Check::Manifest, MANIFEST, "the documents are not sorted by id, each once");
        }
        let mut files = BTreeSet::new();
        for entry in &manifest.documents {
            if !files.insert(&entry.file) {
                self.add(Check::Manifest, &entry.file, "is the file of two documents");
            }
        }
        let computed = crate::manifest::cache_version(&manifest.build_config, &manifest.documents);
        if computed != manifest.cache_version {
            self.add(Check::CacheVersion, MANIFEST, format!("the hash over the documents is {computed}"));
        }
    }

    fn index(&mut self, cache: &Folder, manifest: &Manifest) {
        match cache.read(INDEX, cache::MAX_MANIFEST) {
            Ok(bytes) if bytes == manifest.index_json() => {}
            Ok(_) => self.add(Check::Index, INDEX, "does not say the same as the manifest"),
            Err(trouble) => self.add(Check::Index, INDEX, trouble.to_string()),
        }
    }

    fn documents(&mut self, cache: &Folder, table: &Table) -> Result<(), Error> {
        let failed = |trouble: &_| cache::damaged(trouble, DOCUMENTS);
        let documents = match cache::documents(cache, table) {
            Err(error) if error.kind == Kind::CacheInvalid => {
                self.add(Check::Document, DOCUMENTS, reason(error));
                return Ok(());
            }
            other => other?,
        };
        for row in &table.rows {
            match cache::read_document(documents.as_ref(), row) {
                Ok(_) if is_named_by_content(row) => {}
                Ok(_) => self.add(Check::Document, &row.file, "is not named by the hash of its content"),
                Err(error) => self.add(Check::Document, &row.file, reason(error)),
            }
        }
        let known: BTreeSet<&str> = table.rows.iter().map(|row| &*row.file).collect();
        let items = match &documents {
            Some(folder) => folder.items().map_err(|trouble| failed(&trouble))?,
            None => Items::default(),
        };
        for item in items.named.iter().filter(|item| !known.contains(item.name.as_str())) {
            self.add(Check::Orphan, &format!("{DOCUMENTS}/{}", item.name), "belongs to no document");
        }
        let top = cache.items().map_err(|trouble| failed(&trouble))?;
        for item in &top.named {
            let wanted = match item.name.as_str() {
                MANIFEST | INDEX => ItemKind::File,
                DOCUMENTS => ItemKind::Folder,
                _ => {
                    self.add(Check::Orphan, &item.name, "does not belong to a cache");
                    continue;
                }
            };
            if item.kind != wanted {
                self.add(Check::Orphan, &item.name, "is not the kind of file it should be");
            }
        }
        if !items.unnamed.is_empty() || !top.unnamed.is_empty() {
            self.add(Check::Orphan, DOCUMENTS, "there are files whose names are not UTF-8");
        }
        Ok(())
    }
}

fn is_named_by_content(row: &Row) -> bool {
    let stem = row.file.strip_suffix(".json").unwrap_or_default();
    let content = digest::hex(&row.version);
    match stem.split_once('-') {
        None => stem == &content[..12],
        Some((short, id)) => short == &content[..12] && id == &digest::hex(&digest::hash(row.id.as_bytes()))[..8],
    }
}
