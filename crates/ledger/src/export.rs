//! All jobs, for bookkeeping. What opens a payment (preimages, tokens) and what was said (requests, answers) stays where it is.

use crate::job::{Money, Rail, Stage};
use crate::ledger::Error;
use crate::look::{Look, Next, Row};
use serde::{Deserialize, Serialize};

/// One job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Record {
    pub id: String,
    pub customer: String,
    pub stage: &'static str,
    /// Seconds since 1970.
    pub came: u64,
    pub at: u64,
    pub attempts: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quote: Option<Quoted>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub credits: Vec<Credit>,
}

/// What it cost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Quoted {
    pub tool: String,
    pub price_msat: u64,
    pub credit_msat: u64,
    pub rail: &'static str,
    pub money: &'static str,
    pub payment_hash: Option<String>,
    pub expires: u64,
    pub paid_msat: u64,
}

/// What the customer got from us, or used, with this job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Credit {
    pub at: u64,
    pub msat: i64,
    pub why: String,
}

const SQL: &str = "SELECT HEX(job.id)HEX, HEX(job.customer)HEX, CAST(stage AS BIGINT), came, job.at, CAST(attempts AS BIGINT),
        tool, price, quote.credit, CAST(rail AS BIGINT), CAST(money AS BIGINT), HEX(hash)HEX, expires, quote.paid, entries
    FROM job LEFT JOIN quote ON quote.job = job.id
    LEFT JOIN (SELECT credit.job AS of_job, ENTRIES('at', at, 'msat', msat, 'why', why)ENTRIES AS entries
        FROM credit GROUP BY credit.job) AS credits ON of_job = job.id
    ORDER BY came, job.id";

/// Whether to go on with the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum More {
    Yes,
    No,
}

/// Gives every job to `take`, the oldest first.
pub async fn export(look: &Look, mut take: impl FnMut(Record) -> More) -> Result<(), Error> {
    look.each(SQL, |row| {
        Ok(match take(record(row)?) {
            More::Yes => Next::More,
            More::No => Next::Enough,
        })
    })
    .await
}

fn record(row: &dyn Row) -> Result<Record, Error> {
    let text = |column| Ok::<_, Error>(row.text(column)?.unwrap_or_default());
    let number = |column| Ok::<_, Error>(row.number(column)?.unwrap_or(0));
    let amount = |column| number(column).map(|number| u64::try_from(number).unwrap_or(0));
    let quote = match row.text(6)? {
        None => None,
        Some(tool) => Some(Quoted {
            tool,
            price_msat: amount(7)?,
            credit_msat: amount(8)?,
            rail: Rail::from_number(number(9)?).map_or("unknown", Rail::name),
            money: Money::from_number(number(10)?).map_or("unknown", Money::name),
            payment_hash: row.text(11)?.filter(|hash| !hash.is_empty()),
            expires: amount(12)?,
            paid_msat: amount(13)?,
        }),
    };
    let credits = match row.text(14)? {
        None => Vec::new(),
        Some(entries) => serde_json::from_str(&entries).map_err(|error| Error::Broken(error.to_string()))?,
    };
    Ok(Record {
        id: text(0)?,
        customer: text(1)?,
        stage: Stage::from_number(number(2)?).map_or("unknown", Stage::name),
        came: amount(3)?,
        at: amount(4)?,
        attempts: amount(5)?,
        quote,
        credits,
    })
}

/// The columns of [`Record::csv`].
pub const CSV_HEADER: &str = "id,customer,stage,came,at,attempts,tool,price_msat,credit_msat,rail,money,payment_hash,expires,\
    paid_msat,credited_msat";

impl Record {
    /// One line of a table; the entries of credit are one sum.
    pub fn csv(&self) -> String {
        let Record { id, customer, stage, came, at, attempts, .. } = self;
        let quote = match &self.quote {
            None => ",,,,,,,".to_owned(),
            Some(quote) => {
                let Quoted { tool, price_msat, credit_msat, rail, money, payment_hash, expires, paid_msat } = quote;
                let (tool, hash) = (cell(tool), payment_hash.as_deref().unwrap_or_default());
                format!("{tool},{price_msat},{credit_msat},{rail},{money},{hash},{expires},{paid_msat}")
            }
        };
        let credited: i64 = self.credits.iter().map(|credit| credit.msat).sum();
        format!("{id},{customer},{stage},{came},{at},{attempts},{quote},{credited}")
    }
}

/// A text that a spreadsheet reads as text: quoted where it must be, and never as a formula.
fn cell(text: &str) -> String {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let text = if is_formula { format!("'{text}") } else { text.to_owned() };
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}
