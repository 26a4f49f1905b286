//! The program as a child process, a relay in ours, and clients that speak Nostr Wallet Connect to its wallets.
//!
//! Each test has a network of its own, so that nobody else moves the money that it counts.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that cannot go on should panic")]

mod hold;
mod payments;
mod program;
mod requests;
mod support;
