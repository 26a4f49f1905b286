//! A place of its own for each test, and short ways to build in it.

#![allow(dead_code, reason = "not every test uses all of it")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use rialto_context::build::{Built, Existing, Flush, IgnoreFiles, Plan, build};
use rialto_context::error::Error;
use rialto_context::reply::{Layout, json};
use rialto_context::{Checking, Interrupt, Library, Store};

/// A folder with sources and a root for caches, removed when dropped.
pub(crate) struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap() };
        fs::create_dir(place.path("sources")).unwrap();
        fs::create_dir(place.path("root")).unwrap();
        place
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.folder.path().join(below)
    }

    /// Writes a file, and the folders it is in.
    pub(crate) fn write(&self, below: &str, content: impl AsRef<[u8]>) -> &Self {
        let path = self.path(below);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    /// What builds `sources` into the cache `root/NAME`.
    pub(crate) fn plan(&self, name: &str) -> Plan {
        Plan {
            sources: self.path("sources"),
            cache: self.path("root").join(name),
            existing: Existing::Keep,
            ignore_files: IgnoreFiles::Disregard,
            flush: Flush::Never,
            created_at: UNIX_EPOCH + Duration::new(1_700_000_000, 5),
        }
    }

    pub(crate) fn build(&self, name: &str) -> Result<Built, Error> {
        build(&self.plan(name), &mut |_| {})
    }

    pub(crate) fn rebuild(&self, name: &str) -> Result<Built, Error> {
        build(&Plan { existing: Existing::Replace, ..self.plan(name) }, &mut |_| {})
    }

    /// A folder for indexes, with a key that is beside it.
    pub(crate) fn store(&self, name: &str) -> Option<Store> {
        Store::open(&self.path(name), &self.path("key"))
    }

    pub(crate) fn library(&self) -> Library {
        Library::new(&self.path("root"), None, Checking::Used)
    }

    /// What `context.resolve` says, without a newline, or its error code.
    pub(crate) fn resolve(&self, name: &str, query: &str, budget: i64) -> Result<String, &'static str> {
        resolve(&self.library(), name, query, budget)
    }
}

pub(crate) fn resolve(library: &Library, name: &str, query: &str, budget: i64) -> Result<String, &'static str> {
    let resolution = library.resolve(name, query, budget, &Interrupt::default());
    resolution.map(|resolution| json(&resolution, Layout::Compact).unwrap()).map_err(|error| error.kind.code())
}

/// Every file below a folder with its content, sorted.
pub(crate) fn snapshot(folder: &Path) -> Vec<(String, Vec<u8>)> {
    fn walk(top: &Path, folder: &Path, found: &mut Vec<(String, Vec<u8>)>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.is_symlink() {
                walk(top, &path, found);
            } else {
                let name = path.strip_prefix(top).unwrap().to_str().unwrap().to_owned();
                found.push((name, fs::read(&path).unwrap_or_default()));
            }
        }
    }
    let mut found = Vec::new();
    walk(folder, folder, &mut found);
    found.sort();
    found
}
