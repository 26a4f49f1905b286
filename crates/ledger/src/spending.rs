//! What a customer spends, and what it may: an SQLite file that several processes use at once.
//!
//! Every host has a process of its own, and all of them spend from one budget. So whatever is decided is decided in one
//! transaction that holds the file's only write lock, and is on the disk before any wallet is asked. What is not certain
//! counts as spent until it is.

mod entry;
mod read;
mod schema;

pub use self::entry::{Approval, Budget, Denied, Entry, Left, Rail, Spend, State};

use crate::job::Id;
use crate::ledger::Error;
use crate::sqlite::private;
use rialto_payment::amount::Msat;
use rialto_payment::secret::Secret;
use rusqlite::{Connection, Transaction, TransactionBehavior, params};
use rustix::fs::{FlockOperation, flock};
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The file, in the directory that it is given.
pub const FILE: &str = "spending.db";

/// How long other processes are waited for: each needs the disk twice, and there may be a hundred of them.
const BUSY: Duration = Duration::from_secs(60);

/// What a budget for a day counts, in seconds.
const DAY: u64 = 24 * 60 * 60;

/// A payment that was allowed but not begun after this many seconds belongs to a process that is gone. If it is not, it finds
/// out before it pays.
const ABANDONED: u64 = 600;

/// A handle; clones are the same.
#[derive(Debug, Clone)]
pub struct Spending(Arc<Mutex<Connection>>);

