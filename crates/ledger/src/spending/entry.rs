//! What was spent, what is allowed, and why something is not.

use crate::job::Id;
use crate::ledger::Error;
use rialto_payment::amount::Msat;
use rialto_payment::secret::{PaymentHash, Secret};

/// How something is paid. The numbers are on disk and never change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Rail {
    Lightning = 1,
    Ecash = 2,
}

/// How far a payment has come. The numbers are on disk and never change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum State {
    /// Allowed and reserved; the wallet has not been asked.
    Intended = 1,
    /// The wallet is being asked.
    Paying = 2,
    Paid = 3,
    /// Nothing was paid, and nothing will be.
    Failed = 4,
    /// The wallet was asked, and did not say what it did.
    Unknown = 5,
}

/// Who allowed it. The numbers are on disk and never change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Approval {
    Budget = 1,
    Person = 2,
}

macro_rules! numbered {
    ($name:ident: $($variant:ident = $word:literal),+) => {
        impl $name {
            pub(super) fn number(self) -> i64 {
                i64::from(self as u8)
            }

            pub(super) fn from_number(number: i64) -> Option<Self> {
                [$($name::$variant),+].into_iter().find(|one| one.number() == number)
            }

            /// For people and programs.
            pub fn name(self) -> &'static str {
                match self { $($name::$variant => $word),+ }
            }
        }
    };
}

numbered!(Rail: Lightning = "lightning", Ecash = "ecash");
numbered!(State: Intended = "intended", Paying = "paying", Paid = "paid", Failed = "failed", Unknown = "unknown");
numbered!(Approval: Budget = "budget", Person = "person");

/// Something that is about to be paid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spend {
    /// The request that it is for. There is never a second payment for it.
    pub request: Id,
    pub provider: Id,
    /// The provider's name and the tool's, for people.
    pub service: String,
    pub tool: String,
    /// What stands in the invoice.
    pub amount: Msat,
    /// The most that sending it may cost.
    pub max_fee: Msat,
    pub hash: PaymentHash,
    pub invoice: String,
    /// When nobody can pay the invoice any more; seconds since 1970.
    pub expires: u64,
    pub approved: Approval,
    /// Seconds since 1970.
    pub at: u64,
}

/// Something that was paid, or was to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub spend: Spend,
    pub rail: Rail,
    /// Ecash that was given away, as long as it may come back.
    pub token: Option<Secret>,
    pub state: State,
    /// What sending it has cost, or may cost at most.
    pub fee: Msat,
    pub changed: u64,
    pub note: Option<String>,
}

/// What may be spent without asking a person. Nothing, unless it is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Budget {
    /// `None` for all services.
    pub service: Option<Id>,
    pub per_call: Msat,
    /// In any 24 hours.
    pub per_day: Msat,
}

/// What is left of the budgets for one service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Left {
    pub per_call: Msat,
    pub today: Msat,
}

/// Why something is not paid. Nothing was noted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    #[error("no budget is set")]
    NoBudget,
    #[error("it is more than the budget allows for one call ({cap})")]
    PerCall { cap: Msat },
    #[error("it is more than what is left of the budget for today ({left})")]
    PerDay { left: Msat },
    /// There is a payment for this request.
    #[error("a payment for this request was begun before ({})", .0.name())]
    RequestKnown(State),
    /// There is a payment with this hash.
    #[error("the invoice was paid for another call before ({})", .0.name())]
    HashKnown(State),
    #[error(transparent)]
    Ledger(#[from] Error),
}
