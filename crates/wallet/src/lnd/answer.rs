//! What LND answers, as far as it is used.

use crate::answer::{malformed, preimage};
use crate::rest::{Said, refusal};
use rialto_payment::amount::Msat;
use rialto_payment::secret::PaymentHash;
use rialto_payment::wallet::{Error, Receipt, Standing};
use serde::Deserialize;
use serde_json::Value;

/// The code for what is not there.
const NOT_FOUND: u64 = 5;

#[derive(Deserialize)]
pub(super) struct Made {
    pub(super) payment_request: String,
}

/// An invoice.
#[derive(Deserialize)]
pub(super) struct Held {
    #[serde(default)]
    state: State,
    #[serde(default)]
    amt_paid_msat: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "UPPERCASE")]
enum State {
    #[default]
    Open,
    Settled,
    Canceled,
    Accepted,
}

pub(super) fn standing(held: &Held) -> Result<Standing, Error> {
    let amount = || number(&held.amt_paid_msat);
    Ok(match held.state {
        State::Open => Standing::Open,
        State::Accepted => Standing::Held { amount: amount()? },
        State::Settled => Standing::Settled { amount: amount()? },
        State::Canceled => Standing::Over,
    })
}

/// One line of what is told of a payment.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Event {
    Result(Paid),
    Error(Value),
}

#[derive(Deserialize)]
pub(super) struct Paid {
    pub(super) status: Status,
    #[serde(default)]
    payment_preimage: String,
    #[serde(default)]
    fee_msat: String,
    #[serde(default)]
    failure_reason: String,
}

#[derive(Deserialize, PartialEq, Eq, Clone, Copy)]
#[serde(from = "String")]
pub(super) enum Status {
    Succeeded,
    Failed,
    OnItsWay,
}

impl From<String> for Status {
    fn from(text: String) -> Self {
        match text.as_str() {
            "SUCCEEDED" => Status::Succeeded,
            "FAILED" => Status::Failed,
            // Whatever else there may be is no end.
            _ => Status::OnItsWay,
        }
    }
}

impl Paid {
    pub(super) fn receipt(&self, hash: PaymentHash) -> Result<Receipt, Error> {
        Ok(Receipt { preimage: preimage(Some(&self.payment_preimage), hash)?, fee: number(&self.fee_msat)? })
    }

    pub(super) fn failure(&self) -> Error {
        match self.failure_reason.as_str() {
            "FAILURE_REASON_INSUFFICIENT_BALANCE" => Error::Insufficient,
            reason => refusal(200, Some(&format!("the payment failed ({reason})"))),
        }
    }
}

#[derive(Deserialize)]
pub(super) struct Balances {
    #[serde(default)]
    local_balance: Local,
}

#[derive(Deserialize, Default)]
struct Local {
    #[serde(default)]
    msat: String,
}

impl Balances {
    pub(super) fn local(&self) -> Result<Msat, Error> {
        number(&self.local_balance.msat)
    }
}

/// A number that travels as text; what is nought may be left out.
fn number(text: &str) -> Result<Msat, Error> {
    let number = if text.is_empty() { Some(0) } else { text.parse().ok() };
    number.and_then(Msat::new).ok_or_else(|| malformed("an amount"))
}

/// Whether it does not know what was asked for. Not every version says so with the code that is meant for it.
pub(super) fn is_missing(said: &Said) -> bool {
    let Some(body) = &said.body else { return false };
    let code = body.get("code").or_else(|| body.get("grpc_code")).and_then(Value::as_u64);
    let words = words(said).unwrap_or_default();
    code == Some(NOT_FOUND) || words.contains("unable to locate invoice") || words.contains("payment isn't initiated")
}

fn words(said: &Said) -> Option<&str> {
    let body = said.body.as_ref()?;
    body.get("message").or_else(|| body.get("error")).and_then(Value::as_str)
}

pub(super) fn denied(said: &Said) -> Error {
    match words(said) {
        Some(words) if words.contains("insufficient") => Error::Insufficient,
        words => refusal(said.status, words),
    }
}
