//! Files that tools may read: those below the folder that the operator has opened, and no others.
//!
//! Everything is opened one name at a time and no link is followed, so nothing that is swapped in meanwhile leads outside.

use crate::failure::Failure;
use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat};
use rustix::io::Errno;
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Component, Path};

/// All of a file. `path` is absolute, or counts from the folder.
pub(crate) fn read(folder: &Path, path: &str, limit: usize, pointer: &str) -> Result<Vec<u8>, Failure> {
    let outside =
        || Failure::denied("only files below the folder that the operator has opened may be read").at(pointer);
    let path = Path::new(path);
    let below = if path.is_absolute() { path.strip_prefix(folder).map_err(|_| outside())? } else { path };
    let mut names = Vec::new();
    for component in below.components() {
        match component {
            Component::Normal(name) => names.push(name),
            Component::CurDir => {}
            _ => return Err(outside()),
        }
    }
    let missing = || Failure::invalid("there is no such file; links are not followed").at(pointer);
    let (last, folders) = names.split_last().ok_or_else(missing)?;
    let failed = |errno: Errno| match errno {
        Errno::ACCESS => Failure::invalid("the file may not be read").at(pointer),
        _ => missing(),
    };
    let open = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut place: OwnedFd = openat(CWD, folder, open, Mode::empty())
        .map_err(|_| Failure::internal("the folder that the operator has opened is not there"))?;
    for name in folders {
        place = openat(&place, *name, open | OFlags::NOFOLLOW, Mode::empty()).map_err(failed)?;
    }
    // A pipe is opened without waiting for whoever writes into it.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = openat(&place, *last, flags, Mode::empty()).map_err(failed)?;
    if FileType::from_raw_mode(fstat(&file).map_err(failed)?.st_mode) != FileType::RegularFile {
        return Err(missing());
    }
    let mut bytes = Vec::new();
    // It may grow while it is read; the limit holds all the same.
    let read = File::from(file).take(limit as u64 + 1).read_to_end(&mut bytes);
    read.map_err(|error| Failure::internal(format!("the file cannot be read: {}", error.kind())))?;
    if bytes.len() > limit {
        return Err(Failure::invalid(format!("the file is larger than {limit} bytes")).at(pointer));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::read;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn nothing_outside_is_read() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("open");
        fs::create_dir_all(folder.join("deep")).unwrap();
        fs::write(place.path().join("secret"), "x").unwrap();
        fs::write(folder.join("deep/file"), "12345").unwrap();
        symlink("../secret", folder.join("link")).unwrap();
        symlink("..", folder.join("up")).unwrap();
        let whole = folder.join("deep/file").display().to_string();
        for path in ["deep/file", "./deep/./file", &whole] {
            assert_eq!(read(&folder, path, 5, "/path").unwrap(), b"12345", "{path}");
        }
        assert_eq!(read(&folder, "deep/file", 4, "/path").unwrap_err().reason, "invalid_input");
        let secret = place.path().join("secret").display().to_string();
        for path in ["../secret", "deep/../../secret", &secret, "/etc/passwd"] {
            assert_eq!(read(&folder, path, 9, "/path").unwrap_err().reason, "not_allowed", "{path}");
        }
        for path in ["link", "up/secret", "deep", "", "none", "deep/file/x"] {
            assert_eq!(read(&folder, path, 9, "/path").unwrap_err().reason, "invalid_input", "{path}");
        }
    }
}
