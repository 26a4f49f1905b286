//! Servers that die, hang, flood and refuse to go, and a gateway that keeps its word to everybody else.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it is its own runner, and plays a server that logs")]

mod deaths;
mod floods;
mod hangs;
mod orphans;
mod surroundings;

fn main() {
    torture::stage::puppet::play_if_asked();
    let together = [orphans::CASES, deaths::CASES, surroundings::CASES];
    // These measure time or memory, which company would falsify.
    let alone = [hangs::CASES, floods::CASES];
    torture::stage::runner::main(&together, &alone);
}
