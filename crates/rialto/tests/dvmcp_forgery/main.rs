//! Forged requests, forged seals, forged answers: none of them counts.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it is its own runner")]

mod answers;
mod floods;
mod frames;
mod seals;
mod strangers;

fn main() {
    torture::nostr_side::actor::play_if_asked();
    let together = [seals::CASES, answers::CASES, frames::CASES, strangers::CASES];
    // It needs all of the machine.
    let alone = [floods::CASES];
    torture::stage::runner::main(&together, &alone);
}
