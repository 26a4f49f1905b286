//! The place of a cache: what is there, the folder beside it in which a new one grows, and the step from one to the other.

use super::{Existing, Step};
use crate::beneath::{Folder, ItemKind, Trouble};
use crate::cache::MAX_MANIFEST;
use crate::digest;
use crate::error::{Error, Kind};
use crate::manifest::{DOCUMENTS, INDEX, MANIFEST, document_file};
use rustix::fs::{
    AtFlags, FlockOperation, Mode, OFlags, RenameFlags, flock, linkat, mkdirat, openat, renameat, renameat_with,
    syncfs, unlinkat,
};
use rustix::io::Errno;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::path::Path;

/// Stands in the name of a folder in which a cache grows, or an old one waits to be removed.
const MARK: &str = ".rialto-build-";

/// Whether a folder is one of those.
pub(crate) fn is_unfinished(name: &str) -> bool {
    name.starts_with('.') && name.contains(MARK)
}

/// Where a cache is or will be.
#[derive(Debug)]
pub(super) struct Place {
    above: Folder,
    name: String,
    existing: Existing,
    /// The cache that is there now.
    old: Option<Folder>,
}

fn failed(what: &str, error: impl Into<Trouble>) -> Error {
    Error::because(Kind::Io, format!("{what}: {}", error.into()))
}

impl Place {
    /// Looks at the target; nothing is changed but that the folders above it are made.
    pub(super) fn open(target: &Path, existing: Existing) -> Result<Self, Error> {
        let shown = target.display().to_string();
        let name = target.file_name().and_then(|name| name.to_str());
        let name =
            name.ok_or_else(|| Error::because(Kind::Io, format!("{shown}: it cannot be the name of a cache")))?;
        let parent = match target.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        std::fs::create_dir_all(parent).map_err(|error| Error::io(parent.display(), &error))?;
        let above = Folder::open(parent).map_err(|trouble| failed(&shown, trouble))?;
        let old = match above.folder(name) {
            Ok(folder) => Some(folder),
            Err(Trouble::Missing) => None,
            Err(trouble) => return Err(failed(&shown, trouble)),
        };
        if let Some(old) = &old {
            if existing == Existing::Keep {
                return Err(Error::because(Kind::Io, format!("{shown}: it is there already")));
            }
            // Nobody's files are lost because a path was mistyped.
            if let Some(why) = why_not_a_cache(old).map_err(|trouble| failed(&shown, trouble))? {
                return Err(Error::because(Kind::Io, format!("{shown}: it is not replaced, because {why}")));
            }
        }
        Ok(Self { above, name: name.to_owned(), existing, old })
    }

    pub(super) fn old_documents(&self) -> Option<Folder> {
        self.old.as_ref().and_then(|old| old.folder(DOCUMENTS).ok())
    }

    /// Makes the folder in which the new cache grows, after what interrupted builds have left is removed.
    pub(super) fn begin(&self) -> Result<Unfinished, Error> {
        let prefix = format!(".{}{MARK}", self.name);
        for item in self.above.items().map_err(|trouble| failed("looking for old builds", trouble))?.named {
            if item.kind == ItemKind::Folder && item.name.starts_with(&prefix) {
                self.clear(&item.name);
            }
        }
        // Before it is locked, another build may take it for a leftover.
        for _ in 0..8 {
            if let Some(unfinished) = self.make(&prefix)? {
                return Ok(unfinished);
            }
        }
        Err(Error::because(Kind::Io, "other builds of the same cache stand in the way"))
    }

    fn make(&self, prefix: &str) -> Result<Option<Unfinished>, Error> {
        let mut random = [0; 8];
        rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())
            .map_err(|errno| failed("random numbers", errno))?;
        let name = format!("{prefix}{}", digest::hex(&random));
        mkdirat(&self.above, &name, Mode::from_raw_mode(0o777)).map_err(|errno| failed(&name, errno))?;
        let above = self.above.folder("").map_err(|trouble| failed(&name, trouble))?;
        let Ok(folder) = above.folder(&name) else { return Ok(None) };
        // Held while we live.
        if flock(folder.as_fd(), FlockOperation::NonBlockingLockExclusive).is_err()
            || mkdirat(&folder, DOCUMENTS, Mode::from_raw_mode(0o777)).is_err()
        {
            return Ok(None);
        }
        let documents = folder.folder(DOCUMENTS).map_err(|trouble| failed(DOCUMENTS, trouble))?;
        Ok(Some(Unfinished { above, name, folder, documents, armed: true }))
    }

    /// Removes what an interrupted build has left, unless it is not interrupted.
    fn clear(&self, name: &str) {
        let Ok(folder) = self.above.folder(name) else { return };
        if flock(folder.as_fd(), FlockOperation::NonBlockingLockExclusive).is_ok() {
            remove(&self.above, name, &folder);
        }
    }

    /// Puts the new cache into its place and removes the old one.
    pub(super) fn take(self, mut unfinished: Unfinished, observe: &mut dyn FnMut(Step)) -> Result<(), Error> {
        let (above, new) = (&self.above, unfinished.name.as_str());
        let unplaced = |errno: Errno| match errno {
            Errno::EXIST => Error::because(Kind::Io, format!("{}: it is there already", self.name)),
            other => failed(&self.name, other),
        };
        let mut is_exchanged = self.old.is_some();
        if !is_exchanged {
            match renameat_with(above, new, above, &self.name, RenameFlags::NOREPLACE) {
                Err(Errno::INVAL | Errno::NOSYS) => renameat(above, new, above, &self.name).map_err(unplaced)?,
                // Another build was faster.
                Err(Errno::EXIST) if self.existing == Existing::Replace => is_exchanged = true,
                other => other.map_err(unplaced)?,
            }
        }
        if is_exchanged {
            self.exchange(new).map_err(unplaced)?;
            // It need not be what was there when we began.
            let why = match above.folder(new) {
                Ok(moved) => why_not_a_cache(&moved).map_err(|trouble| failed(&self.name, trouble))?,
                // A build that has begun meanwhile took it for a leftover, which it is.
                Err(Trouble::Missing) => None,
                Err(trouble) => Some(trouble.to_string()),
            };
            if let Some(why) = why {
                self.exchange(new).map_err(unplaced)?;
                return Err(Error::because(Kind::Io, format!("{}: it is not replaced, because {why}", self.name)));
            }
        }
        unfinished.armed = false;
        observe(Step::Placed);
        if is_exchanged {
            if let Ok(old) = above.folder(new) {
                remove(above, new, &old);
            }
            observe(Step::Cleared);
        }
        Ok(())
    }

    /// Exchanges what is in the place with the folder `new`.
    fn exchange(&self, new: &str) -> Result<(), Errno> {
        let above = &self.above;
        match renameat_with(above, new, above, &self.name, RenameFlags::EXCHANGE) {
            // A filesystem that cannot exchange two names: for a moment there is none.
            Err(Errno::INVAL | Errno::NOSYS) => {
                let aside = format!("{new}-old");
                renameat(above, &self.name, above, &aside)?;
                renameat(above, new, above, &self.name)?;
                renameat(above, &aside, above, new)
            }
            other => other,
        }
    }
}

