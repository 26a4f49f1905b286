//! What is asked of the ledger.

use super::apply::balance;
use crate::job::{Id, Job, Money, Quote, Rail, Stage};
use crate::ledger::{Account, Seen, Status};
use rialto_payment::amount::Msat;
use rialto_payment::secret::{PaymentHash, Preimage, Secret};
use rusqlite::{Connection, OptionalExtension, Row, params};

/// Columns of a job with its quote, as [`job`] reads them.
const JOB: &str = "SELECT id, customer, stage, came, at, origin, request, attempts,
        tool, price, credit, rail, money, hash, preimage, invoice, token, expires, quote.paid, fence
    FROM job LEFT JOIN quote ON quote.job = job.id";

/// A number on disk that means nothing.
fn strange(column: usize) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Integer, "an unknown number".into())
}

fn seconds(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    u64::try_from(row.get::<_, i64>(column)?).map_err(|_| strange(column))
}

fn msat(row: &Row<'_>, column: usize) -> rusqlite::Result<Msat> {
    seconds(row, column).and_then(|number| Msat::new(number).ok_or_else(|| strange(column)))
}

fn stage(row: &Row<'_>, column: usize) -> rusqlite::Result<Stage> {
    Stage::from_number(row.get(column)?).ok_or_else(|| strange(column))
}

fn job(row: &Row<'_>) -> rusqlite::Result<Job> {
    let tool: Option<String> = row.get(8)?;
    let quote = match tool {
        None => None,
        Some(tool) => Some(Quote {
            tool,
            price: msat(row, 9)?,
            credit: msat(row, 10)?,
            rail: Rail::from_number(row.get(11)?).ok_or_else(|| strange(11))?,
            money: Money::from_number(row.get(12)?).ok_or_else(|| strange(12))?,
            hash: row.get::<_, Option<Id>>(13)?.map(PaymentHash),
            preimage: row.get::<_, Option<Id>>(14)?.map(Preimage::new),
            invoice: row.get(15)?,
            token: row.get::<_, Option<String>>(16)?.map(Secret::new),
            expires: seconds(row, 17)?,
            paid: msat(row, 18)?,
        }),
    };
    Ok(Job {
        id: row.get(0)?,
        customer: row.get(1)?,
        stage: stage(row, 2)?,
        came: seconds(row, 3)?,
        at: seconds(row, 4)?,
        origin: row.get(5)?,
        request: row.get(6)?,
        attempts: row.get(7)?,
        fence: seconds(row, 19)?,
        quote,
        answers: Vec::new(),
    })
}

fn jobs(connection: &Connection, condition: &str, since: u64) -> rusqlite::Result<Vec<Job>> {
    let mut select = connection.prepare(&format!("{JOB} WHERE {condition}"))?;
    let since = i64::try_from(since).unwrap_or(i64::MAX);
    let found = select.query_map([since], job)?;
    let mut found: Vec<Job> = found.collect::<rusqlite::Result<_>>()?;
    for job in &mut found {
        job.answers = answers(connection, &job.id)?;
    }
    Ok(found)
}

pub(super) fn recent(connection: &Connection, since: u64) -> rusqlite::Result<Vec<Seen>> {
    let mut select =
        connection.prepare("SELECT id, stage, at FROM job WHERE paid IN (0, 1) AND at >= ?1 AND sent < 2")?;
    let since = i64::try_from(since).unwrap_or(i64::MAX);
    let rows =
        select.query_map([since], |row| Ok(Seen { id: row.get(0)?, stage: stage(row, 1)?, at: seconds(row, 2)? }))?;
    rows.collect()
}

/// Jobs that a process has left.
pub(super) fn left(connection: &Connection, unsent: u64) -> rusqlite::Result<Vec<Job>> {
    // Two queries, so that each has its index.
    let mut left = jobs(connection, "stage < 7 AND ?1 >= 0", 0)?;
    left.extend(jobs(connection, "stage = 7 AND sent = 0 AND at >= ?1", unsent)?);
    Ok(left)
}

pub(super) fn lapsed(connection: &Connection, since: u64) -> rusqlite::Result<Vec<Job>> {
    jobs(connection, "money = 9 AND expires >= ?1", since)
}

pub(super) fn answers(connection: &Connection, id: &Id) -> rusqlite::Result<Vec<String>> {
    let mut select = connection.prepare_cached("SELECT event FROM answer WHERE job = ?1 ORDER BY number")?;
    select.query_map([id], |row| row.get(0))?.collect()
}

pub(super) fn account(connection: &Connection, customer: &Id, tool: &str) -> rusqlite::Result<Account> {
    let credit = u64::try_from(balance(connection, customer)?).ok().and_then(Msat::new).unwrap_or_default();
    let mut select = connection.prepare_cached("SELECT used FROM free_use WHERE customer = ?1 AND tool = ?2")?;
    let free_uses = select.query_row(params![customer, tool], |row| row.get(0)).optional()?.unwrap_or(0);
    Ok(Account { credit, free_uses })
}

pub(super) fn status(connection: &Connection) -> rusqlite::Result<Status> {
    let mut jobs = Vec::new();
    for stage in Stage::ALL {
        let sql = "SELECT count(*) FROM job WHERE stage = ?1";
        jobs.push((*stage, connection.query_row(sql, [stage.number()], |row| seconds(row, 0))?));
    }
    let sum = |sql: &str| connection.query_row(sql, [], |row| msat(row, 0));
    Ok(Status {
        jobs,
        unsent: connection
            .query_row("SELECT count(*) FROM job WHERE stage = 7 AND sent = 0", [], |row| seconds(row, 0))?,
        earned: sum("SELECT coalesce(sum(price), 0) FROM quote WHERE money = 6")?,
        owed: sum("SELECT coalesce(sum(msat), 0) FROM credit")?,
        held: sum("SELECT coalesce(sum(paid), 0) FROM quote WHERE money IN (2, 3, 4, 5)")?,
    })
}
