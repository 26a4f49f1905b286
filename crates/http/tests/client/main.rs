//! The client half over real sockets, against servers that do what they should and what they should not.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should panic")]

mod failures;
mod gateways;
mod logins;
mod proxies;
mod sessions;
mod stage;
mod streams;
mod versions;
