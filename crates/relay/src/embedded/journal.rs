//! The file that keeps events over a restart: one event a line, only ever appended to.
//!
//! Replacing, deleting and expiring need no lines of their own, because reading the same events in the same order does
//! the same again. Lines that mean nothing any more stay until they are more than half, and then the file is written
//! anew beside the old one and takes its place.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, BufWriter, Error, ErrorKind, Result, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FlockOperation, flock};

use super::event::{Event, Unverified};
use super::store::Store;

/// Below this many lines a rewrite saves nothing worth the work.
const SMALL: usize = 1000;

#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    file: File,
    lines: usize,
    /// Whether the last line was not written to its end.
    is_torn: bool,
    /// While the file is rewritten: what came in the meantime.
    meanwhile: Option<Vec<Arc<Event>>>,
}

impl Journal {
    /// Opens or creates the file and reads its events into the store. Lines that cannot be read are passed over: the
    /// last one may be torn when a process was killed while writing.
    pub(super) fn open(path: &Path, store: &mut Store, now: u64) -> Result<Self> {
        let file = open_private(OpenOptions::new().read(true).append(true).create(true), path)?;
        let mut journal = Self { path: path.to_owned(), file, lines: 0, is_torn: false, meanwhile: None };
        let mut reader = BufReader::new(journal.file.try_clone()?);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line)? > 0 {
            journal.lines += 1;
            journal.is_torn = line.last() != Some(&b'\n');
            replay(&line, store);
            line.clear();
        }
        // Only now, because what has expired may have replaced something that must not come back.
        store.sweep(now, usize::MAX);
        if journal.is_mostly_dead(store.len()) {
            let written = journal.begin_compaction().write(&store.all());
            journal.end_compaction(written);
        }
        Ok(journal)
    }

    /// Hands one event to the system before it counts as stored.
    pub(super) fn append(&mut self, event: &Arc<Event>) -> Result<()> {
        let mut line = String::with_capacity(event.text.len() + 2);
        if self.is_torn {
            line.push('\n');
        }
        line.push_str(&event.text);
        line.push('\n');
        self.is_torn = true;
        self.file.write_all(line.as_bytes())?;
        self.is_torn = false;
        self.lines += 1;
        if let Some(meanwhile) = &mut self.meanwhile {
            meanwhile.push(event.clone());
        }
        Ok(())
    }

    pub(super) fn is_mostly_dead(&self, live: usize) -> bool {
        self.meanwhile.is_none() && self.lines > SMALL && self.lines - live.min(self.lines) > self.lines / 2
    }

    /// From here until [`end_compaction`](Self::end_compaction) new events go to both files.
    pub(super) fn begin_compaction(&mut self) -> Draft {
        self.meanwhile = Some(Vec::new());
        let mut name = self.path.as_os_str().to_owned();
        name.push(".new");
        Draft { path: name.into() }
    }

    /// Puts the new file in the place of the old one, or keeps the old one if anything went wrong.
    pub(super) fn end_compaction(&mut self, written: Result<Written>) {
        let meanwhile = self.meanwhile.take().unwrap_or_default();
        let replaced = written.and_then(|mut written| {
            for event in &meanwhile {
                written.file.write_all(event.text.as_bytes())?;
                written.file.write_all(b"\n")?;
            }
            std::fs::rename(&written.path, &self.path)?;
            Ok(written)
        });
        // Failing costs nothing but disk space, and the next attempt is not far.
        if let Ok(written) = replaced {
            self.lines = written.lines + meanwhile.len();
            self.is_torn = false;
            self.file = written.file;
        }
    }

    /// Nobody is left to be told of an error when this is called.
    pub(super) fn flush(&mut self) {
        let _ = self.file.sync_data();
    }
}

fn replay(line: &[u8], store: &mut Store) {
    let Ok(text) = std::str::from_utf8(line) else { return };
    let Ok(event) = Unverified::parse(text.trim_end()) else { return };
    let Ok(event) = event.verify_id() else { return };
    if store.check(&event).is_ok() {
        store.insert(&Arc::new(event));
    }
}

/// A new file before it is written.
#[derive(Debug)]
pub(super) struct Draft {
    path: PathBuf,
}

/// A new file that has not yet taken the old one's place.
#[derive(Debug)]
pub(super) struct Written {
    path: PathBuf,
    file: File,
    lines: usize,
}

impl Draft {
    pub(super) fn write(self, events: &[Arc<Event>]) -> Result<Written> {
        // One may be left from a process that was killed while rewriting.
        let _ = std::fs::remove_file(&self.path);
        let file = open_private(OpenOptions::new().read(true).append(true).create_new(true), &self.path)?;
        let mut writer = BufWriter::new(file);
        for event in events {
            writer.write_all(event.text.as_bytes())?;
            writer.write_all(b"\n")?;
        }
        let file = writer.into_inner().map_err(std::io::IntoInnerError::into_error)?;
        file.sync_data()?;
        Ok(Written { path: self.path, file, lines: events.len() })
    }
}

/// Opens a file for us alone: nobody else may read it, and no second relay may write to it.
fn open_private(options: &mut OpenOptions, path: &Path) -> Result<File> {
    let file = options.mode(0o600).open(path)?;
    file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|error| {
        if error == rustix::io::Errno::WOULDBLOCK {
            return Error::new(ErrorKind::ResourceBusy, "another relay uses this file");
        }
        error.into()
    })?;
    Ok(file)
}
