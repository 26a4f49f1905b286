//! Steps as SQL. If anything about one is not as it must be, nothing of it stays.

use crate::job::{Before, Entry, FreeUse, Id, New, Outcome, Quote, Refusal, Stage, Step};
use crate::ledger::Horizon;
use rusqlite::{Connection, OptionalExtension, Transaction, params};

/// Jobs that are forgotten at once.
const PURGED: i64 = 500;

/// Large numbers cannot be; SQLite's are signed.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn step(transaction: &Transaction<'_>, step: &Step) -> rusqlite::Result<Outcome> {
    let fence = match step.before {
        Before::Unknown(_) => 1,
        // Two may look for money that comes late. One of them notes it.
        Before::Stage(Stage::Done) => step.fence + 1,
        Before::Stage(_) => step.fence,
    };
    // Where only the job itself can refuse, it does so before anything is written.
    let may_need_undoing = concerns_money(step) || step.free_use.is_some();
    if may_need_undoing {
        run(transaction, "SAVEPOINT step")?;
    }
    // An error undoes the whole transaction.
    let outcome = tried(transaction, step)?;
    if may_need_undoing {
        if outcome.is_err() {
            run(transaction, "ROLLBACK TO step")?;
        }
        run(transaction, "RELEASE step")?;
    }
    Ok(match outcome {
        Ok(()) => Outcome::Taken { fence },
        Err(refusal) => Outcome::Refused(refusal),
    })
}

/// A statement of few words that is needed all the time, and so is read by SQLite only once.
fn run(connection: &Connection, sql: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute([]).map(drop)
}

type Tried = rusqlite::Result<Result<(), Refusal>>;

/// Leaves at the first refusal.
macro_rules! go {
    ($tried:expr) => {
        if let Err(refusal) = $tried? {
            return Ok(Err(refusal));
        }
    };
}

fn tried(connection: &Connection, step: &Step) -> Tried {
    match &step.before {
        Before::Unknown(new) => go!(begin(connection, step, new)),
        Before::Stage(before) => go!(go_on(connection, step, *before)),
    }
    if let Some(quote) = &step.quote {
        go!(put_quote(connection, &step.id, quote));
    }
    for coin in &step.coins {
        let sql = "INSERT INTO coin (id, job) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
        if connection.prepare_cached(sql)?.execute(params![coin, step.id])? == 0 {
            return Ok(Err(Refusal::CoinUsed));
        }
    }
    if let Some(entry) = &step.credit {
        go!(put_credit(connection, step, &customer(connection, step)?, entry));
    }
    if let Some(free) = &step.free_use {
        go!(use_free(connection, &customer(connection, step)?, free));
    }
    if let Some(answers) = &step.answers {
        connection.prepare_cached("DELETE FROM answer WHERE job = ?1")?.execute([step.id])?;
        let mut insert = connection.prepare_cached("INSERT INTO answer (job, number, event) VALUES (?1, ?2, ?3)")?;
        for (number, answer) in answers.iter().enumerate() {
            insert.execute(params![step.id, signed(number as u64), answer])?;
        }
    }
    Ok(Ok(()))
}

fn customer(connection: &Connection, step: &Step) -> rusqlite::Result<Id> {
    match &step.before {
        Before::Unknown(new) => Ok(new.customer),
        Before::Stage(_) => {
            connection.prepare_cached("SELECT customer FROM job WHERE id = ?1")?.query_row([step.id], |row| row.get(0))
        }
    }
}

/// Such a job is never forgotten: quotes, credits and coins belong to it.
fn concerns_money(step: &Step) -> bool {
    step.quote.is_some() || step.credit.is_some() || !step.coins.is_empty()
}

fn begin(connection: &Connection, step: &Step, new: &New) -> Tried {
    let sql = "INSERT INTO job (id, customer, stage, came, at, origin, request, attempts, sent, paid)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) ON CONFLICT DO NOTHING";
    let is_running = step.stage == Stage::Running;
    // What has nothing to say need not be sent.
    let is_sent = step.stage == Stage::Done && step.answers.as_ref().is_none_or(Vec::is_empty);
    let inserted = connection.prepare_cached(sql)?.execute(params![
        step.id,
        new.customer,
        step.stage.number(),
        signed(new.came),
        signed(step.at),
        new.origin,
        new.request.as_ref().filter(|_| step.stage != Stage::Done),
        is_running,
        is_sent,
        concerns_money(step),
    ])?;
    if inserted == 1 {
        return Ok(Ok(()));
    }
    Ok(Err(Refusal::Known(stage(connection, &step.id)?.unwrap_or(Stage::Done))))
}

fn stage(connection: &Connection, id: &Id) -> rusqlite::Result<Option<Stage>> {
    let mut select = connection.prepare_cached("SELECT stage FROM job WHERE id = ?1")?;
    let number: Option<i64> = select.query_row([id], |row| row.get(0)).optional()?;
    Ok(number.and_then(Stage::from_number))
}