fn is_document(name: &str) -> bool {
    document_file(&format!("{DOCUMENTS}/{name}")).is_some()
}

/// Says what is in a folder that a cache does not have; `None` if the folder is a cache, or empty.
fn why_not_a_cache(folder: &Folder) -> Result<Option<String>, Trouble> {
    let items = folder.items()?;
    if items.named.is_empty() && items.unnamed.is_empty() {
        return Ok(None);
    }
    for item in &items.named {
        let known = match item.name.as_str() {
            MANIFEST | INDEX => item.kind == ItemKind::File,
            DOCUMENTS => item.kind == ItemKind::Folder,
            _ => false,
        };
        if !known {
            return Ok(Some(format!("`{}` in it does not belong to a cache", item.name)));
        }
    }
    if let Ok(documents) = folder.folder(DOCUMENTS) {
        let documents = documents.items()?;
        let strange = documents.named.iter().find(|item| item.kind != ItemKind::File || !is_document(&item.name));
        if let Some(strange) = strange {
            return Ok(Some(format!("`{DOCUMENTS}/{}` in it does not belong to a cache", strange.name)));
        }
        if !documents.unnamed.is_empty() {
            return Ok(Some("there are files in it whose names are not UTF-8".to_owned()));
        }
    }
    #[derive(serde::Deserialize)]
    struct Mark {
        cache_version: String,
    }
    let manifest = folder.read(MANIFEST, MAX_MANIFEST).ok();
    let mark = manifest.and_then(|bytes| serde_json::from_slice::<Mark>(&bytes).ok());
    let is_cache = items.unnamed.is_empty() && mark.is_some_and(|mark| mark.cache_version.starts_with(digest::PREFIX));
    Ok((!is_cache).then(|| format!("it has no {MANIFEST} of a cache")))
}

/// Removes a cache, or what there is of one. Whatever else is in the folder stays, and the folder with it.
fn remove(above: &Folder, name: &str, folder: &Folder) {
    if let Ok(documents) = folder.folder(DOCUMENTS) {
        for item in documents.items().map(|items| items.named).unwrap_or_default() {
            if item.kind == ItemKind::File && is_document(&item.name) {
                let _ = unlinkat(&documents, &item.name, AtFlags::empty());
            }
        }
    }
    let _ = unlinkat(folder, DOCUMENTS, AtFlags::REMOVEDIR);
    for file in [INDEX, MANIFEST] {
        let _ = unlinkat(folder, file, AtFlags::empty());
    }
    let _ = unlinkat(above, name, AtFlags::REMOVEDIR);
}

/// The folder in which a cache grows; removed with what is in it unless it has taken its place.
#[derive(Debug)]
pub(super) struct Unfinished {
    above: Folder,
    name: String,
    folder: Folder,
    documents: Folder,
    armed: bool,
}

impl Unfinished {
    pub(super) fn write(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        write(&self.folder, name, bytes)
    }

    pub(super) fn write_document(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        write(&self.documents, name, bytes)
    }

    /// Takes a document over from the old cache; says whether that worked.
    pub(super) fn link(&self, old: &Folder, name: &str) -> bool {
        linkat(old, name, &self.documents, name, AtFlags::empty()).is_ok()
    }

    /// Once for all files; one by one it would take a thousand times as long.
    pub(super) fn flush(&self) -> Result<(), Error> {
        syncfs(&self.folder).map_err(|errno| failed("writing to disk", errno))
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if self.armed {
            remove(&self.above, &self.name, &self.folder);
        }
    }
}

fn write(folder: &Folder, name: &str, bytes: &[u8]) -> Result<(), Error> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(folder, name, flags, Mode::from_raw_mode(0o666)).map_err(|errno| failed(name, errno))?;
    File::from(file).write_all(bytes).map_err(|error| failed(name, error))
}
