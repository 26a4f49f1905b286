//! The files of the log. Lines go to `log.jsonl`; when that is full it becomes `log.1.jsonl`, the one before it
//! `log.2.jsonl`, and so on. The oldest is dropped, so that a log never fills a disk.
//!
//! Several processes write at once, and none waits for another: a line is one system call to whatever the file is called by
//! then, and only whoever turns the page takes a lock. A reader takes it too, while it opens the files, so that it sees each
//! of them once.

use rustix::fs::{FlockOperation, flock};
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// About ten thousand calls: enough to find what happened last week, and read in a blink.
const PAGE: u64 = 4 * 1024 * 1024;

/// Full pages that are kept.
const KEPT: usize = 4;

/// The files in one folder.
#[derive(Debug)]
pub(super) struct Pages {
    directory: PathBuf,
    current: PathBuf,
    limit: u64,
}

impl Pages {
    pub(super) fn new(directory: &Path) -> Self {
        Self { directory: directory.to_owned(), current: directory.join("log.jsonl"), limit: PAGE }
    }

    pub(super) fn current(&self) -> &Path {
        &self.current
    }

    /// The page before the current one is number 1.
    fn before(&self, number: usize) -> PathBuf {
        self.directory.join(format!("log.{number}.jsonl"))
    }

    /// Adds a line.
    pub(super) fn append(&self, line: &[u8]) -> io::Result<()> {
        let mut file = OpenOptions::new().create(true).read(true).append(true).mode(0o600).open(&self.current)?;
        let length = file.metadata()?.len();
        let mut text = Vec::with_capacity(line.len() + 2);
        if length > 0 {
            // A disk that was full may have left half a line, which must not spoil this one. Nor must one that somebody else is
            // just writing, of which the system may show half: then there will be an empty line, which readers pass over.
            let mut last = [b'\n'];
            file.read_exact_at(&mut last, length - 1)?;
            text.extend((last != *b"\n").then_some(b'\n'));
        }
        text.extend_from_slice(line);
        text.push(b'\n');
        file.write_all(&text)?;
        if length + text.len() as u64 >= self.limit {
            // The line is written. If the page cannot be turned now, whoever writes next tries again.
            let _ = self.turn();
        }
        Ok(())
    }

