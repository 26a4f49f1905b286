//! The ledger of one process: an SQLite file.
//!
//! One thread writes. Whatever waits when it begins goes into one transaction, so that the disk is asked once for many jobs.
//! The disk is waited for only if money is concerned (`synchronous = FULL`); everything else survives the end of the process,
//! which is what a crash usually is. Readers have a connection of their own, and see what was committed.

mod apply;
mod read;
mod schema;

use crate::job::{Id, Job, Outcome, Step};
use crate::ledger::{Account, Error, Horizon, Later, Ledger, Presence, Seen, Status};
use rusqlite::{Connection, OpenFlags};
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::oneshot;

/// The file, in the directory that a ledger is given.
pub const FILE: &str = "ledger.db";

/// Requests to the writer that may wait; whoever has more waits with them.
const QUEUE: usize = 1024;

/// Steps in one transaction.
const MAX_STEPS: usize = 4096;

/// What SQLite keeps in memory, in KiB (a negative number, as SQLite has it).
const CACHE_KIB: i64 = -64 * 1024;

/// How many pages of changes are kept beside the file before they are put into it. A page that changes often is then
/// written there once for many changes; the file beside grows to 16 MiB.
const CHECKPOINT_PAGES: i64 = 4096;

/// How long another program that has the file open for a moment (a backup) is waited for.
const BUSY: Duration = Duration::from_secs(10);

/// What the writer is asked for.
enum Task {
    Commit { steps: Vec<Step>, answer: Answer<Vec<Outcome>> },
    Sent { ids: Vec<Id>, answer: Answer<()> },
    Purge { horizon: Horizon, answer: Answer<bool> },
}

type Answer<T> = oneshot::Sender<Result<T, Error>>;

/// A ledger that is open. Only one process may have it.
#[derive(Debug)]
pub struct Sqlite {
    /// There until it is closed.
    tasks: Option<mpsc::SyncSender<Task>>,
    reader: Arc<Mutex<Connection>>,
    writer: Option<JoinHandle<()>>,
    _lock: File,
}

/// Whoever opens it next finds the writer gone, and everything that it was asked for done.
impl Drop for Sqlite {
    fn drop(&mut self) {
        self.tasks = None;
        if let Some(writer) = self.writer.take() {
            drop(writer.join());
        }
    }
}

impl Sqlite {
    /// Opens the ledger in `directory`; makes it if there is none.
    pub fn open(directory: &Path) -> Result<Self, Error> {
        let refused = |error: std::io::Error| Error::Broken(error.to_string());
        fs::DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(refused)?;
        let lock = private(&directory.join("lock")).map_err(refused)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|_| Error::InUse)?;
        let path = directory.join(FILE);
        // SQLite gives its other files the rights of this one.
        private(&path).map_err(refused)?;
        let mut writer = Connection::open(&path)?;
        prepare(&writer)?;
        schema::migrate(&mut writer)?;
        let reader = read_only(&path)?;
        let (tasks, waiting) = mpsc::sync_channel(QUEUE);
        let writing = std::thread::Builder::new().name("ledger".to_owned());
        let writer = writing.spawn(move || write(writer, &waiting)).map_err(refused)?;
        Ok(Self { tasks: Some(tasks), reader: Arc::new(Mutex::new(reader)), writer: Some(writer), _lock: lock })
    }

    /// Asks the writer.
    fn ask<T: Send + 'static>(&self, task: impl FnOnce(Answer<T>) -> Task + Send + 'static) -> Later<'_, T> {
        let tasks = self.tasks.clone();
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            let gone = || Error::Broken("the writer has stopped".to_owned());
            let tasks = tasks.ok_or_else(gone)?;
            match tasks.try_send(task(answer)) {
                Ok(()) => {}
                // It is full: we wait where waiting does no harm.
                Err(mpsc::TrySendError::Full(task)) => {
                    let sent = tokio::task::spawn_blocking(move || tasks.send(task)).await;
                    sent.map_err(|_| gone())?.map_err(|_| gone())?;
                }
                Err(mpsc::TrySendError::Disconnected(_)) => return Err(gone()),
            }
            answered.await.map_err(|_| gone())?
        })
    }

    /// Asks a reader.
    fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Later<'_, T> {
        let reader = self.reader.clone();
        Box::pin(async move {
            let reading = tokio::task::spawn_blocking(move || {
                let connection = reader.lock().unwrap_or_else(PoisonError::into_inner);
                read(&connection).map_err(Error::from)
            });
            reading.await.map_err(|error| Error::Broken(error.to_string()))?
        })
    }
}

/// Opens a ledger to look at it, while another process may use it.
pub fn read_only(path: &Path) -> Result<Connection, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY)?;
    Ok(connection)
}

/// For whoever only looks: the tables must be as we know them.
pub(crate) fn expect(connection: &Connection) -> Result<(), Error> {
    schema::expect(connection)
}

/// Where the ledger in a directory is.
pub fn file(directory: &Path) -> PathBuf {
    directory.join(FILE)
}

fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", "ON")?;
    // Ids are spread over all of the tables: with the pages of a large ledger at hand, it costs what a small one does.
    connection.pragma_update(None, "cache_size", CACHE_KIB)?;
    connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(())
}

