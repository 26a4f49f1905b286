//! Servers that die, hang, flood and refuse to go, and a gateway that keeps its word to everybody else.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that cannot go on should panic; these are tests")]

#[path = "../stage/mod.rs"]
mod stage;

fn main() {
    stage::puppet::play_if_asked();
    stage::runner::main(&[], &[]);
}
