//! What must survive the process: which requests have been run, and what was answered.
//!
//! An append-only file, one JSON object per line, written before what it permits happens: `begin` before the tool is
//! called, `done` with the signed answers before they are sent. A write is one system call, so a process that is killed loses
//! nothing; a line that is torn by a power cut is ignored. There are two generations of the file. The older one is dropped
//! when all its requests have left the window in which they would be taken, so that forgetting never lets one run twice.

use nostr::prelude::{Event, EventId, PublicKey, Timestamp};
use rialto_wire::request::{Address, Command};
use rialto_wire::service::{Way, Wire};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Answers are kept for repeats while a generation is smaller than this; after that, only that they were given.
const MAX_ANSWERS: u64 = 256 * 1024 * 1024;

/// Undelivered answers that are sent again after a restart: not those that everybody has given up.
const STILL_WANTED_SECS: u64 = 600;

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line<'a> {
    Begin {
        id: EventId,
        at: u64,
        customer: PublicKey,
        command: Option<Name>,
        sealed: bool,
        /// By direct message.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        message: bool,
    },
    Done {
        id: EventId,
        at: u64,
        #[serde(borrow, default)]
        answers: Vec<&'a RawValue>,
    },
    Sent {
        id: EventId,
    },
}

/// A command by its name.
#[derive(Debug, Clone, Copy)]
struct Name(Command);

impl Serialize for Name {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.name())
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let found = Command::ALL.into_iter().find(|command| command.name() == name);
        found.map(Name).ok_or_else(|| serde::de::Error::custom("no such command"))
    }
}

/// Half of an id is enough to tell requests apart, and half the memory.
fn key(id: &EventId) -> Key {
    let mut half = [0; 16];
    half.copy_from_slice(&id.as_bytes()[..16]);
    half
}

type Key = [u8; 16];

fn short(seconds: u64) -> u32 {
    u32::try_from(seconds).unwrap_or(u32::MAX)
}

/// Where a request's answers are: which generation, and the start of the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Running,
    /// `at` in 32 bits, which last until the year 2106.
    Done {
        offset: u64,
        at: u32,
    },
}

/// One file.
#[derive(Debug)]
struct Generation {
    file: File,
    length: u64,
    /// The last write failed, and what it left could not be removed.
    is_torn: bool,
    /// When its first request came.
    since: Timestamp,
    jobs: HashMap<Key, Place>,
}

/// The record of one key. Only one process may have it.
#[derive(Debug)]
pub struct Record {
    directory: PathBuf,
    _lock: File,
    young: Generation,
    old: Generation,
    keep: u64,
}

/// What a restarted provider has to see to.
#[derive(Debug, Default)]
pub struct Recovered {
    /// Requests that were being run when the process ended.
    pub unfinished: Vec<Unfinished>,
    /// Answers that no relay has acknowledged.
    pub undelivered: Vec<(EventId, Vec<Event>)>,
}

#[derive(Debug)]
pub struct Unfinished {
    pub address: Address,
    pub way: Way,
}

/// Whether a request has been here before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    New,
    Running,
    Done,
}

