//! What a wallet answers, as far as it can be believed.

use super::line::Complaint;
use crate::answer::{malformed, one_line, preimage};
use rialto_payment::amount::Msat;
use rialto_payment::secret::PaymentHash;
use rialto_payment::wallet::{Error, Payment, Receipt, Standing};
use serde::Deserialize;

/// Its code for what it does not know.
const NOT_FOUND: &str = "NOT_FOUND";

impl Complaint {
    pub(super) fn is_not_found(&self) -> bool {
        self.code == NOT_FOUND
    }

    /// Whether it was not even tried.
    pub(super) fn is_plain(&self) -> bool {
        !matches!(self.code.as_str(), "PAYMENT_FAILED" | "INTERNAL" | "OTHER" | "")
    }

    pub(super) fn is_failed_payment(&self) -> bool {
        self.code == "PAYMENT_FAILED"
    }
}

impl From<Complaint> for Error {
    fn from(complaint: Complaint) -> Self {
        match complaint.code.as_str() {
            "INSUFFICIENT_BALANCE" => Error::Insufficient,
            "NOT_IMPLEMENTED" => Error::Unsupported("it does not know how"),
            "UNSUPPORTED_ENCRYPTION" => Error::Unsupported("it does not know the encryption that it offers"),
            code => Error::Refused(one_line(format!("{} ({code})", complaint.words).trim_start())),
        }
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct Made {
    pub(super) invoice: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Balance {
    pub(super) balance: u64,
}

#[derive(Debug, Deserialize)]
pub(super) struct Abilities {
    pub(super) methods: Vec<String>,
}

/// What was paid.
#[derive(Deserialize)]
pub(super) struct Paid {
    #[serde(default)]
    preimage: Option<String>,
    #[serde(default)]
    fees_paid: Option<u64>,
}

impl Paid {
    pub(super) fn receipt(&self, hash: PaymentHash) -> Result<Receipt, Error> {
        let fee = Msat::new(self.fees_paid.unwrap_or(0)).ok_or_else(|| malformed("the fee"))?;
        Ok(Receipt { preimage: preimage(self.preimage.as_deref(), hash)?, fee })
    }
}

/// An invoice or a payment, as a wallet tells of it.
#[derive(Deserialize)]
pub(super) struct Transaction {
    #[serde(rename = "type", default)]
    way: String,
    #[serde(default)]
    state: Option<String>,
    #[serde(default)]
    payment_hash: Option<String>,
    #[serde(default)]
    amount: Option<u64>,
    #[serde(default)]
    settled_at: Option<u64>,
    #[serde(flatten)]
    paid: Paid,
}

#[derive(Deserialize)]
pub(super) struct Transactions {
    pub(super) transactions: Vec<Transaction>,
}

impl Transaction {
    pub(super) fn is_outgoing(&self) -> bool {
        self.way == "outgoing"
    }

    pub(super) fn is_about(&self, hash: PaymentHash) -> bool {
        self.payment_hash.as_deref().is_some_and(|text| text.parse() == Ok(hash))
    }

    /// Wallets of old say nothing of states. That they tell the preimage proves nothing: it is theirs from the start.
    fn is_settled(&self) -> bool {
        match &self.state {
            Some(state) => state == "settled",
            None => self.settled_at.is_some_and(|time| time > 0),
        }
    }

    pub(super) fn standing(&self, hash: PaymentHash) -> Result<Standing, Error> {
        if self.is_outgoing() {
            return Ok(Standing::Missing);
        }
        if !self.is_about(hash) {
            return Err(malformed("it tells of another invoice than was asked for"));
        }
        let amount = || self.amount.and_then(Msat::new).ok_or_else(|| malformed("the amount"));
        Ok(match self.state.as_deref() {
            _ if self.is_settled() => Standing::Settled { amount: amount()? },
            Some("accepted") => Standing::Held { amount: amount()? },
            Some("expired" | "failed" | "cancelled" | "canceled") => Standing::Over,
            // What is not known is not over.
            _ => Standing::Open,
        })
    }

    pub(super) fn payment(&self, hash: PaymentHash) -> Result<Payment, Error> {
        if !self.is_about(hash) {
            return Err(malformed("it tells of another payment than was asked for"));
        }
        // Here the preimage proves it: only the payee can have told.
        let receipt = self.paid.receipt(hash)?;
        Ok(match self.state.as_deref() {
            _ if self.is_settled() || receipt.preimage.is_some() => Payment::Paid(receipt),
            Some("failed" | "expired") => Payment::Not,
            _ => Payment::Pending,
        })
    }
}
