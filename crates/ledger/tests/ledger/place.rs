//! Where a ledger is, so that a case can open it, close it, open it again, and look at all its rows.

use crate::server;
use rialto_ledger::job::Id;
use rialto_ledger::ledger::{Error, Ledger};
use rialto_ledger::postgres::Postgres;
use rialto_ledger::sqlite::{self, Sqlite};
use rialto_payment::secret::Secret;
use rusqlite::types::Value;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const TABLES: [&str; 6] = ["job", "quote", "coin", "answer", "credit", "free_use"];

pub(crate) enum Place {
    Sqlite(TempDir),
    Postgres { address: String, key: Id },
}

impl Place {
    pub(crate) fn sqlite() -> Self {
        Self::Sqlite(tempfile::tempdir().unwrap())
    }

    /// A schema of its own; `None` if there is no PostgreSQL here.
    pub(crate) fn postgres() -> Option<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let server = server::shared()?;
        let mut key = [7; 32];
        key[..8].copy_from_slice(&NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes());
        Some(Self::Postgres { address: server.address(), key })
    }

    /// Whether several workers may have it.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self, Self::Postgres { .. })
    }

    pub(crate) async fn try_open(&self) -> Result<Arc<dyn Ledger>, Error> {
        Ok(match self {
            Self::Sqlite(directory) => Arc::new(Sqlite::open(directory.path())?),
            Self::Postgres { address, key } => Arc::new(Postgres::open(&Secret::new(address.as_str()), key).await?),
        })
    }

    pub(crate) async fn open(&self) -> Arc<dyn Ledger> {
        self.try_open().await.unwrap()
    }

    /// Another worker, where there can be one; else the same.
    pub(crate) async fn open_beside(&self, ledger: &Arc<dyn Ledger>) -> Arc<dyn Ledger> {
        if self.is_shared() { self.open().await } else { ledger.clone() }
    }

    /// Closes it, and opens it again once it is closed.
    pub(crate) async fn reopen(&self, ledger: Arc<dyn Ledger>) -> Arc<dyn Ledger> {
        assert_eq!(Arc::strong_count(&ledger), 1, "somebody else has the ledger");
        drop(ledger);
        if self.is_shared() {
            let end = Instant::now() + Duration::from_secs(60);
            // The worker says that it leaves after the last task, and nobody waits for that but us.
            while self.ask("SELECT count(*)::text FROM worker WHERE until > clock_timestamp()").await != "0\n" {
                assert!(Instant::now() < end, "a worker does not leave");
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
        self.open().await
    }

    /// All rows of all tables.
    pub(crate) async fn dump(&self) -> String {
        let mut all = String::new();
        for table in TABLES {
            writeln!(all, "{table}").unwrap();
            let sql = match self {
                Self::Sqlite(_) => format!("SELECT * FROM {table}"),
                Self::Postgres { .. } => format!("SELECT one::text FROM {table} one ORDER BY 1"),
            };
            all.push_str(&self.ask(&sql).await);
        }
        all
    }

    /// The rows of a query, one in each line.
    pub(crate) async fn ask(&self, sql: &str) -> String {
        let mut text = String::new();
        match self {
            Self::Sqlite(directory) => {
                let connection = sqlite::read_only(&sqlite::file(directory.path())).unwrap();
                let mut select = connection.prepare(sql).unwrap();
                let columns = select.column_count();
                let mut rows = select.query([]).unwrap();
                while let Some(row) = rows.next().unwrap() {
                    let values: Vec<Value> = (0..columns).map(|column| row.get(column).unwrap()).collect();
                    writeln!(text, "{values:?}").unwrap();
                }
            }
            Self::Postgres { .. } => {
                for row in self.client().await.query(sql, &[]).await.unwrap() {
                    writeln!(text, "{}", row.get::<_, String>(0)).unwrap();
                }
            }
        }
        text
    }

    /// Changes it behind the ledger's back.
    pub(crate) async fn meddle(&self, sqlite: &str, postgres: &str) {
        match self {
            Self::Sqlite(directory) => {
                let connection = rusqlite::Connection::open(sqlite::file(directory.path())).unwrap();
                connection.execute_batch(sqlite).unwrap();
            }
            Self::Postgres { .. } => self.client().await.batch_execute(postgres).await.unwrap(),
        }
    }

    async fn client(&self) -> tokio_postgres::Client {
        let Self::Postgres { address, key } = self else { panic!("there is no server") };
        let (client, connection) = tokio_postgres::connect(address, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        let schema: String = key[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        client.batch_execute(&format!("SET search_path = rialto_{schema}")).await.unwrap();
        client
    }
}
