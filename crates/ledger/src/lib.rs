//! What must survive a crash: jobs with their quotes and answers, credits, and what was spent.
//!
//! A provider writes [`Step`](job::Step)s: each moves one job on, together with everything that goes with it, entirely or not at
//! all. What a step permits (calling a tool, asking for money, publishing an answer) is done after it was committed, never
//! before. [`sqlite`] is the ledger of one process, [`postgres`] that of several. What a customer spends is in [`spending`].
//! [`check`] and [`export`] look at a ledger that somebody else uses.

pub mod check;
pub mod export;
pub mod job;
pub mod ledger;
pub mod look;
#[cfg(feature = "testing")]
pub mod model;
pub mod postgres;
pub mod spending;
pub mod sqlite;
