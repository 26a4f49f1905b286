//! Looking at a ledger that somebody else may be using: one moment of it, and nothing is changed or held up.
//!
//! What is asked is written once, for both databases. `HEX(x)` stands for bytes as text, and `ENTRIES(…)` for a list of rows
//! as JSON: the only two things here that they call by different names.

use crate::job::Id;
use crate::ledger::Error;
use crate::{postgres, sqlite};
use futures_util::TryStreamExt as _;
use rialto_payment::secret::Secret;
use std::fmt;
use std::path::Path;
use std::pin::pin;

/// Where the ledger is.
#[derive(Debug, Clone, Copy)]
pub enum Source<'a> {
    /// In this directory.
    Sqlite(&'a Path),
    Postgres {
        address: &'a Secret,
        key: &'a Id,
    },
}

enum Database {
    Sqlite(rusqlite::Connection),
    Postgres(tokio_postgres::Client),
}

/// One moment of a ledger.
pub struct Look(Database);

impl fmt::Debug for Look {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Look")
    }
}

/// One row of what was asked for.
pub(crate) trait Row {
    fn text(&self, column: usize) -> Result<Option<String>, Error>;
    fn number(&self, column: usize) -> Result<Option<i64>, Error>;
}

impl Row for rusqlite::Row<'_> {
    fn text(&self, column: usize) -> Result<Option<String>, Error> {
        Ok(self.get(column)?)
    }

    fn number(&self, column: usize) -> Result<Option<i64>, Error> {
        Ok(self.get(column)?)
    }
}

impl Row for tokio_postgres::Row {
    fn text(&self, column: usize) -> Result<Option<String>, Error> {
        self.try_get(column).map_err(|error| postgres::words(&error))
    }

    fn number(&self, column: usize) -> Result<Option<i64>, Error> {
        self.try_get(column).map_err(|error| postgres::words(&error))
    }
}

/// Whether to go on.
pub(crate) enum Next {
    More,
    Enough,
}

impl Look {
    /// Opens a ledger that is there. Reading an SQLite file does not wait for anything, so it is done where it is asked for.
    pub async fn open(source: Source<'_>) -> Result<Self, Error> {
        match source {
            Source::Sqlite(directory) => {
                let connection = sqlite::read_only(&sqlite::file(directory))?;
                sqlite::expect(&connection)?;
                connection.execute_batch("BEGIN")?;
                Ok(Self(Database::Sqlite(connection)))
            }
            Source::Postgres { address, key } => {
                let client = postgres::look(address, key).await?;
                let begin = client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await;
                begin.map_err(|error| postgres::words(&error))?;
                Ok(Self(Database::Postgres(client)))
            }
        }
    }

    pub(crate) fn is_file(&self) -> bool {
        matches!(self.0, Database::Sqlite(_))
    }

    /// Gives each row to `take`, as they come.
    pub(crate) async fn each(
        &self,
        sql: &str,
        mut take: impl FnMut(&dyn Row) -> Result<Next, Error>,
    ) -> Result<(), Error> {
        match &self.0 {
            Database::Sqlite(connection) => {
                let sql = sql.replace("HEX(", "lower(hex(").replace(")HEX", "))");
                let sql = sql.replace("ENTRIES(", "json_group_array(json_object(").replace(")ENTRIES", "))");
                let mut select = connection.prepare(&sql)?;
                let mut rows = select.query([])?;
                while let Some(row) = rows.next()? {
                    if matches!(take(row)?, Next::Enough) {
                        break;
                    }
                }
            }
            Database::Postgres(client) => {
                let sql = sql.replace("HEX(", "encode(").replace(")HEX", ", 'hex')");
                let sql = sql.replace("ENTRIES(", "json_agg(json_build_object(").replace(")ENTRIES", "))::text");
                let nothing: [(&str, tokio_postgres::types::Type); 0] = [];
                let rows = client.query_typed_raw(&sql, nothing).await.map_err(|error| postgres::words(&error))?;
                let mut rows = pin!(rows);
                while let Some(row) = rows.try_next().await.map_err(|error| postgres::words(&error))? {
                    if matches!(take(&row)?, Next::Enough) {
                        break;
                    }
                }
            }
        }
        Ok(())
    }
}
