//! The official conformance suite: against our server, through our gateway in front of another implementation's server, and
//! against our client.
//!
//! The suite and the other server are installed by `interop/setup`; where they are missing these tests say so and pass,
//! with `CI=true` they fail. Our own server and client are this binary, started again.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it is its own runner")]

#[path = "../../../http/examples/conformance_client/main.rs"]
mod client;
#[path = "../interop/peers.rs"]
mod peers;
#[allow(dead_code, reason = "its own `main` is for those who start it by hand")]
#[path = "../../../http/examples/conformance_server/main.rs"]
mod server;
#[path = "../interop/serving.rs"]
mod serving;

mod findings;
mod gateway;
mod own;
mod own_client;
mod suite;

use std::process::ExitCode;

/// The words that make this binary the server, and the client.
const SERVE: &str = "serve-the-suite";
const CALL: &str = "call-the-suite";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        [SERVE, rest @ ..] => {
            server::run(rest).expect("the server runs");
            ExitCode::SUCCESS
        }
        [CALL, ..] => client::main(),
        _ => torture::stage::runner::main(&[own::CASES, own_client::CASES, gateway::CASES], &[]),
    }
}
