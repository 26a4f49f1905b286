//! Replaces a file so that at every moment there is a whole one, and the old one is kept beside it.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::failure::Failure;

/// Symbolic links that are followed before we think that they go in circles, as the system does.
const MOST_LINKS: usize = 40;

/// Writes `new` to `path`, whose text was `old`. Returns where the old file is kept, if there was one.
pub(super) fn replace(path: &Path, old: Option<&str>, new: &str) -> Result<Option<PathBuf>, Failure> {
    let cannot = |error: io::Error| Failure::unexpected(format!("cannot write `{}`", path.display())).because(&error);
    let target = followed(path).map_err(cannot)?;
    let Some(folder) = target.parent() else { return Err(cannot(io::Error::other("it is a folder"))) };
    let Some(old) = old else {
        fs::create_dir_all(folder).map_err(cannot)?;
        put(&target, new, None).map_err(cannot)?;
        return Ok(None);
    };
    let permissions = fs::metadata(&target).map_err(cannot)?.permissions();
    if permissions.readonly() {
        // Renaming over it would work all the same, but whoever made it so meant it.
        return Err(Failure::config(format!("`{}` is read-only", path.display()))
            .code("read_only")
            .hint(format!("chmod u+w '{}'", target.display())));
    }
    let backup = keep(&target, SystemTime::now()).map_err(cannot)?;
    if fs::read(&target).map_err(cannot)? != old.as_bytes() {
        let _ = fs::remove_file(&backup);
        return Err(Failure::unexpected(format!("`{}` changed in the meantime", path.display())).hint("try again"));
    }
    put(&target, new, Some(permissions)).map_err(cannot)?;
    Ok(Some(backup))
}

/// The file that a path stands for, which need not exist: links are often made before what they lead to.
fn followed(path: &Path) -> io::Result<PathBuf> {
    let mut target = path.to_owned();
    for _ in 0..MOST_LINKS {
        match fs::read_link(&target) {
            Ok(next) => target = target.parent().unwrap_or(Path::new("/")).join(next),
            Err(_) => return Ok(target),
        }
    }
    Err(io::Error::other("too many symbolic links"))
}

/// Copies the file beside itself, with its permissions.
fn keep(target: &Path, now: SystemTime) -> io::Result<PathBuf> {
    let name = format!(".bak-{}", stamp(now));
    let mut number = 1;
    loop {
        let more = if number == 1 { String::new() } else { format!("-{number}") };
        let mut backup = target.as_os_str().to_owned();
        backup.push(format!("{name}{more}"));
        match OpenOptions::new().write(true).create_new(true).open(&backup) {
            Ok(_) => {
                fs::copy(target, &backup)?;
                return Ok(backup.into());
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(error),
        }
    }
}

/// Writes a temporary file and renames it, so that a crash leaves either the old or the new one.
fn put(target: &Path, text: &str, permissions: Option<fs::Permissions>) -> io::Result<()> {
    let mut name = target.as_os_str().to_owned();
    name.push(format!(".rialto-{}", std::process::id()));
    let temporary = PathBuf::from(name);
    let written = OpenOptions::new().write(true).create_new(true).open(&temporary).and_then(|mut file| {
        if let Some(permissions) = permissions {
            file.set_permissions(permissions)?;
        }
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&temporary, target)
    });
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// `YYYYMMDD-HHMMSS` in UTC.
fn stamp(now: SystemTime) -> String {
    let seconds = now.duration_since(UNIX_EPOCH).map_or(0, |passed| passed.as_secs());
    let (year, month, day) = date(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}{month:02}{day:02}-{hour:02}{minute:02}{second:02}")
}

/// The date of a day since 1970, by the rules of the Gregorian calendar.
fn date(mut day: u64) -> (u64, u64, u64) {
    let is_leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut year = 1970;
    loop {
        let length = if is_leap(year) { 366 } else { 365 };
        if day < length {
            break;
        }
        day -= length;
        year += 1;
    }
    let february = if is_leap(year) { 29 } else { 28 };
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if day < length {
            break;
        }
        day -= length;
        month += 1;
    }
    (year, month, day + 1)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::stamp;

    #[test]
    fn stamps_are_dates() {
        let cases = [
            (0, "19700101-000000"),
            (951_782_399, "20000228-235959"),
            (951_782_400, "20000229-000000"),
            (1_735_689_599, "20241231-235959"),
            (1_740_787_200, "20250301-000000"),
            (4_107_542_400, "21000301-000000"),
        ];
        for (seconds, expected) in cases {
            assert_eq!(stamp(UNIX_EPOCH + Duration::from_secs(seconds)), expected);
        }
    }
}
