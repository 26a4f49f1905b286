//! Whether a ledger is sound: what must always be so, asked as questions that should find nothing.

use crate::ledger::Error;
use crate::look::{Look, Next};

/// Of each kind, so many are told.
const TOLD: usize = 20;

/// A job that has not changed for so many seconds is nobody's.
const STALE_SECS: u64 = 24 * 60 * 60;

/// Something that should not be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// A word for programs.
    pub kind: &'static str,
    /// The job, customer or coin, in hex; of the file as a whole there is none.
    pub id: Option<String>,
    pub words: String,
}

/// What was looked at, and what was found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    pub jobs: u64,
    pub findings: Vec<Finding>,
}

/// A kind, and the query that finds what should not be: an id, and what is wrong with it.
type Question = (&'static str, &'static str);

const QUESTIONS: [Question; 11] = [
    (
        "balance",
        "SELECT HEX(customer)HEX, 'after entry ' || CAST(number AS TEXT) || ' the balance is not what the entries add up to'
         FROM (SELECT customer, number, msat, balance,
             coalesce(lag(balance) OVER (PARTITION BY customer ORDER BY number), 0) AS before FROM credit) AS entries
         WHERE before + msat <> balance",
    ),
    ("negative", "SELECT HEX(customer)HEX, 'less credit than none' FROM credit WHERE balance < 0"),
    (
        "unanswered",
        "SELECT HEX(id)HEX, 'done, but without the answers that are to be sent' FROM job
         WHERE stage = 7 AND sent = 0 AND NOT EXISTS (SELECT 1 FROM answer WHERE answer.job = job.id)",
    ),
    (
        "money",
        "SELECT HEX(id)HEX, 'its money (' || CAST(money AS TEXT) || ') cannot be where it is in its stage ('
             || CAST(stage AS TEXT) || ')'
         FROM quote JOIN job ON job.id = quote.job
         WHERE NOT CASE WHEN stage <= 3 THEN money = 1 WHEN stage <= 5 THEN money IN (2, 3)
             WHEN stage = 6 THEN money IN (4, 5) ELSE money >= 6 END",
    ),
    ("stage", "SELECT HEX(id)HEX, 'in a stage of paid jobs, but without a quote' FROM job
         WHERE stage IN (1, 2, 3, 6) AND NOT EXISTS (SELECT 1 FROM quote WHERE quote.job = job.id)"),
    (
        "underpaid",
        "SELECT HEX(job)HEX, 'counts as earned, but less was paid than was due' FROM quote
         WHERE money = 6 AND paid < price - credit",
    ),
    (
        "preimage",
        "SELECT HEX(job)HEX, 'money is held for it, but what it takes to get it is not there' FROM quote
         WHERE rail = 3 AND money IN (2, 4) AND preimage IS NULL",
    ),
    ("hash", "SELECT HEX(hash)HEX, 'pays for several jobs' FROM quote WHERE hash IS NOT NULL GROUP BY hash HAVING count(*) > 1"),
    (
        "orphan",
        "SELECT HEX(id)HEX, 'a coin of no job' FROM coin WHERE NOT EXISTS (SELECT 1 FROM job WHERE job.id = coin.job)
         UNION ALL SELECT HEX(job)HEX, 'a quote of no job' FROM quote WHERE NOT EXISTS (SELECT 1 FROM job WHERE id = job)
         UNION ALL SELECT HEX(job)HEX, 'answers of no job' FROM answer WHERE NOT EXISTS (SELECT 1 FROM job WHERE id = job)
         UNION ALL SELECT HEX(job)HEX, 'credit of no job' FROM credit WHERE NOT EXISTS (SELECT 1 FROM job WHERE id = job)",
    ),
    (
        "forgettable",
        "SELECT HEX(id)HEX, 'has a quote, but counts as free' FROM job JOIN quote ON quote.job = job.id WHERE NOT job.paid",
    ),
    ("stale", "SELECT HEX(id)HEX, 'still in stage ' || CAST(stage AS TEXT) || ' after more than a day'
         FROM job WHERE stage < 7 AND at < STALE"),
];

/// Asks all questions of one moment. `now` is in seconds since 1970.
pub async fn check(look: &Look, now: u64) -> Result<Report, Error> {
    let mut report = Report::default();
    look.each("SELECT count(*) FROM job", |row| {
        report.jobs = u64::try_from(row.number(0)?.unwrap_or(0)).unwrap_or(0);
        Ok(Next::More)
    })
    .await?;
    if look.is_file() {
        file(look, &mut report).await?;
    }
    for (kind, sql) in QUESTIONS {
        let sql = sql.replace("STALE", &now.saturating_sub(STALE_SECS).to_string());
        let mut found = 0;
        look.each(&sql, |row| {
            let finding = Finding { kind, id: row.text(0)?, words: row.text(1)?.unwrap_or_default() };
            report.findings.push(finding);
            found += 1;
            Ok(if found < TOLD { Next::More } else { Next::Enough })
        })
        .await?;
    }
    Ok(report)
}

/// What only SQLite can tell about its file. PostgreSQL lets nothing in that refers to nothing; for its files there is
/// `pg_amcheck`.
async fn file(look: &Look, report: &mut Report) -> Result<(), Error> {
    let findings = &mut report.findings;
    look.each("PRAGMA integrity_check(20)", |row| {
        let words = row.text(0)?.unwrap_or_default();
        if words != "ok" {
            findings.push(Finding { kind: "integrity", id: None, words });
        }
        Ok(Next::More)
    })
    .await?;
    look.each("SELECT \"table\", \"parent\" FROM pragma_foreign_key_check LIMIT 20", |row| {
        let (table, parent) = (row.text(0)?.unwrap_or_default(), row.text(1)?.unwrap_or_default());
        let words = format!("a row of {table} belongs to a {parent} that is not there");
        findings.push(Finding { kind: "foreign_key", id: None, words });
        Ok(Next::More)
    })
    .await
}
