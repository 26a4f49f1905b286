//! `lookup_invoice` and `list_transactions`: what is in the book.

use super::Wallet;
use super::answer::{Answer, Outcome, bytes, params};
use super::book::{Direction, State};
use super::pay;
use crate::nwc::{Code, Failure};
use ldk_node::bitcoin::hashes::Hash;
use ldk_node::lightning_types::payment::PaymentHash;
use serde::Deserialize;
use serde_json::{Value, json};

/// How many transactions are told at once, at most.
const MAX_LISTED: usize = 100;

/// About how long a list may be. Encrypted it is half as long again, and relays take no more than 64 KiB; whoever wants the
/// rest asks for it with an `offset`.
const MAX_LIST_BYTES: usize = 32 * 1024;

#[derive(Debug, Deserialize)]
struct Lookup {
    payment_hash: Option<String>,
    invoice: Option<String>,
}

#[derive(Debug, Deserialize)]
struct List {
    #[serde(default)]
    from: u64,
    until: Option<u64>,
    limit: Option<usize>,
    #[serde(default)]
    offset: usize,
    #[serde(default)]
    unpaid: bool,
    r#type: Option<String>,
}

impl Wallet {
    pub(super) fn lookup_invoice(&mut self, given: &Value) -> Outcome {
        let hash = match params(given)? {
            Lookup { payment_hash: Some(hash), .. } => PaymentHash(bytes("payment_hash", &hash)?),
            Lookup { invoice: Some(invoice), .. } => PaymentHash(pay::parse(&invoice)?.payment_hash().to_byte_array()),
            _ => return Err(Failure::new(Code::Other, "name the payment_hash or the invoice to look for")),
        };
        let entry = self.book.find(&hash).ok_or_else(|| Failure::new(Code::NotFound, "there is no such invoice"))?;
        Ok(Answer::Now(entry.report(self.moment())))
    }

    pub(super) fn list_transactions(&mut self, given: &Value) -> Outcome {
        // A client that has no wishes may leave the parameters out.
        let list: List = if given.is_null() { params(&json!({}))? } else { params(given)? };
        let direction = match list.r#type.as_deref() {
            None | Some("") => None,
            Some("incoming") => Some(Direction::Incoming),
            Some("outgoing") => Some(Direction::Outgoing),
            Some(other) => {
                return Err(Failure::new(Code::Other, format!("`{other}` is neither incoming nor outgoing")));
            }
        };
        let moment = self.moment();
        let dates = list.from..=list.until.unwrap_or(u64::MAX);
        let found: Vec<Value> = self
            .book
            .youngest_first()
            .filter(|entry| dates.contains(&entry.created_at))
            .filter(|entry| direction.is_none_or(|direction| entry.direction == direction))
            .filter(|entry| list.unpaid || entry.state(moment) == State::Settled)
            .skip(list.offset)
            .take(list.limit.unwrap_or(MAX_LISTED).min(MAX_LISTED))
            .map(|entry| entry.report(moment))
            .scan(0, |length, report| {
                *length += report.to_string().len();
                (*length <= MAX_LIST_BYTES).then_some(report)
            })
            .collect();
        Ok(Answer::Now(json!({"transactions": found})))
    }
}
