//! Forged requests and forged answers: none of them counts.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it is its own runner")]

mod answers;
mod frames;
mod strangers;

fn main() {
    torture::nostr_side::actor::play_if_asked();
    torture::stage::runner::main(&[answers::CASES, frames::CASES, strangers::CASES], &[]);
}
