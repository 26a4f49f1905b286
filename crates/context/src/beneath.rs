//! Files beneath a folder, and nothing else.
//!
//! Everything is opened relative to an open folder, one name at a time, and no link is followed: a name, a manifest or a
//! link that somebody swaps in while we read cannot lead outside. What is read must be a regular file, opened without
//! waiting, so that a pipe cannot hold us.

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, fstat, openat, statat};
use rustix::io::Errno;
use rustix::path::Arg;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

/// An open folder.
#[derive(Debug)]
pub(crate) struct Folder(OwnedFd);

/// Why something beneath a folder cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Trouble {
    #[error("it is not there")]
    Missing,
    /// A link, or not the kind of file that is wanted.
    #[error("it is a link, or not the kind of file that is wanted")]
    Unsuitable,
    #[error("it is larger than {0} bytes")]
    TooLarge(u64),
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl From<Errno> for Trouble {
    fn from(errno: Errno) -> Self {
        match errno {
            // A name that no file can have is that of a file that is not there.
            Errno::NOENT | Errno::NAMETOOLONG | Errno::INVAL => Trouble::Missing,
            Errno::LOOP | Errno::NOTDIR | Errno::ISDIR | Errno::NXIO | Errno::MLINK => Trouble::Unsuitable,
            other => Trouble::Io(other.into()),
        }
    }
}

