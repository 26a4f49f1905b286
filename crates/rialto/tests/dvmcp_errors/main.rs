//! Everything that can be wrong with a request, and the exact answer to it; and what must get no answer at all.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it is its own runner")]

mod arguments;
mod crowds;
mod requests;
mod servers;
mod silence;
mod times;

fn main() {
    torture::nostr_side::actor::play_if_asked();
    let together = [requests::CASES, arguments::CASES, servers::CASES, crowds::CASES, times::CASES, silence::CASES];
    torture::stage::runner::main(&together, &[]);
}
