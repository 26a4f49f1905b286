//! What the disk can do: how often a second it can be waited for.

use std::{
    fs::File,
    io::Write,
    path::Path,
    time::{Duration, Instant},
};

use rusqlite::Connection;

use crate::Failure;

/// Appends of 4 KiB, each waited for.
pub fn syncs(directory: &Path, time: Duration) -> Result<f64, Failure> {
    let mut file = File::create(directory.join("syncs"))?;
    let start = Instant::now();
    let mut count = 0;
    while start.elapsed() < time {
        file.write_all(&[7; 4096])?;
        file.sync_data()?;
        count += 1;
    }
    Ok(f64::from(count) / start.elapsed().as_secs_f64())
}

/// Transactions of one small row, with the settings of the ledger.
pub fn commits(directory: &Path, time: Duration) -> Result<f64, Failure> {
    let connection = Connection::open(directory.join("commits.db"))?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.execute_batch("CREATE TABLE IF NOT EXISTS row (number INTEGER PRIMARY KEY, text TEXT NOT NULL)")?;
    let mut insert = connection.prepare("INSERT INTO row (text) VALUES (?1)")?;
    let text = "x".repeat(100);
    let start = Instant::now();
    let mut count = 0;
    while start.elapsed() < time {
        insert.execute([&text])?;
        count += 1;
    }
    Ok(f64::from(count) / start.elapsed().as_secs_f64())
}
