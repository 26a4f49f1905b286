//! The provider between real relays and a service that counts: nothing runs twice, and everything is answered.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should panic")]

#[path = "provider/announced.rs"]
mod announced;
#[path = "provider/hostile.rs"]
mod hostile;
#[path = "provider/once.rs"]
mod once;
#[path = "provider/stage.rs"]
mod stage;
#[path = "provider/twin.rs"]
mod twin;
