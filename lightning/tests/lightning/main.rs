//! The program as a child process, a relay in ours, and clients that speak Nostr Wallet Connect to its wallets.
//!
//! Each test has a network of its own, so that nobody else moves the money that it counts.

mod hold;
mod payments;
mod program;
mod requests;
mod support;