fn go_on(connection: &Connection, step: &Step, before: Stage) -> Tried {
    let sql = "UPDATE job SET stage = ?3, at = ?4, attempts = attempts + ?5,
            request = CASE WHEN ?3 = 7 THEN NULL ELSE request END,
            sent = CASE
                WHEN ?6 THEN ?3 = 7 AND ?8
                WHEN ?2 < 7 AND ?3 = 7 THEN NOT EXISTS (SELECT 1 FROM answer WHERE job = ?1)
                ELSE sent END,
            paid = paid OR ?7,
            fence = fence + (?2 = 7)
        WHERE id = ?1 AND stage = ?2 AND fence = ?9";
    let changed = connection.prepare_cached(sql)?.execute(params![
        step.id,
        before.number(),
        step.stage.number(),
        signed(step.at),
        step.stage == Stage::Running,
        step.answers.is_some(),
        concerns_money(step),
        step.answers.as_ref().is_some_and(Vec::is_empty),
        signed(step.fence),
    ])?;
    Ok(if changed == 1 { Ok(()) } else { Err(Refusal::Moved) })
}

fn put_quote(connection: &Connection, job: &Id, quote: &Quote) -> Tried {
    if let Some(hash) = &quote.hash {
        let mut select = connection.prepare_cached("SELECT 1 FROM quote WHERE hash = ?1 AND job <> ?2")?;
        if select.exists(params![hash.0, job])? {
            return Ok(Err(Refusal::HashUsed));
        }
    }
    // Not `REPLACE`, which takes the row out of every index and puts it in again.
    let sql = "INSERT INTO quote
            (job, tool, price, credit, rail, money, hash, preimage, invoice, token, expires, paid)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
        ON CONFLICT (job) DO UPDATE SET tool = ?2, price = ?3, credit = ?4, rail = ?5, money = ?6, hash = ?7,
            preimage = ?8, invoice = ?9, token = ?10, expires = ?11, paid = ?12";
    connection.prepare_cached(sql)?.execute(params![
        job,
        quote.tool,
        signed(quote.price.get()),
        signed(quote.credit.get()),
        quote.rail.number(),
        quote.money.number(),
        quote.hash.map(|hash| hash.0),
        quote.preimage.as_ref().map(|preimage| *preimage.reveal()),
        quote.invoice,
        quote.token.as_ref().map(|token| token.reveal().to_owned()),
        signed(quote.expires),
        signed(quote.paid.get()),
    ])?;
    Ok(Ok(()))
}

fn put_credit(connection: &Connection, step: &Step, customer: &Id, entry: &Entry) -> Tried {
    let before = balance(connection, customer)?;
    let Some(after) = before.checked_add(entry.msat).filter(|after| *after >= 0) else {
        return Ok(Err(Refusal::NoCredit));
    };
    let sql = "INSERT INTO credit (customer, at, msat, balance, job, why) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    connection.prepare_cached(sql)?.execute(params![
        customer,
        signed(step.at),
        entry.msat,
        after,
        step.id,
        entry.why
    ])?;
    Ok(Ok(()))
}

/// What a customer has.
pub(super) fn balance(connection: &Connection, customer: &Id) -> rusqlite::Result<i64> {
    let sql = "SELECT balance FROM credit WHERE customer = ?1 ORDER BY number DESC LIMIT 1";
    Ok(connection.prepare_cached(sql)?.query_row([customer], |row| row.get(0)).optional()?.unwrap_or(0))
}

fn use_free(connection: &Connection, customer: &Id, free: &FreeUse) -> Tried {
    let sql = "INSERT INTO free_use (customer, tool, used) SELECT ?1, ?2, 1 WHERE ?3 > 0
        ON CONFLICT DO UPDATE SET used = used + 1 WHERE used < ?3";
    let changed = connection.prepare_cached(sql)?.execute(params![customer, free.tool, free.of])?;
    Ok(if changed == 1 { Ok(()) } else { Err(Refusal::NoneFree) })
}

pub(super) fn sent(transaction: &Transaction<'_>, ids: &[Id]) -> rusqlite::Result<()> {
    let mut update = transaction.prepare_cached("UPDATE job SET sent = 1 WHERE id = ?1 AND stage = 7 AND sent = 0")?;
    for id in ids {
        update.execute([id])?;
    }
    Ok(())
}

/// Forgets some; says whether there may be more.
pub(super) fn purge(transaction: &Transaction<'_>, horizon: Horizon) -> rusqlite::Result<bool> {
    let mut has_more = false;
    for (is_paid, before) in [(false, horizon.free), (true, horizon.paid)] {
        // A job with money that may still move is not over, whatever it says.
        let sql = "SELECT id FROM job WHERE paid = ?1 AND at < ?2 AND sent < 2 AND stage = 7
                AND NOT EXISTS (SELECT 1 FROM quote WHERE quote.job = job.id AND quote.money IN (1, 2, 3, 4, 5, 9))
            ORDER BY at LIMIT ?3";
        let mut select = transaction.prepare_cached(sql)?;
        let rows = select.query_map(params![is_paid, signed(before), PURGED], |row| row.get(0))?;
        let old: Vec<Id> = rows.collect::<rusqlite::Result<_>>()?;
        has_more |= signed(old.len() as u64) == PURGED;
        for id in &old {
            transaction.prepare_cached("DELETE FROM answer WHERE job = ?1")?.execute([id])?;
            // Credits and coins belong to jobs that were paid; those stay for ever, and are small.
            let sql = if is_paid {
                "UPDATE job SET sent = 2, origin = '', request = NULL WHERE id = ?1"
            } else {
                "DELETE FROM job WHERE id = ?1"
            };
            transaction.prepare_cached(sql)?.execute([id])?;
            if is_paid {
                let sql = "UPDATE quote SET preimage = NULL, invoice = NULL, token = NULL WHERE job = ?1";
                transaction.prepare_cached(sql)?.execute([id])?;
            }
        }
    }
    Ok(has_more)
}