impl Record {
    /// Opens the record in `directory`. Requests are remembered for at least `keep` seconds.
    pub fn open(directory: &Path, keep: u64, now: Timestamp) -> io::Result<(Self, Recovered)> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        let lock = private(&directory.join("lock"))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)
            .map_err(|_| io::Error::new(io::ErrorKind::ResourceBusy, "another process serves with this key"))?;
        let mut tale = Tale::default();
        let old = Generation::read(&directory.join("jobs.old"), now, &mut tale)?;
        let young = Generation::read(&directory.join("jobs"), now, &mut tale)?;
        let record = Self { directory: directory.to_owned(), _lock: lock, young, old, keep };
        let recovered = record.recovered(tale, now);
        Ok((record, recovered))
    }

    fn recovered(&self, tale: Tale, now: Timestamp) -> Recovered {
        let unfinished = tale.begun.into_values().collect();
        let is_wanted = |at: u64| at.saturating_add(STILL_WANTED_SECS) > now.as_secs();
        let unsent = tale.unsent.into_iter().filter(|(_, at)| is_wanted(*at));
        let undelivered = unsent.filter_map(|(id, _)| Some((id, self.answers(&id)?))).collect();
        Recovered { unfinished, undelivered }
    }

    pub fn known(&self, id: &EventId) -> Known {
        match self.place(id) {
            None => Known::New,
            Some((_, Place::Running)) => Known::Running,
            Some((_, Place::Done { .. })) => Known::Done,
        }
    }

    fn place(&self, id: &EventId) -> Option<(&Generation, Place)> {
        let find = |generation: &'_ Generation| generation.jobs.get(&key(id)).copied();
        find(&self.young).map(|place| (&self.young, place)).or_else(|| find(&self.old).map(|place| (&self.old, place)))
    }

    /// Notes that a request is about to be run.
    pub fn begin(&mut self, address: &Address, way: Way, now: Timestamp) -> io::Result<()> {
        self.turn(now);
        let (id, customer) = (address.request, address.customer);
        let command = address.command.map(Name);
        let (sealed, message) = (way.sealed, way.wire == Wire::Manifest);
        self.young.write(&Line::Begin { id, at: now.as_secs(), customer, command, sealed, message })?;
        self.young.jobs.insert(key(&id), Place::Running);
        Ok(())
    }

    /// Notes the answers to a request.
    pub fn finish(&mut self, id: &EventId, answers: &[Event], now: Timestamp) -> io::Result<()> {
        self.turn(now);
        let texts: Vec<Box<RawValue>> = if self.young.length < MAX_ANSWERS {
            answers.iter().filter_map(|event| RawValue::from_string(event.as_json()).ok()).collect()
        } else {
            Vec::new()
        };
        let offset = self.young.length;
        let answers = texts.iter().map(AsRef::as_ref).collect();
        self.young.write(&Line::Done { id: *id, at: now.as_secs(), answers })?;
        self.young.jobs.insert(key(id), Place::Done { offset, at: short(now.as_secs()) });
        Ok(())
    }

    /// Notes that enough relays have the answers.
    pub fn sent(&mut self, id: &EventId) -> io::Result<()> {
        self.young.write(&Line::Sent { id: *id })
    }

    /// When a request was answered.
    pub fn answered(&self, id: &EventId) -> Option<Timestamp> {
        let (_, Place::Done { at, .. }) = self.place(id)? else { return None };
        Some(Timestamp::from(u64::from(at)))
    }

    /// The answers that were given to a request, as they were signed.
    pub fn answers(&self, id: &EventId) -> Option<Vec<Event>> {
        let (generation, Place::Done { offset, .. }) = self.place(id)? else { return None };
        let mut line = Vec::new();
        let mut reader = BufReader::new(At { file: &generation.file, offset });
        reader.read_until(b'\n', &mut line).ok()?;
        let Line::Done { answers, .. } = serde_json::from_slice(&line).ok()? else { return None };
        let events: Vec<Event> = answers.iter().filter_map(|text| Event::from_json(text.get()).ok()).collect();
        (!events.is_empty()).then_some(events)
    }

    /// How many requests are remembered.
    pub fn len(&self) -> usize {
        self.young.jobs.len() + self.old.jobs.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Begins a new generation once everything in the older one may be forgotten.
    fn turn(&mut self, now: Timestamp) {
        let is_due = now.as_secs() >= self.young.since.as_secs().saturating_add(self.keep);
        // If it fails, the generation grows until it does not: forgetting later does no harm.
        if is_due
            && !self.young.jobs.is_empty()
            && let Ok(file) = self.fresh()
        {
            let fresh = Generation { file, length: 0, is_torn: false, since: now, jobs: HashMap::new() };
            self.old = std::mem::replace(&mut self.young, fresh);
        }
    }

    /// Puts an empty file in the place of the younger one, and that in the place of the older one.
    fn fresh(&self) -> io::Result<File> {
        let [current, before, next] = ["jobs", "jobs.old", "jobs.new"].map(|name| self.directory.join(name));
        let file = private(&next)?;
        file.set_len(0)?;
        match fs::rename(&current, &before) {
            // An earlier try came this far.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            renamed => renamed?,
        }
        fs::rename(&next, &current)?;
        Ok(file)
    }
}