    /// Begins a new page, unless somebody else just did.
    fn turn(&self) -> io::Result<()> {
        let lock = self.lock_file()?;
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Ok(());
        }
        if self.current.metadata()?.len() < self.limit {
            return Ok(());
        }
        // Pages move up to the first gap: if this was interrupted once, nothing is dropped before its time.
        let end = (1..KEPT).find(|number| !self.before(*number).exists()).unwrap_or(KEPT);
        for number in (1..end).rev() {
            std::fs::rename(self.before(number), self.before(number + 1))?;
        }
        std::fs::rename(&self.current, self.before(1))
    }

    fn lock_file(&self) -> io::Result<File> {
        OpenOptions::new().create(true).append(true).mode(0o600).open(self.directory.join("log.lock"))
    }

    /// The pages, oldest first.
    pub(super) fn open(&self) -> io::Result<Vec<File>> {
        // Who may only read the folder reads without a lock.
        let lock = self.lock_file().ok();
        if let Some(lock) = &lock {
            flock(lock, FlockOperation::LockShared)?;
        }
        let paths = (1..=KEPT).rev().map(|number| self.before(number)).chain([self.current.clone()]);
        let mut pages = Vec::new();
        for path in paths {
            match File::open(path) {
                Ok(page) => pages.push(page),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(pages)
    }
}

#[cfg(test)]
mod tests {
    use super::{KEPT, PAGE, Pages};
    use std::collections::HashSet;
    use std::io::Read;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, Ordering};

    fn pages(directory: &Path, limit: u64) -> Pages {
        Pages { limit, ..Pages::new(directory) }
    }

    fn lines(pages: &Pages) -> Vec<String> {
        let mut lines = Vec::new();
        for mut page in pages.open().unwrap() {
            let mut text = String::new();
            page.read_to_string(&mut text).unwrap();
            // What is behind the last line break is just being written.
            let whole = text.rfind('\n').map_or(0, |end| end + 1);
            lines.extend(text[..whole].lines().filter(|line| !line.is_empty()).map(ToOwned::to_owned));
        }
        lines
    }

    fn files(directory: &Path) -> Vec<(String, u64, u32)> {
        let entries = std::fs::read_dir(directory).unwrap().map(Result::unwrap);
        let mut files: Vec<_> = entries
            .map(|entry| {
                let about = entry.metadata().unwrap();
                (entry.file_name().into_string().unwrap(), about.len(), about.permissions().mode() & 0o777)
            })
            .collect();
        files.sort();
        files
    }

    #[test]
    fn a_log_does_not_grow_for_ever_and_its_newest_lines_stay() {
        let home = tempfile::tempdir().unwrap();
        let log = pages(home.path(), 1000);
        // Ten lines of a hundred bytes are a page.
        let line = |number: usize| format!("{number:0>99}");
        for number in 0..1005 {
            log.append(line(number).as_bytes()).unwrap();
        }
        let expected: Vec<String> = (1000 - KEPT * 10..1005).map(line).collect();
        assert_eq!(lines(&log), expected);
        let files = files(home.path());
        let names: Vec<&str> = files.iter().map(|(name, ..)| name.as_str()).collect();
        assert_eq!(names, ["log.1.jsonl", "log.2.jsonl", "log.3.jsonl", "log.4.jsonl", "log.jsonl", "log.lock"]);
        assert!(files.iter().all(|(_, length, mode)| *length <= 1000 && *mode == 0o600), "{files:?}");
    }

    #[test]
    fn writers_at_once_lose_nothing_and_readers_see_every_line_once() {
        const WRITERS: usize = 8;
        const LINES: usize = 400;
        // All lines together are longer than two pages and shorter than four, so that none may be dropped.
        let limit = (WRITERS * LINES * 100 / 3) as u64;
        let home = tempfile::tempdir().unwrap();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let log = pages(home.path(), limit);
                let mut seen = 0;
                while !is_over.load(Ordering::Relaxed) {
                    let lines = lines(&log);
                    let different: HashSet<&String> = lines.iter().collect();
                    assert_eq!(different.len(), lines.len(), "no line twice");
                    assert!(lines.len() >= seen, "what was there is still there");
                    assert!(lines.iter().all(|line| line.len() == 99), "no line in pieces");
                    seen = lines.len();
                }
            });
            let writers: Vec<_> = (0..WRITERS)
                .map(|writer| {
                    let home = home.path();
                    scope.spawn(move || {
                        // Each has files of its own, as processes have.
                        let log = pages(home, limit);
                        for number in 0..LINES {
                            log.append(format!("{writer}-{number:0>97}").as_bytes()).unwrap();
                        }
                    })
                })
                .collect();
            writers.into_iter().for_each(|writer| writer.join().unwrap());
            is_over.store(true, Ordering::Relaxed);
            reader.join().unwrap();
        });
        let log = pages(home.path(), limit);
        // A page that could not be turned while somebody was reading is turned now.
        log.append(&[b'x'; 99]).unwrap();
        let lines = lines(&log);
        assert_eq!(lines.len(), WRITERS * LINES + 1);
        for writer in 0..WRITERS {
            let start = format!("{writer}-");
            let own: Vec<&String> = lines.iter().filter(|line| line.starts_with(&start)).collect();
            assert!(own.is_sorted() && own.len() == LINES, "in the order in which they were written");
        }
        assert!(home.path().join("log.1.jsonl").exists(), "a full page is turned");
        assert!(log.current.metadata().map_or(0, |file| file.len()) < limit, "and a new one begun");
    }

    #[test]
    fn half_a_line_spoils_no_other_and_a_gap_costs_no_page() {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("log.jsonl"), "whole\nhal").unwrap();
        std::fs::write(home.path().join("log.4.jsonl"), "oldest\n").unwrap();
        let log = pages(home.path(), 15);
        log.append(b"next").unwrap();
        assert_eq!(lines(&log), ["oldest", "whole", "hal", "next"]);
        assert_eq!(lines(&pages(home.path(), PAGE)).len(), 4);
        assert!(home.path().join("log.1.jsonl").exists());
    }
}
