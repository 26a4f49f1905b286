//! The official conformance suite: against our server, through our gateway in front of another implementation's server, and
//! against our client.
//!
//! The suite and the other server are installed by `interop/setup`; where they are missing these tests say so and pass,
//! with `CI=true` they fail. Our own server is this binary, started again.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it is its own runner")]

#[path = "../interop/peers.rs"]
mod peers;
#[allow(dead_code, reason = "its own `main` is for those who start it by hand")]
#[path = "../../../http/examples/conformance_server/main.rs"]
mod server;
#[path = "../interop/serving.rs"]
mod serving;
#[path = "../stage/mod.rs"]
mod stage;

mod findings;
mod gateway;
mod own;
mod suite;

/// The word that makes this binary the server.
const SERVE: &str = "serve-the-suite";

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let [SERVE, rest @ ..] = arguments.as_slice() {
        return server::run(rest).expect("the server runs");
    }
    stage::runner::main(&[own::CASES, gateway::CASES], &[]);
}
