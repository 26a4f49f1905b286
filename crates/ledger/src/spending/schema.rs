//! The tables of `spending.db`.

use crate::ledger::Error;
use rusqlite::{Connection, TransactionBehavior};

/// What this program knows. A file of a later one is not touched.
const VERSION: i64 = 1;

const TABLES: &str = "
    CREATE TABLE budget (
        -- The service's key, or nothing for all of them.
        service BLOB PRIMARY KEY,
        per_call INTEGER NOT NULL,
        per_day INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE spend (
        request BLOB PRIMARY KEY,
        provider BLOB NOT NULL,
        service TEXT NOT NULL,
        tool TEXT NOT NULL,
        amount INTEGER NOT NULL,
        -- The most that may be paid for sending it, until it is known.
        fee INTEGER NOT NULL,
        rail INTEGER NOT NULL,
        hash BLOB NOT NULL UNIQUE,
        invoice TEXT NOT NULL,
        expires INTEGER NOT NULL,
        token TEXT,
        state INTEGER NOT NULL,
        approved INTEGER NOT NULL,
        at INTEGER NOT NULL,
        changed INTEGER NOT NULL,
        note TEXT
    ) STRICT;
    CREATE INDEX spend_at ON spend (at);
    CREATE INDEX spend_open ON spend (provider) WHERE state IN (1, 2, 5);
";

/// Makes the tables if there are none.
pub(super) fn migrate(connection: &mut Connection) -> Result<(), Error> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found: i64 = transaction.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    match found {
        0 => {
            transaction.execute_batch(TABLES)?;
            transaction.pragma_update(None, "user_version", VERSION)?;
        }
        VERSION => {}
        _ => return Err(Error::TooNew { found, known: VERSION }),
    }
    Ok(transaction.commit()?)
}
