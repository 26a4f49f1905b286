//! What stands in `spending.db`.

use super::{Approval, Budget, Entry, Rail, Spend, State, signed};
use crate::job::Id;
use crate::ledger::Error;
use rialto_payment::amount::Msat;
use rialto_payment::secret::{PaymentHash, Secret};
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row, params};

const COLUMNS: &str = "request, provider, service, tool, amount, fee, rail, hash, invoice, expires, token, state, approved, \
                       at, changed, note";

/// A service's key, or nothing for all.
pub(super) fn key(service: Option<&Id>) -> &[u8] {
    service.map_or(&[], |service| &service[..])
}

/// The state of the payment that has this in a column.
pub(super) fn state(connection: &Connection, column: &str, value: &[u8]) -> Result<Option<State>, Error> {
    let found: Option<i64> = connection
        .query_row(&format!("SELECT state FROM spend WHERE {column} = ?1"), [value], |row| row.get(0))
        .optional()?;
    // What cannot be read is not certain.
    Ok(found.map(|number| State::from_number(number).unwrap_or(State::Unknown)))
}

pub(super) fn budget(connection: &Connection, service: Option<&Id>) -> rusqlite::Result<Option<Budget>> {
    connection
        .query_row("SELECT service, per_call, per_day FROM budget WHERE service = ?1", [key(service)], read_budget)
        .optional()
}

pub(super) fn budgets(connection: &Connection) -> rusqlite::Result<Vec<Budget>> {
    let mut statement = connection.prepare("SELECT service, per_call, per_day FROM budget ORDER BY service")?;
    statement.query_map([], read_budget)?.collect()
}

fn read_budget(row: &Row<'_>) -> rusqlite::Result<Budget> {
    let service: Vec<u8> = row.get(0)?;
    let service = if service.is_empty() { None } else { Some(id(row, 0)?) };
    Ok(Budget { service, per_call: msat(row, 1)?, per_day: msat(row, 2)? })
}

/// Everything that may have left since then, fees included.
pub(super) fn spent(connection: &Connection, service: Option<&Id>, since: u64) -> rusqlite::Result<Msat> {
    connection.query_row(
        "SELECT coalesce(sum(amount + fee), 0) FROM spend WHERE at > ?1 AND state <> 4 AND (?2 = x'' OR provider = ?2)",
        params![signed(since), key(service)],
        |row| msat(row, 0),
    )
}

pub(super) fn unresolved(connection: &Connection, provider: Option<&Id>) -> rusqlite::Result<Vec<Entry>> {
    let query = format!(
        "SELECT {COLUMNS} FROM spend WHERE state IN (2, 5) AND (?1 = x'' OR provider = ?1) ORDER BY at, rowid LIMIT 100"
    );
    connection.prepare_cached(&query)?.query_map([key(provider)], entry)?.collect()
}

pub(super) fn history(connection: &Connection, limit: u32) -> rusqlite::Result<Vec<Entry>> {
    let query = format!("SELECT {COLUMNS} FROM spend ORDER BY at DESC, rowid DESC LIMIT ?1");
    connection.prepare(&query)?.query_map([limit], entry)?.collect()
}

fn entry(row: &Row<'_>) -> rusqlite::Result<Entry> {
    let fee = msat(row, 5)?;
    let spend = Spend {
        request: id(row, 0)?,
        provider: id(row, 1)?,
        service: row.get(2)?,
        tool: row.get(3)?,
        amount: msat(row, 4)?,
        max_fee: fee,
        hash: PaymentHash(id(row, 7)?),
        invoice: row.get(8)?,
        expires: number(row, 9)?,
        approved: named(row, 12, Approval::from_number)?,
        at: number(row, 13)?,
    };
    Ok(Entry {
        spend,
        rail: named(row, 6, Rail::from_number)?,
        token: row.get::<_, Option<String>>(10)?.map(Secret::new),
        state: named(row, 11, State::from_number)?,
        fee,
        changed: number(row, 14)?,
        note: row.get(15)?,
    })
}

fn id(row: &Row<'_>, index: usize) -> rusqlite::Result<Id> {
    row.get::<_, Id>(index)
}

fn number(row: &Row<'_>, index: usize) -> rusqlite::Result<u64> {
    Ok(row.get::<_, i64>(index)?.try_into().unwrap_or(0))
}

fn msat(row: &Row<'_>, index: usize) -> rusqlite::Result<Msat> {
    let stored: i64 = row.get(index)?;
    let amount = u64::try_from(stored).ok().and_then(Msat::new);
    amount.ok_or_else(|| rusqlite::Error::IntegralValueOutOfRange(index, stored))
}

fn named<T>(row: &Row<'_>, index: usize, from: impl Fn(i64) -> Option<T>) -> rusqlite::Result<T> {
    let words = || rusqlite::Error::InvalidColumnType(index, "a number without a meaning".to_owned(), Type::Integer);
    from(row.get(index)?).ok_or_else(words)
}
