//! Calls that cost something, end to end: real programs, a real relay, and wallets that speak Nostr Wallet Connect.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it is its own runner")]

#[path = "../nostr/mod.rs"]
mod nostr_side;
#[path = "../../../ledger/tests/ledger/server.rs"]
mod server;
#[path = "../stage/mod.rs"]
mod stage;

mod crowd;
mod market;

mod calls;
mod crashes;
mod workers;

fn main() {
    nostr_side::actor::play_if_asked();
    stage::runner::main(&[calls::CASES], &[crashes::CASES, workers::CASES]);
}
