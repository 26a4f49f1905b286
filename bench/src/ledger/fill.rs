//! Many jobs that are done, quickly: in the order of their ids, past the ledger, in one transaction.

use std::path::Path;

use rialto_ledger::sqlite;
use rusqlite::{Connection, params};

use super::job::id;
use crate::Failure;

/// Brings the ledger from `there` jobs to `size`. Their answers are short: how long they are changes nothing, since they are
/// only appended; how many there are does.
pub fn fill(directory: &Path, there: u64, size: u64) -> Result<(), Failure> {
    let mut ids: Vec<_> = (there..size).map(|number| (id(number, 9), number)).collect();
    ids.sort_unstable();
    let mut connection = Connection::open(sqlite::file(directory))?;
    connection.pragma_update(None, "cache_size", -400_000)?;
    let transaction = connection.transaction()?;
    {
        let mut job = transaction.prepare(
            "INSERT INTO job (id, customer, stage, came, at, origin, attempts, sent, paid) VALUES (?1, ?2, 7, ?3, ?3, ?4, 1, 1, 1)",
        )?;
        let mut quote = transaction.prepare(
            "INSERT INTO quote (job, tool, price, credit, rail, money, hash, preimage, invoice, expires, paid)
             VALUES (?1, 'forecast', 21000, 0, 3, 6, ?2, ?1, ?3, ?4, 21000)",
        )?;
        let mut answer = transaction.prepare("INSERT INTO answer (job, number, event) VALUES (?1, ?2, 'short')")?;
        let origin = "{\"wire\":\"dvmcp\",\"relay\":\"wss://relay.example\"}";
        let invoice = "lnbc210n1".repeat(30);
        for (id, number) in ids {
            let at = i64::try_from(1_700_000_000 + number)?;
            // The customers of the jobs that are measured, so that theirs are the pages that grow.
            job.execute(params![id, super::job::id(number % 1000, 4), at, origin])?;
            let mut hash = id;
            hash[31] ^= 1;
            quote.execute(params![id, hash, invoice, at])?;
            answer.execute(params![id, 0])?;
            answer.execute(params![id, 1])?;
        }
    }
    transaction.commit()?;
    connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")?;
    Ok(())
}
