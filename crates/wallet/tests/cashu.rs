//! The ecash wallet at a real mint by others (Nutshell), on a line that fails on command.

#![cfg(unix)]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../rialto/tests/interop/mint.rs"]
mod mint;
#[path = "../../rialto/tests/interop/peers.rs"]
mod peers;
#[path = "cashu/scene.rs"]
mod scene;

#[path = "cashu/crashes.rs"]
mod crashes;
#[path = "cashu/invoices.rs"]
mod invoices;
#[path = "cashu/nutshell.rs"]
mod nutshell;
#[path = "cashu/place.rs"]
mod place;
#[path = "cashu/receiving.rs"]
mod receiving;
#[path = "cashu/sending.rs"]
mod sending;
#[path = "cashu/sweeping.rs"]
mod sweeping;