impl Spending {
    /// Opens the file in `directory`; makes it if there is none.
    pub fn open(directory: &Path) -> Result<Self, Error> {
        let refused = |error: std::io::Error| Error::Broken(error.to_string());
        fs::DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(refused)?;
        // Changing a file's journal does not wait for others who do the same, so they take turns.
        let turn = private(&directory.join("spending.lock")).map_err(refused)?;
        flock(&turn, FlockOperation::LockExclusive).map_err(|error| refused(error.into()))?;
        let path = directory.join(FILE);
        // SQLite gives its other files the rights of this one.
        private(&path).map_err(refused)?;
        let mut connection = Connection::open(&path)?;
        connection.busy_timeout(BUSY)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        schema::migrate(&mut connection)?;
        Ok(Self(Arc::new(Mutex::new(connection))))
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something while nobody else can.
    fn alone<T, E: From<Error>>(&self, act: impl FnOnce(&Transaction<'_>) -> Result<T, E>) -> Result<T, E> {
        let mut connection = self.connection();
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(Error::from)?;
        let done = act(&transaction)?;
        transaction.commit().map_err(Error::from)?;
        Ok(done)
    }

    /// Allows a payment and notes it, or says why not. Gives the most that sending it may cost: what it brings along, or what
    /// the budget has left beside it, if that is less.
    pub fn reserve(&self, spend: &Spend) -> Result<Msat, Denied> {
        self.alone(|transaction| {
            if let Some(state) = read::state(transaction, "request", &spend.request)? {
                return Err(Denied::RequestKnown(state));
            }
            if let Some(state) = read::state(transaction, "hash", &spend.hash.0)? {
                return Err(Denied::HashKnown(state));
            }
            let fee = match spend.approved {
                Approval::Person => spend.max_fee,
                Approval::Budget => {
                    let left = within(transaction, spend)?;
                    spend.max_fee.min(left.saturating_sub(spend.amount))
                }
            };
            insert(transaction, spend, fee)?;
            Ok(fee)
        })
    }

    /// Notes that the wallet will be asked now; `false` if it must not be any more. Ecash is noted before it is given away.
    pub fn begin(&self, request: &Id, rail: Rail, token: Option<&Secret>, now: u64) -> Result<bool, Error> {
        let changed = self.connection().execute(
            "UPDATE spend SET state = ?2, rail = ?3, token = ?4, changed = ?5 WHERE request = ?1 AND state = ?6",
            params![
                &request[..],
                State::Paying.number(),
                rail.number(),
                token.map(Secret::reveal),
                signed(now),
                State::Intended.number()
            ],
        )?;
        Ok(changed == 1)
    }

    /// Notes that it was paid, whatever was thought before.
    pub fn paid(&self, request: &Id, fee: Msat, now: u64) -> Result<(), Error> {
        self.connection().execute(
            "UPDATE spend SET state = ?2, fee = ?3, token = NULL, note = NULL, changed = ?4 WHERE request = ?1",
            params![&request[..], State::Paid.number(), signed(fee.get()), signed(now)],
        )?;
        Ok(())
    }

    /// Notes that nothing was paid, and nothing will be.
    pub fn failed(&self, request: &Id, note: &str, now: u64) -> Result<(), Error> {
        self.end(request, State::Failed, note, now)
    }

    /// Notes that nobody knows.
    pub fn unknown(&self, request: &Id, note: &str, now: u64) -> Result<(), Error> {
        self.end(request, State::Unknown, note, now)
    }

    fn end(&self, request: &Id, state: State, note: &str, now: u64) -> Result<(), Error> {
        self.connection().execute(
            // What is known to be paid stays so.
            "UPDATE spend SET state = ?2, note = ?3, changed = ?4,
                 token = CASE WHEN ?2 = 4 THEN NULL ELSE token END WHERE request = ?1 AND state <> 3",
            params![&request[..], state.number(), note, signed(now)],
        )?;
        Ok(())
    }

    /// Payments of which it is not certain what became of them, the oldest first: of one provider, or of all. Those that were
    /// never begun are given up on the way.
    pub fn unresolved(&self, provider: Option<&Id>, now: u64) -> Result<Vec<Entry>, Error> {
        self.alone(|transaction| {
            transaction.execute(
                "UPDATE spend SET state = 4, note = 'never begun', changed = ?1 WHERE state = 1 AND at < ?2",
                params![signed(now), signed(now.saturating_sub(ABANDONED))],
            )?;
            Ok(read::unresolved(transaction, provider)?)
        })
    }

    /// The newest first.
    pub fn history(&self, limit: u32) -> Result<Vec<Entry>, Error> {
        Ok(read::history(&self.connection(), limit)?)
    }

    /// That for all services first.
    pub fn budgets(&self) -> Result<Vec<Budget>, Error> {
        Ok(read::budgets(&self.connection())?)
    }

    /// Sets a budget, in the place of the one before.
    pub fn set(&self, budget: &Budget) -> Result<(), Error> {
        self.connection().execute(
            "INSERT INTO budget (service, per_call, per_day) VALUES (?1, ?2, ?3)
                 ON CONFLICT (service) DO UPDATE SET per_call = ?2, per_day = ?3",
            params![read::key(budget.service.as_ref()), signed(budget.per_call.get()), signed(budget.per_day.get())],
        )?;
        Ok(())
    }

    /// Says whether there was one.
    pub fn clear(&self, service: Option<&Id>) -> Result<bool, Error> {
        let gone = self.connection().execute("DELETE FROM budget WHERE service = ?1", [read::key(service)])?;
        Ok(gone == 1)
    }

    /// What may be spent on a service now, without asking.
    pub fn left(&self, service: &Id, now: u64) -> Result<Left, Error> {
        Ok(left(&self.connection(), service, now)?.unwrap_or_default())
    }

    /// What was spent in the last 24 hours: on one service, or on all.
    pub fn spent(&self, service: Option<&Id>, now: u64) -> Result<Msat, Error> {
        Ok(read::spent(&self.connection(), service, now.saturating_sub(DAY))?)
    }
}

/// SQLite has no unsigned numbers; amounts and times are far below where that matters.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// `None` if there is no budget. A service's own limit for one call counts in the place of that for all; for the day both do.
fn left(connection: &Connection, service: &Id, now: u64) -> rusqlite::Result<Option<Left>> {
    let (own, all) = (read::budget(connection, Some(service))?, read::budget(connection, None)?);
    let Some(first) = own.or(all) else { return Ok(None) };
    let since = now.saturating_sub(DAY);
    let mut today = first.per_day;
    if let Some(own) = own {
        today = today.min(own.per_day.saturating_sub(read::spent(connection, Some(service), since)?));
    }
    if let Some(all) = all {
        today = today.min(all.per_day.saturating_sub(read::spent(connection, None, since)?));
    }
    Ok(Some(Left { per_call: first.per_call, today }))
}

/// Whether a payment is inside the budgets; what they leave for it and for sending it.
fn within(connection: &Connection, spend: &Spend) -> Result<Msat, Denied> {
    let left = left(connection, &spend.provider, spend.at).map_err(Error::from)?.ok_or(Denied::NoBudget)?;
    if spend.amount > left.per_call {
        return Err(Denied::PerCall { cap: left.per_call });
    }
    if spend.amount > left.today {
        return Err(Denied::PerDay { left: left.today });
    }
    Ok(left.per_call.min(left.today))
}

fn insert(connection: &Connection, spend: &Spend, fee: Msat) -> Result<(), Error> {
    connection.execute(
        "INSERT INTO spend (request, provider, service, tool, amount, fee, rail, hash, invoice, expires, state, approved, at,
             changed) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?13)",
        params![
            &spend.request[..],
            &spend.provider[..],
            spend.service,
            spend.tool,
            signed(spend.amount.get()),
            signed(fee.get()),
            Rail::Lightning.number(),
            &spend.hash.0[..],
            spend.invoice,
            signed(spend.expires),
            State::Intended.number(),
            spend.approved.number(),
            signed(spend.at),
        ],
    )?;
    Ok(())
}
