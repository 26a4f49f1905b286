//! Manifests and direct messages, the selling side: what `rialto serve` publishes, answers and leaves unanswered.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it is its own runner")]

mod answers;
mod crowds;
mod forged;
mod instruments;
mod limits;
mod manifests;
mod mutations;
mod restarts;
mod silence;
mod times;
mod weather;
mod wires;

fn main() {
    torture::nostr_side::actor::play_if_asked();
    let together = [
        instruments::CASES,
        weather::CASES,
        manifests::CASES,
        wires::CASES,
        answers::CASES,
        limits::CASES,
        silence::CASES,
        forged::CASES,
        times::CASES,
        restarts::CASES,
    ];
    // These need all of the machine.
    let alone = [crowds::CASES, mutations::CASES];
    torture::stage::runner::main(&together, &alone);
}
