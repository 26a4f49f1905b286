//! The selling side: a Nostr request becomes a job, a job becomes an answer.
//!
//! [`provider::run`] is the loop. On its way a request passes [`intake`](provider) (is it for us, in time, allowed?), the
//! [`catalogue`] (is there such a tool, do the arguments fit?), the [`limits`], the [`job`] machine, if it costs something the
//! [`till`], the ledger, and at last the MCP servers.

mod call;
mod catalogue;
pub mod event;
pub mod job;
mod known;
pub mod limits;
mod origin;
pub mod plan;
pub mod provider;
pub mod till;
