//! The rows that fit into every test run. They are shown as they end, which the standard runner would not do.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]
#![allow(clippy::print_stdout, reason = "it is its own runner")]

use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    // Only whole runs are wanted here; one row is run with `cargo run -p torture -- run R01`.
    if std::env::args().any(|argument| argument == "--list" || argument == "--ignored") {
        return ExitCode::SUCCESS;
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_torture"));
    command.args(["run", "all"]);
    // With the whole workspace Cargo has built the program already; it would have other features, built again alone.
    if let Some(program) = torture::built() {
        command.args(["--rialto", program]);
    }
    let passed = command.status().unwrap().success();
    let (word, good) = if passed { ("ok", 1) } else { ("FAILED", 0) };
    println!("\ntest result: {word}. {good} passed; {} failed; 0 ignored; 0 measured\n", 1 - good);
    if passed { ExitCode::SUCCESS } else { ExitCode::from(101) }
}
