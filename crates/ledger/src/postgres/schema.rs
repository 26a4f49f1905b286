//! The tables, and how they came to be. Migrations only go forward; whoever comes second finds them done.
//!
//! Each provider key has a schema of its own: its ledger can be dumped, moved, restored and given rights to as a whole
//! (`pg_dump --schema`), indices hold nobody else's rows, and no statement can forget which provider is meant.

use super::link::words;
use crate::job::Id;
use crate::ledger::Error;
use tokio_postgres::Client;
use tokio_postgres::types::Type;

/// One for each version; never changed once released.
const MIGRATIONS: [&str; 1] = [include_str!("1.sql")];

/// The schema of a provider's key.
pub(super) fn name(key: &Id) -> String {
    format!("rialto_{}", &hex(key)[..16])
}

/// In hex, as it travels in JSON.
pub(super) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |number: u8| char::from(DIGITS[usize::from(number & 15)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(*byte)]).collect()
}

fn known() -> i64 {
    i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX)
}

/// Brings the schema up to date, in one transaction. Others that want the same wait for it.
pub(super) async fn migrate(client: &mut Client, schema: &str, key: &Id) -> Result<(), Error> {
    let broken = |error| words(&error);
    let transaction = client.transaction().await.map_err(broken)?;
    let lock = "SELECT pg_advisory_xact_lock(hashtextextended('rialto migrations', 0))";
    transaction.batch_execute(lock).await.map_err(broken)?;
    let sql = "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)";
    let exists: bool = transaction.query_typed_one(sql, &[(&schema, Type::TEXT)]).await.map_err(broken)?.get(0);
    if !exists {
        // Asked only if there is none: a schema that an administrator made for us needs no right to make one.
        transaction.batch_execute(&format!("CREATE SCHEMA {schema}")).await.map_err(broken)?;
    }
    let found = version(transaction.client(), key).await?;
    for (version, migration) in (1_i64..).zip(MIGRATIONS).skip(usize::try_from(found).unwrap_or(0)) {
        transaction.batch_execute(migration).await.map_err(broken)?;
        let sql = "INSERT INTO about (version, key) VALUES ($1, $2)";
        let row = [(&version as _, Type::INT8), (&key.as_slice() as _, Type::BYTEA)];
        transaction.batch_execute("DELETE FROM about").await.map_err(broken)?;
        transaction.execute_typed(sql, &row).await.map_err(broken)?;
    }
    transaction.commit().await.map_err(broken)
}

/// For whoever only looks: the tables must be there.
pub(super) async fn expect(client: &Client, schema: &str, key: &Id) -> Result<(), Error> {
    match version(client, key).await? {
        0 => Err(Error::Broken(format!("there is no ledger of this key (schema {schema})"))),
        found if found < known() => {
            Err(Error::Broken("the ledger is of an earlier version; `rialto serve` brings it up to date".to_owned()))
        }
        _ => Ok(()),
    }
}

/// How far the tables are; 0 if there are none.
async fn version(client: &Client, key: &Id) -> Result<i64, Error> {
    let broken = |error| words(&error);
    let row = client.query_typed_one("SELECT to_regclass('about') IS NULL", &[]).await.map_err(broken)?;
    if row.get(0) {
        return Ok(0);
    }
    let Some(row) = client.query_typed_opt("SELECT version, key FROM about", &[]).await.map_err(broken)? else {
        return Ok(0);
    };
    let found: i64 = row.try_get(0).map_err(broken)?;
    if found > known() || found < 0 {
        return Err(Error::TooNew { found, known: known() });
    }
    if row.try_get::<_, &[u8]>(1).map_err(broken)? != key {
        return Err(Error::Broken("the ledger there is of another key that begins alike".to_owned()));
    }
    Ok(found)
}