pub(crate) fn private(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        Error::Broken(error.to_string())
    }
}

/// Works until nobody can ask any more.
fn write(mut connection: Connection, waiting: &mpsc::Receiver<Task>) {
    let mut is_full = true;
    while let Ok(first) = waiting.recv() {
        let mut tasks = vec![first];
        let mut steps = count(&tasks[0]);
        while steps < MAX_STEPS
            && let Ok(next) = waiting.try_recv()
        {
            steps += count(&next);
            tasks.push(next);
        }
        let wants_full = tasks
            .iter()
            .any(|task| matches!(task, Task::Commit { steps, .. } if steps.iter().any(|step| step.durable)));
        if wants_full != is_full {
            let level = if wants_full { "FULL" } else { "NORMAL" };
            // If it cannot be changed, the commit will tell.
            is_full = connection.pragma_update(None, "synchronous", level).map_or(is_full, |()| wants_full);
        }
        let mut perform = |tasks: &[Task]| {
            if wants_full == is_full {
                perform(&mut connection, tasks)
            } else {
                Err(Error::from(rusqlite::Error::InvalidQuery))
            }
        };
        match perform(&tasks) {
            Ok(done) => tasks.into_iter().zip(done).for_each(|(task, done)| answer(task, Ok(done))),
            // Nothing of it counts. One of them may be to blame; the others should not suffer for it.
            Err(_) if tasks.len() > 1 => {
                for task in tasks {
                    let alone = perform(std::slice::from_ref(&task));
                    let done = alone.and_then(|mut done| done.pop().ok_or(rusqlite::Error::InvalidQuery.into()));
                    answer(task, done);
                }
            }
            Err(error) => tasks.into_iter().for_each(|task| answer(task, Err(error.clone()))),
        }
    }
}

fn count(task: &Task) -> usize {
    match task {
        Task::Commit { steps, .. } => steps.len(),
        Task::Sent { ids, .. } => ids.len(),
        Task::Purge { .. } => 1,
    }
}

enum Done {
    Commit(Vec<Outcome>),
    Sent,
    Purge(bool),
}

/// All tasks in one transaction.
fn perform(connection: &mut Connection, tasks: &[Task]) -> Result<Vec<Done>, Error> {
    let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let mut done = Vec::with_capacity(tasks.len());
    for task in tasks {
        done.push(match task {
            Task::Commit { steps, .. } => {
                let outcomes = steps.iter().map(|step| apply::step(&transaction, step));
                Done::Commit(outcomes.collect::<rusqlite::Result<_>>()?)
            }
            Task::Sent { ids, .. } => {
                apply::sent(&transaction, ids)?;
                Done::Sent
            }
            Task::Purge { horizon, .. } => Done::Purge(apply::purge(&transaction, *horizon)?),
        });
    }
    transaction.commit()?;
    Ok(done)
}

/// Whoever asked may have gone; what was done stays done.
fn answer(task: Task, done: Result<Done, Error>) {
    match (task, done) {
        (Task::Commit { answer, .. }, Ok(Done::Commit(outcomes))) => drop(answer.send(Ok(outcomes))),
        (Task::Sent { answer, .. }, Ok(Done::Sent)) => drop(answer.send(Ok(()))),
        (Task::Purge { answer, .. }, Ok(Done::Purge(more))) => drop(answer.send(Ok(more))),
        (Task::Commit { answer, .. }, Err(error)) => drop(answer.send(Err(error))),
        (Task::Sent { answer, .. }, Err(error)) => drop(answer.send(Err(error))),
        (Task::Purge { answer, .. }, Err(error)) => drop(answer.send(Err(error))),
        _ => {}
    }
}

impl Ledger for Sqlite {
    fn commit(&self, steps: Vec<Step>) -> Later<'_, Vec<Outcome>> {
        self.ask(|answer| Task::Commit { steps, answer })
    }

    fn sent(&self, ids: Vec<Id>) -> Later<'_, ()> {
        self.ask(|answer| Task::Sent { ids, answer })
    }

    fn recent(&self, since: u64) -> Later<'_, Vec<Seen>> {
        self.read(move |connection| read::recent(connection, since))
    }

    fn take_over(&self, unsent: u64) -> Later<'_, Vec<Job>> {
        // Nobody else can have them.
        self.read(move |connection| read::left(connection, unsent))
    }

    fn lapsed(&self, since: u64) -> Later<'_, Vec<Job>> {
        self.read(move |connection| read::lapsed(connection, since))
    }

    fn answers(&self, id: Id) -> Later<'_, Vec<String>> {
        self.read(move |connection| read::answers(connection, &id))
    }

    fn account<'a>(&'a self, customer: Id, tool: &'a str) -> Later<'a, Account> {
        let tool = tool.to_owned();
        self.read(move |connection| read::account(connection, &customer, &tool))
    }

    fn renew(&self) -> Later<'_, Presence> {
        Box::pin(std::future::ready(Ok(Presence::Alone)))
    }

    fn purge(&self, horizon: Horizon) -> Later<'_, bool> {
        self.ask(move |answer| Task::Purge { horizon, answer })
    }

    fn status(&self) -> Later<'_, Status> {
        self.read(read::status)
    }
}
