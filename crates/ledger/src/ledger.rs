//! What every ledger can do, whichever database is behind it.

use crate::job::{Id, Job, Outcome, Stage, Step};
use rialto_payment::amount::Msat;
use std::fmt;
use std::future::Future;
use std::pin::Pin;

/// What a ledger answers, later.
pub type Later<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;

/// Why a ledger cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Another process has it.
    #[error("another process serves with this key")]
    InUse,
    /// It was written by a later version.
    #[error("the ledger was written by a later version of this program ({found}, this one knows {known})")]
    TooNew { found: i64, known: i64 },
    #[error("the ledger cannot be read or written: {0}")]
    Broken(String),
    /// A database elsewhere. Whether what was asked for last counts is not known.
    #[error("the ledger's database cannot be reached: {0}")]
    Unreachable(String),
}

/// What is known about one customer and one tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Account {
    /// What we owe them.
    pub credit: Msat,
    /// Calls they had for nothing.
    pub free_uses: u32,
}

/// A request that has been here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    pub id: Id,
    pub stage: Stage,
    /// When it changed last.
    pub at: u64,
}

/// How many jobs there are, and how much money.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Status {
    /// By stage.
    pub jobs: Vec<(Stage, u64)>,
    /// Answered, but not acknowledged by a relay.
    pub unsent: u64,
    pub earned: Msat,
    /// What we owe customers.
    pub owed: Msat,
    /// Held for jobs that have no answer yet, or in our wallet for them.
    pub held: Msat,
}

/// A provider's ledger.
pub trait Ledger: fmt::Debug + Send + Sync {
    /// Takes steps in this order; each counts on its own. When it returns they are kept.
    fn commit(&self, steps: Vec<Step>) -> Later<'_, Vec<Outcome>>;

    /// Notes that enough relays have the answers to these.
    fn sent(&self, ids: Vec<Id>) -> Later<'_, ()>;

    /// Requests that changed since then.
    fn recent(&self, since: u64) -> Later<'_, Vec<Seen>>;

    /// Takes the jobs that nobody looks after: those that are not done, and those whose answers were not sent since `unsent`.
    fn take_over(&self, unsent: u64) -> Later<'_, Vec<Job>>;

    /// Jobs whose quote ran out unpaid after `since`: money may still come for them.
    fn lapsed(&self, since: u64) -> Later<'_, Vec<Job>>;

    /// The answers to a request; none if they are not kept.
    fn answers(&self, id: Id) -> Later<'_, Vec<String>>;

    fn account<'a>(&'a self, customer: Id, tool: &'a str) -> Later<'a, Account>;

    /// Says that we are still here, and whether others are.
    fn renew(&self) -> Later<'_, Presence>;

    /// Several workers may serve with it, and one must take over what another has left.
    fn is_shared(&self) -> bool {
        false
    }

    /// Forgets jobs that are done: those that were free as a whole, of the others what was said. Some at a time; says whether
    /// there may be more.
    fn purge(&self, horizon: Horizon) -> Later<'_, bool>;

    fn status(&self) -> Later<'_, Status>;
}

/// Jobs that changed last before these times are forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Horizon {
    pub free: u64,
    pub paid: u64,
}

/// Who serves with this ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    Alone,
    WithOthers,
}
