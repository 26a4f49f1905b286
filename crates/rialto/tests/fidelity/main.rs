//! What goes through the gateway comes out as it went in, byte for byte, but for ids, tool names and progress tokens.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that cannot go on should panic; these are tests")]

#[path = "../stage/mod.rs"]
mod stage;

mod asks;
mod eras;
mod merging;
mod notices;
mod requests;
mod results;

fn main() {
    stage::puppet::play_if_asked();
    let cases = [results::CASES, requests::CASES, notices::CASES, asks::CASES, merging::CASES, eras::CASES];
    stage::runner::main(&cases, &[]);
}