impl Generation {
    fn read(path: &Path, now: Timestamp, tale: &mut Tale) -> io::Result<Self> {
        let file = private(path)?;
        let mut generation = Self { file, length: 0, is_torn: false, since: now, jobs: HashMap::new() };
        let mut reader = BufReader::new(At { file: &generation.file, offset: 0 });
        let mut line = Vec::new();
        let mut offset = 0;
        let mut first = None;
        loop {
            line.clear();
            let read = reader.read_until(b'\n', &mut line)? as u64;
            if read == 0 {
                break;
            }
            // A line that was torn says nothing; one after it begins anew.
            if let Ok(told) = serde_json::from_slice::<Line<'_>>(&line) {
                first = first.or(told.at());
                told.tell(offset, &mut generation.jobs, tale);
            }
            offset += read;
        }
        let is_torn = offset > 0 && line_end(&generation.file, offset)? != b'\n';
        generation.length = offset;
        generation.since = first.map_or(now, Timestamp::from);
        if is_torn {
            generation.append(b"\n")?;
        }
        Ok(generation)
    }

    fn write(&mut self, line: &Line<'_>) -> io::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        self.append(&text)
    }

    /// All of it or nothing: half a line would swallow the next one, and with it the memory that a request was run.
    fn append(&mut self, text: &[u8]) -> io::Result<()> {
        if self.is_torn {
            self.file.set_len(self.length)?;
            self.is_torn = false;
        }
        if let Err(error) = (&self.file).write_all(text) {
            self.is_torn = self.file.set_len(self.length).is_err();
            return Err(error);
        }
        self.length += text.len() as u64;
        Ok(())
    }
}

fn line_end(file: &File, length: u64) -> io::Result<u8> {
    let mut last = [0];
    file.read_exact_at(&mut last, length - 1)?;
    Ok(last[0])
}

/// A file that only its owner can read, opened for appending.
fn private(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)
}

/// Reads a file from some place on, whatever its cursor is.
struct At<'a> {
    file: &'a File,
    offset: u64,
}

impl io::Read for At<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buffer, self.offset)?;
        self.offset += read as u64;
        Ok(read)
    }
}

/// What the lines tell, once all are read.
#[derive(Debug, Default)]
struct Tale {
    begun: HashMap<Key, Unfinished>,
    unsent: HashMap<EventId, u64>,
}

