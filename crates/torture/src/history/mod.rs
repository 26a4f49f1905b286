//! What happened, as relays, wallets, tools and the ledger each saw it, and whether that is what was promised.
//!
//! A [`History`] is plain data: an experiment collects it ([`collect`]), and [`check`](check::check) reads it without asking anybody.
//! The promises that a history can show broken are P1 to P6. That changed tools are not called (P7), that no input is too
//! much (P8), that dead servers come back (P9) and that secrets stay secret (P10) are not seen in it: other rows try those.

pub mod check;
pub mod collect;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;

use rialto_ledger::export::Record;
use rialto_wallet::testing::Deed;

use crate::nostr_side::event::Event;

/// Everything that was seen. Requests are known by the ids of their events, times are milliseconds since 1970.
#[derive(Debug, Clone, Default)]
pub struct History {
    pub requests: BTreeMap<String, Request>,
    /// What the relays heard about them, each time that they heard it.
    pub said: Vec<Said>,
    pub wallet: Vec<Deed>,
    pub runs: Vec<Run>,
    pub ledger: Vec<Record>,
    /// The answers that the ledger keeps for each request.
    pub stored: BTreeMap<String, Vec<Event>>,
}

/// One call, as it was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    pub provider: String,
    /// The account that its customer pays from, and the provider's.
    pub payer: usize,
    pub payee: usize,
    /// What the tool writes down when it runs for this request, and for no other.
    pub effect: String,
    /// What it costs, and the most that its customer lets it cost.
    pub price_msat: u64,
    pub cap_msat: u64,
    /// How often it may run. One, unless its operator says that running it again does no harm.
    pub most_runs: usize,
}

/// An event about a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    pub at: u64,
    pub request: String,
    pub event: Event,
    pub word: Word,
}

/// What an event means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Word {
    /// It costs so much, to be paid with this hash.
    Quote { hash: String, msat: u64 },
    /// It was begun, or goes on.
    Progress,
    /// Feedback that says how it ended.
    Ending,
    /// The answer, or one part of it: `success`, or the code of the error.
    Answer { part: usize, outcome: String },
}

/// A tool has run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    pub at: u64,
    pub effect: String,
}

/// What was promised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Promise {
    /// A request is executed at most once.
    P1,
    /// A request that was paid is answered: with a result, or with an error and the money back.
    P2,
    /// Nothing priced runs before its money is here.
    P3,
    /// One payment buys one run of one request.
    P4,
    /// An answer is stored before it is sent, and never another.
    P5,
    /// A customer pays whom it asked, no more than it allowed, and once.
    P6,
}

/// A promise that was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The request; of a payment that no request explains, its hash.
    pub request: String,
    pub fault: Fault,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// It had its effect more often than it may.
    RanAgain {
        times: usize,
    },
    /// It was paid, and there is no answer.
    Silence,
    /// It ended in two ways.
    TwoEnds {
        outcomes: Vec<String>,
    },
    /// It failed, and the customer has not got this back, as money or as credit.
    NotReturned {
        outcome: String,
        msat: i64,
    },
    /// It ran before its money was here, or without any.
    RanUnpaid,
    /// Its payment was asked for another request, too.
    SharedPayment {
        hash: String,
    },
    /// It was to be paid in two ways.
    TwoInvoices {
        hashes: Vec<String>,
    },
    /// It succeeded, and what was taken for it is not its price.
    WrongCharge {
        price: u64,
        taken: i64,
    },
    /// It is said to have succeeded, and has not run.
    NeverRan,
    /// Its answer was sent in two versions.
    AnswerChanged,
    /// An answer was sent that the ledger does not have.
    AnswerNotStored,
    /// The customer paid an invoice that the provider it asked has not given for it.
    PaidStranger,
    OverCap {
        msat: u64,
    },
    /// The customer's money left twice.
    PaidTwice,
}

impl Violation {
    pub fn promise(&self) -> Promise {
        match self.fault {
            Fault::RanAgain { .. } => Promise::P1,
            Fault::Silence | Fault::TwoEnds { .. } | Fault::NotReturned { .. } => Promise::P2,
            Fault::RanUnpaid => Promise::P3,
            Fault::SharedPayment { .. } | Fault::TwoInvoices { .. } | Fault::WrongCharge { .. } | Fault::NeverRan => {
                Promise::P4
            }
            Fault::AnswerChanged | Fault::AnswerNotStored => Promise::P5,
            Fault::PaidStranger | Fault::OverCap { .. } | Fault::PaidTwice => Promise::P6,
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is broken for {}: {:?}", self.promise(), self.request, self.fault)
    }
}
