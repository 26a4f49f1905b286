//! The embedded relay as clients meet it: real sockets on the loopback, one module for each concern.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should panic")]

#[path = "embedded/basics.rs"]
mod basics;
#[path = "embedded/hostile.rs"]
mod hostile;
#[path = "embedded/identity.rs"]
mod identity;
#[path = "embedded/information.rs"]
mod information;
#[path = "embedded/lifetime.rs"]
mod lifetime;
#[path = "embedded/peer.rs"]
mod peer;
#[path = "embedded/persistence.rs"]
mod persistence;
#[path = "embedded/reading.rs"]
mod reading;
