//! Raw bytes in, raw bytes out: the real binary as a child process, checked line by line.
//!
//! Everything runs against two subjects, the example server and a gateway in front of it, because a gateway must be as
//! exact as the server it stands for. What is expected is written as data; [`case`] reads it, [`wire`] talks.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should panic")]

#[path = "raw/asking.rs"]
mod asking;
#[path = "raw/batch.rs"]
mod batch;
#[path = "raw/case.rs"]
mod case;
#[path = "raw/envelope.rs"]
mod envelope;
#[path = "raw/eras.rs"]
mod eras;
#[path = "raw/gateway.rs"]
mod gateway;
#[path = "raw/life.rs"]
mod life;
#[path = "raw/modern.rs"]
mod modern;
#[path = "raw/size.rs"]
mod size;
#[path = "raw/wire.rs"]
mod wire;
