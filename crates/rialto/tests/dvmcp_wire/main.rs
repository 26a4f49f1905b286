//! Every event of the DVMCP wire, tag by tag, as a stranger with a raw WebSocket sees it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it is its own runner")]

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
    torture::nostr_side::actor::play_if_asked();
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
    torture::stage::runner::main(&together, &[]);
}
