//! Calls that cost something, end to end: real programs, a real relay, and wallets that speak Nostr Wallet Connect.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should panic")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it is its own runner")]

#[path = "../interop/mint.rs"]
mod mint;
#[path = "../nostr/mod.rs"]
mod nostr_side;
<<<<<<< HEAD
#[path = "../interop/peers.rs"]
mod peers;
=======
#[path = "../../../ledger/tests/ledger/server.rs"]
mod server;
>>>>>>> crash
#[path = "../stage/mod.rs"]
mod stage;

mod crowd;
mod market;

mod calls;
mod crashes;
<<<<<<< HEAD
mod ecash;
mod forgery;

fn main() {
    nostr_side::actor::play_if_asked();
    let together = [calls::CASES, ecash::CASES, forgery::LATE, forgery::CLAIMS, forgery::WALLETS];
    // These need all of the machine.
    stage::runner::main(&together, &[crashes::CASES]);
=======
mod workers;

fn main() {
    nostr_side::actor::play_if_asked();
    stage::runner::main(&[calls::CASES], &[crashes::CASES, workers::CASES]);
>>>>>>> crash
}
