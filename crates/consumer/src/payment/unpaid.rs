//! Why something was not paid, in words that say what to do.

use crate::error::Demand;
use rialto_ledger::spending::{Denied, State};
use rialto_payment::amount::Msat;
use rialto_payment::invoice::Network;
use std::fmt;

/// A demand that was not met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unpaid {
    pub demand: Demand,
    /// What stands in the invoice; `None` if that cannot be said.
    pub amount: Option<Msat>,
    pub why: Why,
}

impl fmt::Display for Unpaid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.amount {
            Some(amount) => write!(f, "the provider wants to be paid {amount}: {}", self.why),
            None => write!(f, "the provider wants to be paid: {}", self.why),
        }
    }
}

/// Why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Why {
    #[error("nothing is paid for requests like this one")]
    NotForSale,
    #[error("no wallet is connected")]
    NoWallet,
    #[error("it gives no invoice that could be paid")]
    NoInvoice,
    #[error("{0}")]
    Invoice(String),
    #[error("its invoice leaves the amount open")]
    NoAmount,
    #[error("its invoice has expired")]
    Expired,
    #[error("its invoice is for another network ({0:?})")]
    Network(Network),
    #[error(transparent)]
    Denied(Denied),
    #[error("that is more than the {price} that the tool says it costs")]
    AbovePrice { price: Msat },
    #[error("that is more than the {0} that were allowed for this call")]
    AboveLimit(Msat),
    #[error("it was declined")]
    Declined,
    #[error("{0}")]
    Wallet(String),
    #[error("it asks for a second payment for the same request, which is never made")]
    Again,
    /// It may have been paid.
    #[error("it is not known whether the payment went through ({0})")]
    Unclear(String),
    #[error("what is spent cannot be noted: {0}")]
    Ledger(String),
}

impl Why {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        let budget = "rialto budget set --per-call SAT --per-day SAT    allows payments up to that without asking";
        match self {
            Why::NoWallet => {
                Some("rialto wallet connect    lets Rialto pay; or pay the invoice with another wallet".to_owned())
            }
            Why::Denied(Denied::NoBudget | Denied::PerCall { .. } | Denied::PerDay { .. }) => Some(budget.to_owned()),
            Why::AbovePrice { .. } => Some(
                "it is only paid if a person agrees: rialto call … --max-sat SAT allows it for one call".to_owned(),
            ),
            Why::AboveLimit(_) => Some("--max-sat SAT allows more for one call".to_owned()),
            Why::Unclear(_)
            | Why::Denied(Denied::RequestKnown(_) | Denied::HashKnown(State::Unknown | State::Paying)) => {
                Some("rialto wallet history    shows what became of it; it is never paid twice".to_owned())
            }
            Why::Wallet(_) => Some("rialto wallet show    says whether the wallet works, and what is in it".to_owned()),
            Why::Ledger(_) => Some("is the disk full, or the data directory not writable?".to_owned()),
            _ => None,
        }
    }

    /// Whether money may have left nevertheless.
    pub fn is_unclear(&self) -> bool {
        matches!(self, Why::Unclear(_))
    }
}

impl From<Denied> for Why {
    fn from(denied: Denied) -> Self {
        match denied {
            Denied::Ledger(error) => Why::Ledger(error.to_string()),
            other => Why::Denied(other),
        }
    }
}

impl From<rialto_ledger::ledger::Error> for Why {
    fn from(error: rialto_ledger::ledger::Error) -> Self {
        Why::Ledger(error.to_string())
    }
}