impl Line<'_> {
    fn at(&self) -> Option<u64> {
        match self {
            Line::Begin { at, .. } | Line::Done { at, .. } => Some(*at),
            Line::Sent { .. } => None,
        }
    }

    fn tell(self, offset: u64, jobs: &mut HashMap<Key, Place>, tale: &mut Tale) {
        match self {
            Line::Begin { id, customer, command, sealed, message, .. } => {
                jobs.insert(key(&id), Place::Running);
                let address = Address { request: id, customer, command: command.map(|name| name.0) };
                let way = Way { wire: if message { Wire::Manifest } else { Wire::Dvmcp }, sealed };
                tale.begun.insert(key(&id), Unfinished { address, way });
            }
            Line::Done { id, at, .. } => {
                jobs.insert(key(&id), Place::Done { offset, at: short(at) });
                tale.begun.remove(&key(&id));
                tale.unsent.insert(id, at);
            }
            Line::Sent { id } => {
                tale.unsent.remove(&id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Known, Record};
    use nostr::prelude::{Event, EventId, Keys, Kind, Timestamp, UnsignedEvent};
    use rialto_relay::sign::sign;
    use rialto_wire::request::{Address, Command};
    use rialto_wire::service::Way;
    use std::io::Write;

    fn address(number: u8) -> Address {
        let request = EventId::from_byte_array([number; 32]);
        Address { request, customer: Keys::generate().public_key(), command: Some(Command::ExecuteTool) }
    }

    fn event() -> Event {
        let keys = Keys::generate();
        sign(&keys, UnsignedEvent::new(keys.public_key(), Timestamp::from(1), Kind::from(6910), [], "answer"))
    }

    #[test]
    fn what_was_noted_survives_whatever_was_torn() {
        let folder = tempfile::tempdir().unwrap();
        let now = Timestamp::from(1000);
        let (running, done, delivered) = (address(1), address(2), address(3));
        let answer = event();
        {
            let (mut record, recovered) = Record::open(folder.path(), 100, now).unwrap();
            assert!(recovered.unfinished.is_empty());
            assert!(Record::open(folder.path(), 100, now).is_err(), "one process at a time");
            for one in [&running, &done, &delivered] {
                record.begin(one, Way::PUBLIC, now).unwrap();
            }
            for one in [&done, &delivered] {
                record.finish(&one.request, std::slice::from_ref(&answer), now).unwrap();
            }
            record.sent(&delivered.request).unwrap();
            assert_eq!(record.answers(&done.request).unwrap(), std::slice::from_ref(&answer));
        }
        let mut file = std::fs::OpenOptions::new().append(true).open(folder.path().join("jobs")).unwrap();
        file.write_all(b"{\"begin\":{\"id\":\"00").unwrap();
        let (mut record, recovered) = Record::open(folder.path(), 100, now).unwrap();
        assert_eq!(recovered.unfinished.len(), 1);
        assert_eq!(recovered.unfinished[0].address, running);
        assert_eq!(recovered.undelivered.len(), 1);
        assert_eq!(recovered.undelivered[0].0, done.request);
        assert_eq!(record.known(&running.request), Known::Running);
        assert_eq!(record.known(&done.request), Known::Done);
        assert_eq!(record.known(&address(9).request), Known::New);
        // What is written after a torn line is not swallowed by it.
        record.finish(&running.request, std::slice::from_ref(&answer), now).unwrap();
        drop(record);
        let (record, recovered) = Record::open(folder.path(), 100, now).unwrap();
        assert!(recovered.unfinished.is_empty());
        assert_eq!(record.answers(&running.request).unwrap(), [answer]);
    }

    #[test]
    fn what_a_full_disk_left_of_a_line_does_not_swallow_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let now = Timestamp::from(1000);
        let (mut record, _) = Record::open(folder.path(), 100, now).unwrap();
        record.begin(&address(1), Way::PUBLIC, now).unwrap();
        // As a write leaves it that fails half way, if the rest cannot be removed.
        (&record.young.file).write_all(b"{\"begin\":{\"id\":\"00").unwrap();
        record.young.is_torn = true;
        record.begin(&address(2), Way::PUBLIC, now).unwrap();
        record.finish(&address(2).request, &[event()], now).unwrap();
        assert!(record.answers(&address(2).request).is_some(), "places are right");
        drop(record);
        let (record, recovered) = Record::open(folder.path(), 100, now).unwrap();
        assert_eq!(
            (record.known(&address(1).request), record.known(&address(2).request)),
            (Known::Running, Known::Done)
        );
        assert_eq!(recovered.unfinished.len(), 1);
    }

    #[test]
    fn a_generation_that_cannot_be_replaced_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let (mut record, _) = Record::open(folder.path(), 100, Timestamp::from(1000)).unwrap();
        record.begin(&address(1), Way::PUBLIC, Timestamp::from(1000)).unwrap();
        std::fs::create_dir(folder.path().join("jobs.new")).unwrap();
        record.begin(&address(2), Way::PUBLIC, Timestamp::from(1200)).unwrap();
        assert_eq!(record.known(&address(1).request), Known::Running);
        std::fs::remove_dir(folder.path().join("jobs.new")).unwrap();
        // And a try that was interrupted between its two steps is continued.
        std::fs::rename(folder.path().join("jobs"), folder.path().join("jobs.old")).unwrap();
        record.begin(&address(3), Way::PUBLIC, Timestamp::from(1300)).unwrap();
        drop(record);
        let (record, _) = Record::open(folder.path(), 100, Timestamp::from(1300)).unwrap();
        assert!([1, 2, 3].iter().all(|number| record.known(&address(*number).request) == Known::Running));
    }

    #[test]
    fn requests_are_forgotten_only_when_they_would_not_be_taken_any_more() {
        let folder = tempfile::tempdir().unwrap();
        let (mut record, _) = Record::open(folder.path(), 100, Timestamp::from(1000)).unwrap();
        record.begin(&address(1), Way::PUBLIC, Timestamp::from(1000)).unwrap();
        record.begin(&address(2), Way::PUBLIC, Timestamp::from(1099)).unwrap();
        record.begin(&address(3), Way::PUBLIC, Timestamp::from(1100)).unwrap();
        assert_eq!(record.known(&address(1).request), Known::Running, "one generation back");
        record.begin(&address(4), Way::PUBLIC, Timestamp::from(1199)).unwrap();
        assert_eq!(record.known(&address(2).request), Known::Running, "100 seconds after it came");
        record.begin(&address(5), Way::PUBLIC, Timestamp::from(1200)).unwrap();
        assert_eq!(record.known(&address(1).request), Known::New);
        assert_eq!(record.known(&address(3).request), Known::Running);
        assert_eq!(record.len(), 3);
    }
}
