//! What goes through the gateway comes out as it went in, byte for byte, but for ids, tool names and progress tokens.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it is its own runner, and plays a server that logs")]

mod asks;
mod eras;
mod merging;
mod notices;
mod requests;
mod results;
mod slips;

fn main() {
    torture::stage::puppet::play_if_asked();
    let cases =
        [results::CASES, slips::CASES, requests::CASES, notices::CASES, asks::CASES, merging::CASES, eras::CASES];
    torture::stage::runner::main(&cases, &[]);
}
