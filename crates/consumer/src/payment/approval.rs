//! Asking a person.

use super::bill::Bill;
use rialto_ledger::spending::Denied;
use rialto_payment::amount::Msat;
use std::fmt;
use std::future::Future;
use std::pin::Pin;

/// What is answered, later.
pub type Later<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What a person is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The provider's name and the tool's, fit to be shown.
    pub service: String,
    pub tool: String,
    pub amount: Msat,
    /// What sending it may cost beyond that.
    pub max_fee: Msat,
    /// Why it is not paid without asking.
    pub reason: Reason,
}

/// In one line.
impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Question { service, tool, amount, max_fee, .. } = self;
        write!(f, "Pay {amount} to {service} for {tool}? (fees: up to {max_fee})")
    }
}

/// Why a person is asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    #[error("{0}")]
    Budget(Denied),
    #[error("it is more than the {price} that the tool says it costs")]
    AbovePrice { price: Msat },
}

/// What a person says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    Pay,
    Decline,
    /// There is nobody to ask.
    NobodyThere,
}

/// Somebody who can be asked.
pub trait Approver: fmt::Debug + Send + Sync {
    fn ask<'a>(&'a self, question: &'a Question) -> Later<'a, Decision>;

    /// Shows an invoice to a person who pays it with another wallet; `false` if there is nobody.
    fn show<'a>(&'a self, bill: &'a Bill) -> Later<'a, bool>;
}

/// There is no person.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nobody;

impl Approver for Nobody {
    fn ask<'a>(&'a self, _question: &'a Question) -> Later<'a, Decision> {
        Box::pin(std::future::ready(Decision::NobodyThere))
    }

    fn show<'a>(&'a self, _bill: &'a Bill) -> Later<'a, bool> {
        Box::pin(std::future::ready(false))
    }
}