/// What tells one state of a file from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    #[allow(clippy::unnecessary_cast, clippy::cast_lossless, reason = "the widths differ between systems")]
    fn of(stat: &Stat) -> Self {
        Self {
            device: stat.st_dev as u64,
            inode: stat.st_ino as u64,
            size: stat.st_size as u64,
            modified: (stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            changed: (stat.st_ctime as i64, stat.st_ctime_nsec as i64),
        }
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Which file it is, whatever its state.
    pub(crate) fn identity(&self) -> (u64, u64) {
        (self.device, self.inode)
    }

    /// When the file last changed in any way, in nanoseconds since 1970.
    pub(crate) fn changed_at(&self) -> i128 {
        i128::from(self.changed.0) * 1_000_000_000 + i128::from(self.changed.1)
    }

    pub(crate) fn to_bytes(self) -> [u8; 56] {
        let (modified, changed) = (self.modified, self.changed);
        let numbers =
            [self.device as i64, self.inode as i64, self.size as i64, modified.0, modified.1, changed.0, changed.1];
        let mut bytes = [0; 56];
        for (place, number) in bytes.chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }
}

/// What is in a folder.
#[derive(Debug, Default)]
pub(crate) struct Items {
    /// Sorted by name in byte order.
    pub(crate) named: Vec<Item>,
    /// Those whose names are not UTF-8.
    pub(crate) unnamed: Vec<(Vec<u8>, ItemKind)>,
}

/// One name in a folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Item {
    pub(crate) name: String,
    pub(crate) kind: ItemKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ItemKind {
    Folder,
    File,
    Link,
    Other,
}

impl ItemKind {
    fn of(kind: FileType) -> Self {
        match kind {
            FileType::Directory => Self::Folder,
            FileType::RegularFile => Self::File,
            FileType::Symlink => Self::Link,
            _ => Self::Other,
        }
    }
}

impl Folder {
    const FLAGS: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

    /// A folder that its owner named: the path is taken as it is, links included.
    pub(crate) fn open(path: &Path) -> Result<Self, Trouble> {
        Ok(Self(openat(CWD, path, Self::FLAGS, Mode::empty())?))
    }

    /// A folder beneath this one. The names are separated by slashes; empty ones and `.` stand for the folder itself.
    pub(crate) fn folder(&self, path: &str) -> Result<Self, Trouble> {
        let mut found: Option<Self> = None;
        for name in path.split('/').filter(|name| !name.is_empty() && *name != ".") {
            if name == ".." {
                return Err(Trouble::Unsuitable);
            }
            found = Some(found.as_ref().unwrap_or(self).child(name)?);
        }
        match found {
            Some(folder) => Ok(folder),
            None => Ok(Self(self.0.try_clone()?)),
        }
    }

    /// A folder directly in this one, by a name that was found in it.
    pub(crate) fn child(&self, name: impl Arg) -> Result<Self, Trouble> {
        Ok(Self(openat(&self.0, name, Self::FLAGS | OFlags::NOFOLLOW, Mode::empty())?))
    }

    /// A regular file directly in this folder.
    pub(crate) fn file(&self, name: &str) -> Result<File, Trouble> {
        if name.contains('/') || name == ".." || name == "." {
            return Err(Trouble::Unsuitable);
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = openat(&self.0, name, flags, Mode::empty())?;
        match FileType::from_raw_mode(fstat(&file)?.st_mode) {
            FileType::RegularFile => Ok(File::from(file)),
            _ => Err(Trouble::Unsuitable),
        }
    }

    /// All of a regular file directly in this folder.
    pub(crate) fn read(&self, name: &str, limit: u64) -> Result<Vec<u8>, Trouble> {
        let file = self.file(name)?;
        let size = file.metadata()?.len();
        // It may grow while it is read; the limit holds all the same.
        let mut bytes = Vec::with_capacity(usize::try_from(size.min(limit)).unwrap_or(0) + 1);
        file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > limit {
            return Err(Trouble::TooLarge(limit));
        }
        Ok(bytes)
    }

    /// The state of a regular file directly in this folder.
    pub(crate) fn stamp(&self, name: impl Arg) -> Result<Stamp, Trouble> {
        let stat = statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Ok(Stamp::of(&stat)),
            _ => Err(Trouble::Unsuitable),
        }
    }

    /// The state of this folder.
    pub(crate) fn own_stamp(&self) -> Result<Stamp, Trouble> {
        Ok(Stamp::of(&fstat(&self.0)?))
    }

    /// Everything in this folder, sorted by name in byte order.
    pub(crate) fn items(&self) -> Result<Items, Trouble> {
        let mut items = Items::default();
        for entry in Dir::read_from(&self.0)? {
            let entry = entry?;
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            let kind = match entry.file_type() {
                FileType::Unknown => FileType::from_raw_mode(statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode),
                known => known,
            };
            let kind = ItemKind::of(kind);
            match name.to_str() {
                Ok(name) => items.named.push(Item { name: name.to_owned(), kind }),
                Err(_) => items.unnamed.push((name.to_bytes().to_vec(), kind)),
            }
        }
        items.named.sort_unstable();
        Ok(items)
    }
}

impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::{Folder, ItemKind, Trouble};
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_are_not_followed_and_nothing_above_is_opened() {
        let place = tempfile::tempdir().unwrap();
        let top = place.path();
        fs::create_dir_all(top.join("a/b")).unwrap();
        fs::write(top.join("secret"), "x").unwrap();
        fs::write(top.join("a/b/file"), "12345").unwrap();
        symlink("../secret", top.join("a/link")).unwrap();
        symlink("b", top.join("a/folder")).unwrap();
        let folder = Folder::open(&top.join("a")).unwrap();
        assert_eq!(folder.folder("b").unwrap().read("file", 5).unwrap(), b"12345");
        assert!(matches!(folder.folder("b").unwrap().read("file", 4), Err(Trouble::TooLarge(4))));
        for name in ["link", "..", ".", "b", "../secret", "b/file"] {
            assert!(matches!(folder.read(name, 9), Err(Trouble::Unsuitable)), "{name}");
        }
        for name in ["folder", "link", "..", "b/..", "b/../.."] {
            assert!(matches!(folder.folder(name), Err(Trouble::Unsuitable)), "{name}");
        }
        assert!(matches!(folder.read("", 9), Err(Trouble::Missing)));
        assert!(matches!(folder.folder("c"), Err(Trouble::Missing)));
        assert!(folder.stamp("link").is_err() && folder.stamp("b").is_err());
        let kinds: Vec<_> = folder.items().unwrap().named.into_iter().map(|item| (item.name, item.kind)).collect();
        assert_eq!(
            kinds,
            [("b".into(), ItemKind::Folder), ("folder".into(), ItemKind::Link), ("link".into(), ItemKind::Link)]
        );
    }
}
