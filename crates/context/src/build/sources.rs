//! Finds the files that become documents: every `.md` below a folder, hidden ones included.

use super::IgnoreFiles;
use super::ignore::Rules;
use crate::beneath::{Folder, ItemKind, Trouble};
use crate::document::id_of;
use crate::error::{Error, Kind};
use std::path::{Path, PathBuf};

/// The largest file that becomes a document. Escaped it may be six times as long, which a reader must still take.
pub(super) const MAX_SOURCE: u64 = 32 << 20;

/// Folders within folders; more is a loop of mounts or an attack.
const MAX_DEPTH: usize = 128;

const EXTENSION: &str = ".md";

/// A file that becomes a document.
#[derive(Debug)]
pub(super) struct Source {
    /// The path as found.
    pub(super) path: String,
    pub(super) id: String,
    /// The path to read: another one if the file is a link to a file of the tree.
    pub(super) read_from: String,
}

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Sorted by id.
    pub(super) files: Vec<Source>,
    pub(super) skipped: Vec<String>,
}

/// Finds all files. Two whose ids are the same are an error, and so is anything that cannot be looked into: a cache that lacks
/// documents without saying so would be worse than none.
pub(super) fn find(root: &Path, ignore_files: IgnoreFiles) -> Result<Found, Error> {
    let folder = Folder::open(root).map_err(|trouble| Error::io(root.display(), &trouble))?;
    let real_root = root.canonicalize().map_err(|error| Error::io(root.display(), &error))?;
    let mut walk = Walk { real_root, ignore_files, found: Found::default() };
    walk.folder(&folder, "", &mut Vec::new())?;
    let mut found = walk.found;
    found.files.sort_by(|left, right| left.id.cmp(&right.id));
    for pair in found.files.windows(2) {
        if pair[0].id == pair[1].id {
            let detail = format!("`{}` and `{}` have the same id", pair[0].path, pair[1].path);
            return Err(Error::because(Kind::CacheInvalid, detail));
        }
    }
    Ok(found)
}

struct Walk {
    real_root: PathBuf,
    ignore_files: IgnoreFiles,
    found: Found,
}

impl Walk {
    fn folder(&mut self, folder: &Folder, below: &str, rules: &mut Vec<Rules>) -> Result<(), Error> {
        let failed = |trouble: Trouble| Error::io(if below.is_empty() { "the sources" } else { below }, &trouble);
        if rules.len() > MAX_DEPTH {
            return Err(Error::because(Kind::Io, format!("{below}: more than {MAX_DEPTH} folders deep")));
        }
        let items = folder.items().map_err(failed)?;
        let own = if self.ignore_files == IgnoreFiles::Respect { Rules::of(folder, below) } else { Rules::default() };
        rules.push(own);
        let strange = items.unnamed.iter().find(|(name, kind)| {
            *kind == ItemKind::Folder || *kind == ItemKind::File && name.ends_with(EXTENSION.as_bytes())
        });
        if let Some((name, _)) = strange {
            let detail = format!("{below}{}: its name is not UTF-8", String::from_utf8_lossy(name));
            return Err(Error::because(Kind::Internal, detail));
        }
        for item in items.named {
            let path = format!("{below}{}", item.name);
            if Rules::ignore(rules, &path, item.kind == ItemKind::Folder) {
                continue;
            }
            match item.kind {
                ItemKind::Folder => {
                    // What git keeps is nobody's text.
                    if self.ignore_files == IgnoreFiles::Respect && item.name == ".git" {
                        continue;
                    }
                    let inner = folder.folder(&item.name).map_err(|trouble| Error::io(&path, &trouble))?;
                    self.folder(&inner, &format!("{path}/"), rules)?;
                }
                ItemKind::File if is_markdown(&item.name) => self.add(path.clone(), path),
                ItemKind::Link if is_markdown(&item.name) => match self.inside(&path) {
                    Some(real) => self.add(path, real),
                    None => self.found.skipped.push(path),
                },
                _ => {}
            }
        }
        rules.pop();
        Ok(())
    }

    fn add(&mut self, path: String, read_from: String) {
        self.found.files.push(Source { id: id_of(&path), path, read_from });
    }

    /// Where a link leads, if that is a file of the tree. It is opened later without following anything.
    fn inside(&self, path: &str) -> Option<String> {
        let real = self.real_root.join(path).canonicalize().ok()?;
        let inside = real.strip_prefix(&self.real_root).ok()?;
        real.is_file().then(|| inside.to_str().map(ToOwned::to_owned)).flatten()
    }
}

/// A name that is only an extension has none.
fn is_markdown(name: &str) -> bool {
    name.ends_with(EXTENSION) && name.len() > EXTENSION.len()
}
