//! The pool against relays that behave, and against relays that do not. Everything runs over real sockets.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should panic")]

#[path = "pool/fake.rs"]
mod fake;
#[path = "pool/publishing.rs"]
mod publishing;
#[path = "pool/querying.rs"]
mod querying;
#[path = "pool/reading.rs"]
mod reading;
