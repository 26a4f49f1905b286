//! Builds a cache from a folder of Markdown files.
//!
//! Everything is written into a folder beside the target, which then takes the target's place in one step: whoever looks sees the
//! old cache or the new one, whole. Documents that the old cache has already are not written again but linked. The old
//! folder goes only if there is nothing in it that is not part of a cache.

mod ignore;
mod place;
mod sources;

use crate::beneath::{Folder, Trouble};
use crate::cache::{MAX_DOCUMENT, Table};
use crate::digest;
use crate::document::Document;
use crate::error::{Error, Kind};
use crate::index::store::Store;
use crate::index::{Builder, Index};
use crate::manifest::{DOCUMENTS, Entry, INDEX, MANIFEST, Manifest, file_name};
use place::{Place, Unfinished};
use sources::Source;
use std::collections::HashSet;
use std::path::PathBuf;
use std::time::SystemTime;

pub(crate) use place::is_unfinished;

/// What to build, from what, and how.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The folder whose Markdown files are taken.
    pub sources: PathBuf,
    /// The folder that becomes the cache.
    pub cache: PathBuf,
    pub existing: Existing,
    pub ignore_files: IgnoreFiles,
    pub flush: Flush,
    /// Goes into the manifest and into no hash.
    pub created_at: SystemTime,
}

/// What to do with a cache that is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    Keep,
    Replace,
}

/// Whether `.gitignore` and `.ignore` files in the tree say what is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IgnoreFiles {
    Disregard,
    Respect,
}

/// When what was written is made to survive a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flush {
    /// Once, before the new cache takes its place.
    Once,
    /// When the system likes to.
    Never,
}

/// What a build is doing, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// So many files were found.
    Found(usize),
    /// The folder for the new cache is there, empty.
    Begun,
    /// So many documents are written.
    Written(usize),
    /// The manifest is written; nothing is missing.
    Complete,
    /// Everything is on disk.
    Flushed,
    /// The new cache is in its place.
    Placed,
    /// The old one is gone.
    Cleared,
}

/// What was built.
#[derive(Debug)]
pub struct Built {
    pub cache_version: String,
    pub documents: usize,
    /// Documents whose files were taken over from the old cache.
    pub reused: usize,
    /// What was left out because it is a link that leads nowhere or outside of the sources.
    pub skipped: Vec<String>,
    table: Table,
    index: Index,
}

impl Built {
    /// Keeps the index, so that the first query does not have to make it.
    pub fn store(&self, store: &Store) {
        store.save(&self.table, &self.index);
    }
}

/// Builds a cache. `observe` is told of each step.
pub fn build(plan: &Plan, observe: &mut dyn FnMut(Step)) -> Result<Built, Error> {
    let found = sources::find(&plan.sources, plan.ignore_files)?;
    observe(Step::Found(found.files.len()));
    let place = Place::open(&plan.cache, plan.existing)?;
    let unfinished = place.begin()?;
    observe(Step::Begun);
    let mut work = Work { unfinished: &unfinished, old: place.old_documents(), names: HashSet::new(), reused: 0 };
    let root = Folder::open(&plan.sources).map_err(|trouble| Error::io(plan.sources.display(), &trouble))?;
    let mut entries = Vec::with_capacity(found.files.len());
    let mut builder = Builder::default();
    for (done, source) in found.files.into_iter().enumerate() {
        let document = read(&root, &source)?;
        builder.add(&document.content);
        entries.push(work.write(document)?);
        observe(Step::Written(done + 1));
    }
    let reused = work.reused;
    let manifest = Manifest::new(entries, plan.created_at);
    unfinished.write(INDEX, &manifest.index_json())?;
    unfinished.write(MANIFEST, &manifest.to_json())?;
    observe(Step::Complete);
    if plan.flush == Flush::Once {
        unfinished.flush()?;
        observe(Step::Flushed);
    }
    let cache_version = manifest.cache_version.clone();
    let table = Table::of(manifest)?;
    place.take(unfinished, observe)?;
    let index = builder.finish(&table.fingerprint);
    Ok(Built { cache_version, documents: table.rows.len(), reused, skipped: found.skipped, table, index })
}

fn read(root: &Folder, source: &Source) -> Result<Document, Error> {
    let failed = |trouble: Trouble| Error::because(Kind::Io, format!("{}: {trouble}", source.path));
    let (folder, name) = source.read_from.rsplit_once('/').unwrap_or(("", &source.read_from));
    let bytes = root.folder(folder).and_then(|folder| folder.read(name, sources::MAX_SOURCE)).map_err(failed)?;
    let content = String::from_utf8(bytes)
        .map_err(|_| Error::because(Kind::Internal, format!("{}: it is not UTF-8", source.path)))?;
    Ok(Document::new(&source.path, content))
}

/// Documents on their way into the new cache.
struct Work<'a> {
    unfinished: &'a Unfinished,
    old: Option<Folder>,
    names: HashSet<String>,
    reused: usize,
}

impl Work<'_> {
    fn write(&mut self, document: Document) -> Result<Entry, Error> {
        let hash = digest::hash(document.content.as_bytes());
        let name = file_name(&hash, &document.id, |name| self.names.contains(name))
            .ok_or_else(|| Error::because(Kind::Internal, format!("{}: no name is left for it", document.id)))?;
        let bytes = document.to_json();
        let old = self.old.as_ref().filter(|old| old.read(&name, MAX_DOCUMENT).is_ok_and(|old| old == bytes));
        if old.is_some_and(|old| self.unfinished.link(old, &name)) {
            self.reused += 1;
        } else {
            self.unfinished.write_document(&name, &bytes)?;
        }
        let file = format!("{DOCUMENTS}/{name}");
        self.names.insert(name);
        Ok(Entry { id: document.id, version: document.version, file })
    }
}
