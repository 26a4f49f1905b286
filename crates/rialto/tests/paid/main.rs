//! Calls that cost something, end to end: real programs, a real relay, and wallets that speak Nostr Wallet Connect.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should panic")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it is its own runner")]

#[path = "../interop/mint.rs"]
mod mint;
#[path = "../interop/peers.rs"]
mod peers;
#[path = "../../../ledger/tests/ledger/server.rs"]
mod server;

mod calls;
mod ecash;
mod rails;
mod workers;

fn main() {
    torture::nostr_side::actor::play_if_asked();
    let together = [calls::CASES, ecash::CASES, rails::CASES];
    // It needs all of the machine.
    torture::stage::runner::main(&together, &[workers::CASES]);
}
