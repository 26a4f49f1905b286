//! Jobs as they are kept, and the steps that move them on.

use rialto_payment::amount::Msat;
use rialto_payment::secret::{PaymentHash, Preimage, Secret};

/// An event's id, or a key (x only).
pub type Id = [u8; 32];

/// What a coin of ecash is known by.
pub type Coin = [u8; 33];

/// How far a job has come. The numbers are on disk and never change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Stage {
    /// The wallet is being asked for an invoice.
    Asking = 1,
    /// The customer was told what it costs.
    Quoted = 2,
    /// A token is being changed at its mint.
    Receiving = 3,
    /// The money is here, and it may run.
    Funded = 4,
    Running = 5,
    /// The answer is known, and given once the money is taken.
    Settling = 6,
    Done = 7,
}

/// How a job is paid. The numbers are on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Rail {
    /// All from what we owe the customer.
    Credit = 1,
    /// An ordinary invoice.
    Invoice = 2,
    /// An invoice whose money is held.
    Hold = 3,
    /// Ecash.
    Token = 4,
}

/// Where the money of a job is. The numbers are on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Money {
    /// With the customer.
    Open = 1,
    /// In our wallet, and goes back unless we take it.
    Held = 2,
    /// In our wallet, for a job that has no answer yet.
    Ours = 3,
    /// Held, and to be taken.
    Taking = 4,
    /// Held, and to be given back.
    Returning = 5,
    /// Earned.
    Taken = 6,
    /// Given back.
    Returned = 7,
    /// Noted as credit.
    Credited = 8,
    /// Not paid in time. It may still come.
    Lapsed = 9,
    /// Not paid in time, and nothing will come any more.
    Closed = 10,
}

macro_rules! numbered {
    ($name:ident: $($variant:ident),+) => {
        impl $name {
            pub const ALL: &[$name] = &[$($name::$variant),+];

            pub fn number(self) -> u8 {
                self as u8
            }

            /// What a number on disk means.
            pub fn from_number(number: i64) -> Option<Self> {
                Self::ALL.iter().copied().find(|one| i64::from(one.number()) == number)
            }

            pub fn name(self) -> &'static str {
                match self { $($name::$variant => stringify!($variant)),+ }
            }
        }
    };
}

numbered!(Stage: Asking, Quoted, Receiving, Funded, Running, Settling, Done);
numbered!(Rail: Credit, Invoice, Hold, Token);
numbered!(Money: Open, Held, Ours, Taking, Returning, Taken, Returned, Credited, Lapsed, Closed);

/// What a job costs, and how that is paid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quote {
    pub tool: String,
    pub price: Msat,
    /// Of the price, what we owed the customer.
    pub credit: Msat,
    pub rail: Rail,
    pub money: Money,
    /// No two quotes have the same.
    pub hash: Option<PaymentHash>,
    /// Only of money that is held.
    pub preimage: Option<Preimage>,
    pub invoice: Option<String>,
    pub token: Option<Secret>,
    /// Seconds since 1970.
    pub expires: u64,
    /// What has come.
    pub paid: Msat,
}

impl Quote {
    /// What the customer still has to pay.
    pub fn due(&self) -> Msat {
        self.price.saturating_sub(self.credit)
    }
}

/// One request, as far as it must be remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    pub id: Id,
    pub customer: Id,
    pub stage: Stage,
    /// When it came, and when it changed last; seconds since 1970.
    pub came: u64,
    pub at: u64,
    /// How it came and how it is answered, in the provider's own words.
    pub origin: String,
    /// The request itself, until it has run.
    pub request: Option<String>,
    /// How often it was begun.
    pub attempts: u32,
    /// Changes with each worker that has it; see [`Step::fence`].
    pub fence: u64,
    pub quote: Option<Quote>,
    /// Signed, as they are sent.
    pub answers: Vec<String>,
}

/// What a job begins with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct New {
    pub customer: Id,
    pub came: u64,
    pub origin: String,
    pub request: Option<String>,
}

/// Where a job must be for a step to count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Before {
    /// Nobody has heard of it.
    Unknown(Box<New>),
    Stage(Stage),
}

/// What a customer gets or uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Negative if it is used. More than there is cannot be.
    pub msat: i64,
    pub why: &'static str,
}

/// One of the calls that each customer has for nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FreeUse {
    pub tool: String,
    /// How many there are in all.
    pub of: u32,
}

/// Moves one job on: all of it, or nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    pub id: Id,
    pub before: Before,
    /// That of the job as it was taken. A worker whose job was given to another cannot move it any more.
    pub fence: u64,
    pub stage: Stage,
    pub at: u64,
    /// In the place of the one before, if there is one.
    pub quote: Option<Quote>,
    /// Coins that pay for it. None of them pays twice.
    pub coins: Vec<Coin>,
    pub credit: Option<Entry>,
    pub free_use: Option<FreeUse>,
    /// In the place of those before.
    pub answers: Option<Vec<String>>,
    /// It concerns money: on the disk before the step counts as committed, so that not even a power cut undoes it. Others
    /// survive the end of the process.
    pub durable: bool,
}

impl Step {
    /// A step that only moves a job.
    pub fn new(id: Id, before: Before, stage: Stage, at: u64) -> Self {
        Self {
            id,
            before,
            fence: 0,
            stage,
            at,
            quote: None,
            coins: Vec::new(),
            credit: None,
            free_use: None,
            answers: None,
            durable: false,
        }
    }
}

/// What has become of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It counts; later steps of the job need this fence.
    Taken {
        fence: u64,
    },
    Refused(Refusal),
}

/// Why a step does not count. Nothing of it was kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("the request is known already")]
    Known(Stage),
    #[error("the job is not where it was")]
    Moved,
    #[error("the payment hash belongs to another job")]
    HashUsed,
    #[error("the coins have paid for another job")]
    CoinUsed,
    #[error("there is not so much credit")]
    NoCredit,
    #[error("the free calls are used up")]
    NoneFree,
}
