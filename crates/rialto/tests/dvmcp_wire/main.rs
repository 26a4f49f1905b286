//! Every event of the DVMCP wire, tag by tag, as a stranger with a raw WebSocket sees it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it is its own runner")]

#[path = "../nostr/mod.rs"]
mod nostr_side;
#[path = "../stage/mod.rs"]
mod stage;

mod announcements;
mod batches;
mod cancelling;
mod customers;
mod executions;
mod extensions;
mod instruments;
mod lists;
mod relays;
mod sealing;
mod sizes;

fn main() {
    nostr_side::actor::play_if_asked();
    let together = [
        instruments::CASES,
        announcements::CASES,
        relays::CASES,
        lists::CASES,
        executions::CASES,
        extensions::CASES,
        batches::CASES,
        cancelling::CASES,
        sizes::CASES,
        sealing::CASES,
        customers::CASES,
    ];
    stage::runner::main(&together, &[]);
}
