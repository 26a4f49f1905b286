//! Files that hold secrets: whole or not there at all, and for their owner alone.

use crate::failure::Failure;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// No file of this kind is longer.
const MAX_FILE: u64 = 16 * 1024;

/// Makes a directory that is closed to others.
pub(super) fn make_directory(path: &Path) -> Result<(), Failure> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|error| Failure::internal(format!("cannot make `{}`: {error}", path.display())))
}

/// Reads a file, unless others can read it too. Its content appears in no message.
pub(super) fn read(path: &Path) -> Result<String, Failure> {
    let name = path.display();
    let failed = |error: std::io::Error| Failure::no_signer(format!("cannot read `{name}`: {error}"));
    let file = File::open(path).map_err(failed)?;
    let mode = file.metadata().map_err(failed)?.permissions().mode();
    if mode & 0o077 != 0 {
        return Err(Failure::no_signer(format!("others can read `{name}`; close it with: chmod 600 {name}")));
    }
    let mut text = String::new();
    file.take(MAX_FILE).read_to_string(&mut text).map_err(|_| Failure::no_signer(format!("`{name}` holds no text")))?;
    Ok(text)
}

/// Writes a file whole, and only then gives it its name.
pub(super) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    // A name that is no extension: what follows a dot may be part of the real name.
    let mut draft = path.as_os_str().to_owned();
    draft.push(format!(".new-{}", std::process::id()));
    let write = || {
        // A draft that was left behind may have been made with other permissions.
        let _ = fs::remove_file(&draft);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&draft, path)?;
        // The name is safe once the directory is.
        path.parent().map_or(Ok(()), |directory| File::open(directory)?.sync_all())
    };
    write().map_err(|error| {
        let _ = fs::remove_file(&draft);
        Failure::internal(format!("the key cannot be kept: {error}"))
    })
}

/// Moves a file into the folder of what was removed, in one step. One that is not there is no error.
pub(super) fn set_aside(path: &Path, folder: &Path) -> Result<(), Failure> {
    make_directory(folder)?;
    let Some(name) = path.file_name() else { return Ok(()) };
    gone(path, fs::rename(path, folder.join(name)))
}

/// Deletes a file. One that is not there is no error.
pub(super) fn erase(path: &Path) -> Result<(), Failure> {
    gone(path, fs::remove_file(path))
}

fn gone(path: &Path, outcome: std::io::Result<()>) -> Result<(), Failure> {
    match outcome {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Failure::internal(format!("cannot remove `{}`: {error}", path.display())))
        }
        _ => Ok(()),
    }
}
