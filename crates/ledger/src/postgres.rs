//! The ledger of several processes that serve with one key: a PostgreSQL database.
//!
//! Jobs are leased. A worker is here for 30 seconds after its last word, by the database's clock; the jobs of a worker that is
//! not here any more may be taken over, and each time a job changes hands its fence grows, so that whoever had it before
//! cannot move it: a process that was stopped for a minute, or cut off, finds that its steps are refused. All writing goes
//! through functions of the database (`1.sql`), one statement for whatever waits.
//!
//! The connection is local, or it is TLS; see `link`. A pooler in between must give each client a session of its own.

mod json;
mod link;
mod read;
mod schema;
mod tls;
mod write;

use crate::job::{Id, Job, Outcome, Step};
use crate::ledger::{Account, Error, Horizon, Later, Ledger, Presence, Seen, Status};
use link::Link;
pub(crate) use link::words;
use rialto_payment::secret::Secret;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Row};
use write::{Answer, Task, Writer};

/// How long a worker that says nothing keeps its jobs. [`Ledger::renew`] is called every third of it.
pub const LEASE: Duration = Duration::from_secs(30);

/// Requests to the writer that may wait; whoever has more waits with them.
const QUEUE: usize = 1024;

/// What a worker is known by: drawn anew each time it opens the ledger, and whenever it does not know what became of a batch.
/// What it has may then be in other hands than it believes; the lease of the name it had runs out, and whoever takes over, it
/// too, learns from the ledger how things are.
type Presented = [u8; 16];

/// The name of this worker at present.
#[derive(Debug, Clone)]
struct Name(Arc<Mutex<Presented>>);

impl Name {
    fn get(&self) -> Presented {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self) {
        // Without randomness it keeps its name, and with it what it may have wrong.
        if let Ok(name) = draw() {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = name;
        }
    }
}

/// A ledger that is open. Others may have it too.
#[derive(Debug)]
pub struct Postgres {
    tasks: mpsc::Sender<Task>,
    reader: Link,
    worker: Name,
    lease: Duration,
}

impl Postgres {
    /// Opens the ledger of a provider's key; makes it if there is none. The address may hold a password.
    pub async fn open(address: &Secret, key: &Id) -> Result<Self, Error> {
        Self::open_with(address, key, LEASE).await
    }

    /// The same with another lease, which all workers must share.
    pub async fn open_with(address: &Secret, key: &Id, lease: Duration) -> Result<Self, Error> {
        let reader = Link::open(address, key).await?;
        let worker = Name(Arc::new(Mutex::new(draw()?)));
        let (tasks, waiting) = mpsc::channel(QUEUE);
        let writer = Writer { link: reader.another(), worker: worker.clone(), lease, number: 0 };
        tokio::spawn(writer.run(waiting));
        let ledger = Self { tasks, reader, worker, lease };
        ledger.renew().await?;
        Ok(ledger)
    }

    /// Asks the writer.
    fn ask<T: Send + 'static>(&self, task: impl FnOnce(Answer<T>) -> Task + Send + 'static) -> Later<'_, T> {
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            let gone = || Error::Broken("the writer has stopped".to_owned());
            self.tasks.send(task(answer)).await.map_err(|_| gone())?;
            answered.await.map_err(|_| gone())?
        })
    }

    /// Asks for rows, and reads them.
    fn rows<'a, T: Send + 'a, F>(
        &'a self,
        ask: impl Fn(Arc<Client>) -> F + Send + Sync + 'a,
        read: fn(&Row) -> Result<T, Error>,
    ) -> Later<'a, Vec<T>>
    where
        F: Future<Output = Result<Vec<Row>, tokio_postgres::Error>> + Send + 'a,
    {
        Box::pin(async move { self.reader.with(ask).await?.iter().map(read).collect() })
    }
}

/// Opens a ledger to look at it.
pub(crate) async fn look(address: &Secret, key: &Id) -> Result<Client, Error> {
    Link::look(address, key).await
}

fn draw() -> Result<Presented, Error> {
    let mut bytes = [0; 16];
    let mut filled = 0;
    while filled < bytes.len() {
        filled += rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty())
            .map_err(|error| Error::Broken(error.to_string()))?;
    }
    Ok(bytes)
}

impl Ledger for Postgres {
    fn commit(&self, steps: Vec<Step>) -> Later<'_, Vec<Outcome>> {
        if !steps.iter().all(json::can_be_kept) {
            let error = Error::Broken("a text holds the character U+0000, which PostgreSQL cannot keep".to_owned());
            return Box::pin(std::future::ready(Err(error)));
        }
        self.ask(|answer| Task::Commit { steps, answer })
    }

    fn sent(&self, ids: Vec<Id>) -> Later<'_, ()> {
        self.ask(|answer| Task::Sent { ids, answer })
    }

    fn recent(&self, since: u64) -> Later<'_, Vec<Seen>> {
        self.rows(move |client| async move { read::recent(&client, since).await }, read::seen)
    }

    fn take_over(&self, unsent: u64) -> Later<'_, Vec<Job>> {
        self.ask(move |answer| Task::TakeOver { unsent, answer })
    }

    fn lapsed(&self, since: u64) -> Later<'_, Vec<Job>> {
        self.rows(move |client| async move { read::lapsed(&client, since).await }, read::job)
    }

    fn answers(&self, id: Id) -> Later<'_, Vec<String>> {
        let read = |row: &Row| row.try_get(0).map_err(|error| words(&error));
        self.rows(move |client| async move { read::answers(&client, &id).await }, read)
    }

    fn account<'a>(&'a self, customer: Id, tool: &'a str) -> Later<'a, Account> {
        Box::pin(async move {
            let ask = move |client: Arc<Client>| async move { read::account(&client, &customer, tool).await };
            read::as_account(&self.reader.with(ask).await?)
        })
    }

    fn renew(&self) -> Later<'_, Presence> {
        let lease = json::signed(self.lease.as_millis() as u64);
        let worker = self.worker.get();
        Box::pin(async move {
            let ask = move |client: Arc<Client>| async move {
                let owner = worker.as_slice();
                let sql = "SELECT be_here($1, $2 * interval '1 millisecond')";
                client.query_typed(sql, &[(&owner, Type::BYTEA), (&lease, Type::INT8)]).await?;
                // Whoever was here a day ago and has no job any more need not be remembered.
                let sql = "DELETE FROM worker WHERE until < clock_timestamp() - interval '1 day'";
                client.execute_typed(sql, &[]).await?;
                let sql = "SELECT EXISTS (SELECT FROM worker WHERE owner <> $1 AND until > clock_timestamp())";
                client.query_typed_one(sql, &[(&owner, Type::BYTEA)]).await?.try_get(0)
            };
            Ok(if self.reader.with(ask).await? { Presence::WithOthers } else { Presence::Alone })
        })
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn purge(&self, horizon: Horizon) -> Later<'_, bool> {
        self.ask(move |answer| Task::Purge { horizon, answer })
    }

    fn status(&self) -> Later<'_, Status> {
        Box::pin(async move {
            let ask = |client: Arc<Client>| async move { read::status(&client).await };
            read::as_status(&self.reader.with(ask).await?)
        })
    }
}
