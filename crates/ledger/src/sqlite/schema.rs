//! The tables, and how they came to be. Migrations only go forward; each is one transaction.

use crate::ledger::Error;
use rusqlite::Connection;

/// One for each version; never changed once released.
const MIGRATIONS: [&str; 1] = ["
    CREATE TABLE job (
        id BLOB PRIMARY KEY NOT NULL CHECK (length(id) = 32),
        customer BLOB NOT NULL CHECK (length(customer) = 32),
        stage INTEGER NOT NULL CHECK (stage BETWEEN 1 AND 7),
        came INTEGER NOT NULL,
        at INTEGER NOT NULL,
        origin TEXT NOT NULL,
        request TEXT,
        attempts INTEGER NOT NULL DEFAULT 0,
        sent INTEGER NOT NULL DEFAULT 0,
        paid INTEGER NOT NULL DEFAULT 0,
        fence INTEGER NOT NULL DEFAULT 1
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX job_open ON job (stage) WHERE stage < 7;
    CREATE INDEX job_unsent ON job (at) WHERE stage = 7 AND sent = 0;
    -- What is purged has one time if it was free and another if it was paid.
    CREATE INDEX job_at ON job (paid, at) WHERE sent < 2;

    CREATE TABLE quote (
        job BLOB PRIMARY KEY NOT NULL REFERENCES job (id),
        tool TEXT NOT NULL,
        price INTEGER NOT NULL CHECK (price >= 0),
        credit INTEGER NOT NULL CHECK (credit BETWEEN 0 AND price),
        rail INTEGER NOT NULL CHECK (rail BETWEEN 1 AND 4),
        money INTEGER NOT NULL CHECK (money BETWEEN 1 AND 10),
        hash BLOB UNIQUE CHECK (length(hash) = 32),
        preimage BLOB CHECK (length(preimage) = 32),
        invoice TEXT,
        token TEXT,
        expires INTEGER NOT NULL,
        paid INTEGER NOT NULL CHECK (paid >= 0)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX quote_lapsed ON quote (expires) WHERE money = 9;

    CREATE TABLE coin (
        id BLOB PRIMARY KEY NOT NULL,
        job BLOB NOT NULL REFERENCES job (id)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE answer (
        job BLOB NOT NULL REFERENCES job (id),
        number INTEGER NOT NULL,
        event TEXT NOT NULL
    ) STRICT;
    CREATE INDEX answer_job ON answer (job, number);

    CREATE TABLE credit (
        number INTEGER PRIMARY KEY,
        customer BLOB NOT NULL,
        at INTEGER NOT NULL,
        msat INTEGER NOT NULL,
        balance INTEGER NOT NULL CHECK (balance >= 0),
        job BLOB NOT NULL REFERENCES job (id),
        why TEXT NOT NULL
    ) STRICT;
    CREATE INDEX credit_customer ON credit (customer, number);

    CREATE TABLE free_use (
        customer BLOB NOT NULL,
        tool TEXT NOT NULL,
        used INTEGER NOT NULL,
        PRIMARY KEY (customer, tool)
    ) STRICT, WITHOUT ROWID;
"];

/// For whoever only looks.
pub(super) fn expect(connection: &Connection) -> Result<(), Error> {
    let found: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let known = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    match found {
        _ if found == known => Ok(()),
        _ if found > known => Err(Error::TooNew { found, known }),
        _ => Err(Error::Broken("it is of an earlier version; `rialto serve` brings it up to date".to_owned())),
    }
}

/// How many migrations were made; an error if there are more than we know.
pub(super) fn refuse_later(connection: &Connection) -> Result<usize, Error> {
    let found: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let known = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    usize::try_from(found).ok().filter(|_| found <= known).ok_or(Error::TooNew { found, known })
}

/// Brings a database up to date.
pub(super) fn migrate(connection: &mut Connection) -> Result<(), Error> {
    let done = refuse_later(connection)?;
    for (version, migration) in (1_i64..).zip(MIGRATIONS).skip(done) {
        let transaction = connection.transaction()?;
        transaction.execute_batch(migration)?;
        transaction.pragma_update(None, "user_version", version)?;
        transaction.commit()?;
    }
    Ok(())
}
