//! Manifests and direct messages, the buying side: what `rialto find`, `show`, `call` and `use` make of a provider that
//! the test plays.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it is its own runner")]

mod errors;
mod foreign;
mod hostile;
mod hosts;
mod market;
mod orders;
mod pins;
mod replies;
mod untagged;
mod ways;

fn main() {
    torture::nostr_side::actor::play_if_asked();
    let together = [
        ways::CASES,
        orders::CASES,
        foreign::CASES,
        hostile::CASES,
        replies::CASES,
        untagged::CASES,
        errors::CASES,
        hosts::CASES,
        pins::CASES,
    ];
    torture::stage::runner::main(&together, &[]);
}
