//! Relays that fail and lie, providers and servers that are killed: nothing is lost, and nothing runs twice.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it is its own runner")]

mod customers;
mod outages;
mod repeats;
mod restarts;
mod stops;
mod verdicts;

fn main() {
    torture::nostr_side::actor::play_if_asked();
    let together = [customers::CASES, outages::CASES, repeats::CASES, restarts::CASES, stops::CASES, verdicts::CASES];
    torture::stage::runner::main(&together, &[]);
}
