//! What a cache says about itself, and which caches there are. Nothing is checked beyond what is said here.

use crate::beneath::{Folder, ItemKind, Trouble};
use crate::build;
use crate::cache::{self, MAX_MANIFEST};
use crate::error::{Error, Kind};
use crate::manifest::{DOCUMENTS, MANIFEST, document_file};
use crate::reply::{Inspection, Listed, Listing};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::path::Path;

/// `context.list_caches`: the folders directly beneath the root.
pub fn list(root: &Path) -> Result<Listing, Error> {
    let failed = |trouble: Trouble| Error::because(Kind::Io, format!("the root: {trouble}"));
    let folder = Folder::open(root).map_err(failed)?;
    let items = folder.items().map_err(failed)?;
    let mut caches = Vec::new();
    for item in items.named {
        if item.kind == ItemKind::Folder && !build::is_unfinished(&item.name) {
            let found = folder.child(&item.name).and_then(|cache| cache.stamp(MANIFEST));
            caches.push(Listed { path: item.name, has_manifest: found.is_ok() });
        }
    }
    // A name that is not UTF-8 cannot be asked for, but version 0 shows what can be shown of it.
    for (name, _) in items.unnamed.into_iter().filter(|(_, kind)| *kind == ItemKind::Folder) {
        let found = folder.child(&*name).and_then(|cache| cache.stamp(MANIFEST));
        caches.push(Listed { path: String::from_utf8_lossy(&name).into_owned(), has_manifest: found.is_ok() });
    }
    caches.sort_by(|left, right| left.path.cmp(&right.path));
    Ok(Listing { caches })
}

/// `context.inspect_cache`: what the manifest says, and the size of the files beside it.
pub fn inspect(root: &Path, name: &str) -> Result<Inspection, Error> {
    let cache = cache::open_beneath(root, name)?;
    let bytes = match cache.read(MANIFEST, MAX_MANIFEST) {
        Ok(bytes) => bytes,
        Err(Trouble::Io(error)) => return Err(Error::io(MANIFEST, &error)),
        Err(_) => return Ok(Inspection::default()),
    };
    let fields: BTreeMap<String, &RawValue> = serde_json::from_slice(&bytes).unwrap_or_default();
    let version = fields.get("cache_version").and_then(|value| serde_json::from_str::<String>(value.get()).ok());
    let count = fields.get("document_count").and_then(|value| serde_json::from_str::<u64>(value.get()).ok());
    let total = version.as_ref().and(count).and_then(|_| total_bytes(&cache).ok());
    Ok(Inspection {
        cache_version: version.unwrap_or_default(),
        document_count: count.unwrap_or_default(),
        total_bytes: total.unwrap_or_default(),
        valid: total.is_some(),
    })
}

/// The sizes of the regular files directly in the cache.
fn total_bytes(cache: &Folder) -> Result<u64, Trouble> {
    let mut total = 0;
    let items = cache.items()?;
    for item in items.named.iter().filter(|item| item.kind == ItemKind::File) {
        total += cache.stamp(&item.name)?.size();
    }
    for (name, _) in items.unnamed.iter().filter(|(_, kind)| *kind == ItemKind::File) {
        total += cache.stamp(&**name)?.size();
    }
    Ok(total)
}

/// The command `inspect`: the manifest must be readable; counted are the documents, which must all be there.
pub fn inspect_folder(path: &Path) -> Result<Inspection, Error> {
    let cache = cache::open(path)?;
    let manifest = cache::read_manifest(&cache)?;
    let documents = cache.folder(DOCUMENTS);
    let mut total_bytes = 0;
    let mut valid = true;
    for entry in &manifest.documents {
        let stamp = match (document_file(&entry.file), &documents) {
            (Some(name), Ok(documents)) => documents.stamp(name).ok(),
            _ => None,
        };
        total_bytes += stamp.map_or(0, |stamp| stamp.size());
        valid &= stamp.is_some();
    }
    let document_count = manifest.document_count;
    Ok(Inspection { cache_version: manifest.cache_version, document_count, total_bytes, valid })
}
