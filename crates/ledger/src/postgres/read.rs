//! What is asked of the ledger.

use super::json::signed;
use super::link::words;
use crate::job::{Id, Job, Money, Quote, Rail, Stage};
use crate::ledger::{Account, Error, Seen, Status};
use rialto_payment::amount::Msat;
use rialto_payment::secret::{PaymentHash, Preimage, Secret};
use tokio_postgres::types::{FromSql, Type};
use tokio_postgres::{Client, Row};

/// Columns of a job with its quote and answers, as [`job`] reads them.
pub(super) const JOB: &str = "SELECT id, customer, stage::bigint, came, at, origin, request, attempts, fence,
        tool, price, quote.credit, rail::bigint, money::bigint, hash, preimage, invoice, token, expires, quote.paid,
        ARRAY(SELECT event FROM answer WHERE answer.job = job.id ORDER BY number)
    FROM job LEFT JOIN quote ON quote.job = job.id";

/// Something in the database that means nothing.
fn strange(what: &str) -> Error {
    Error::Broken(format!("there is a {what} that has no meaning"))
}

fn get<'a, T: FromSql<'a>>(row: &'a Row, column: usize) -> Result<T, Error> {
    row.try_get(column).map_err(|error| words(&error))
}

fn number(row: &Row, column: usize) -> Result<u64, Error> {
    u64::try_from(get::<i64>(row, column)?).map_err(|_| strange("number"))
}

fn msat(row: &Row, column: usize) -> Result<Msat, Error> {
    Msat::new(number(row, column)?).ok_or_else(|| strange("amount"))
}

fn bytes(row: &Row, column: usize) -> Result<Option<Id>, Error> {
    let Some(bytes) = get::<Option<&[u8]>>(row, column)? else { return Ok(None) };
    bytes.try_into().map(Some).map_err(|_| strange("key"))
}

fn id(row: &Row, column: usize) -> Result<Id, Error> {
    bytes(row, column)?.ok_or_else(|| strange("key"))
}

fn stage(row: &Row, column: usize) -> Result<Stage, Error> {
    Stage::from_number(get(row, column)?).ok_or_else(|| strange("stage"))
}

pub(super) fn job(row: &Row) -> Result<Job, Error> {
    let quote = match get::<Option<String>>(row, 9)? {
        None => None,
        Some(tool) => Some(Quote {
            tool,
            price: msat(row, 10)?,
            credit: msat(row, 11)?,
            rail: Rail::from_number(get(row, 12)?).ok_or_else(|| strange("rail"))?,
            money: Money::from_number(get(row, 13)?).ok_or_else(|| strange("state of money"))?,
            hash: bytes(row, 14)?.map(PaymentHash),
            preimage: bytes(row, 15)?.map(Preimage::new),
            invoice: get(row, 16)?,
            token: get::<Option<String>>(row, 17)?.map(Secret::new),
            expires: number(row, 18)?,
            paid: msat(row, 19)?,
        }),
    };
    Ok(Job {
        id: id(row, 0)?,
        customer: id(row, 1)?,
        stage: stage(row, 2)?,
        came: number(row, 3)?,
        at: number(row, 4)?,
        origin: get(row, 5)?,
        request: get(row, 6)?,
        attempts: u32::try_from(get::<i32>(row, 7)?).map_err(|_| strange("number"))?,
        fence: number(row, 8)?,
        quote,
        answers: get(row, 20)?,
    })
}

pub(super) fn seen(row: &Row) -> Result<Seen, Error> {
    Ok(Seen { id: id(row, 0)?, stage: stage(row, 1)?, at: number(row, 2)? })
}

type Rows = Result<Vec<Row>, tokio_postgres::Error>;

pub(super) async fn recent(client: &Client, since: u64) -> Rows {
    // In two halves, as the index is.
    let sql = "SELECT id, stage::bigint, at FROM job WHERE paid AND at >= $1 AND sent < 2
        UNION ALL SELECT id, stage::bigint, at FROM job WHERE NOT paid AND at >= $1 AND sent < 2";
    client.query_typed(sql, &[(&signed(since), Type::INT8)]).await
}

pub(super) async fn lapsed(client: &Client, since: u64) -> Rows {
    client.query_typed(&format!("{JOB} WHERE money = 9 AND expires >= $1"), &[(&signed(since), Type::INT8)]).await
}

pub(super) async fn answers(client: &Client, id: &Id) -> Rows {
    let sql = "SELECT event FROM answer WHERE job = $1 ORDER BY number";
    client.query_typed(sql, &[(&id.as_slice(), Type::BYTEA)]).await
}

pub(super) async fn account(client: &Client, customer: &Id, tool: &str) -> Result<Row, tokio_postgres::Error> {
    let sql = "SELECT
        coalesce((SELECT balance FROM credit WHERE customer = $1 ORDER BY number DESC LIMIT 1), 0),
        coalesce((SELECT used FROM free_use WHERE customer = $1 AND tool = $2), 0)";
    client.query_typed_one(sql, &[(&customer.as_slice(), Type::BYTEA), (&tool, Type::TEXT)]).await
}

pub(super) fn as_account(row: &Row) -> Result<Account, Error> {
    Ok(Account { credit: msat(row, 0)?, free_uses: u32::try_from(number(row, 1)?).unwrap_or(u32::MAX) })
}

/// Stages and counts, and then the sums.
pub(super) async fn status(client: &Client) -> Result<(Vec<Row>, Row), tokio_postgres::Error> {
    let jobs = client.query_typed("SELECT stage::bigint, count(*) FROM job GROUP BY stage", &[]).await?;
    let sql = "SELECT
        (SELECT count(*) FROM job WHERE stage = 7 AND sent = 0),
        (SELECT coalesce(sum(price), 0)::bigint FROM quote WHERE money = 6),
        (SELECT coalesce(sum(msat), 0)::bigint FROM credit),
        (SELECT coalesce(sum(paid), 0)::bigint FROM quote WHERE money IN (2, 3, 4, 5))";
    Ok((jobs, client.query_typed_one(sql, &[]).await?))
}

pub(super) fn as_status((rows, sums): &(Vec<Row>, Row)) -> Result<Status, Error> {
    let mut jobs: Vec<(Stage, u64)> = Stage::ALL.iter().map(|stage| (*stage, 0)).collect();
    for row in rows {
        let found = stage(row, 0)?;
        for (stage, count) in &mut jobs {
            if *stage == found {
                *count = number(row, 1)?;
            }
        }
    }
    Ok(Status { jobs, unsent: number(sums, 0)?, earned: msat(sums, 1)?, owed: msat(sums, 2)?, held: msat(sums, 3)? })
}
