//! Clients of every version over HTTP, well-behaved ones and others, in front of servers that the tests play.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should panic")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it is its own runner, and plays a server that logs")]

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

mod access;
mod batches;
mod crowds;
mod health;
mod limits;
mod malformed;
mod oldest;
mod passing;
mod reloads;
mod sessions;
mod stateless;
mod stops;
mod streams;

fn main() {
    torture::stage::puppet::play_if_asked();
    // Hundreds of connections at once, each with two ends.
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }).unwrap();
    let together = [
        // The slowest first: they wait for times that the gateway sets.
        stops::CASES,
        limits::CASES,
        health::CASES,
        reloads::CASES,
        streams::CASES,
        sessions::CASES,
        oldest::CASES,
        stateless::CASES,
        batches::CASES,
        malformed::CASES,
        passing::CASES,
        access::CASES,
    ];
    // These keep the whole machine busy.
    torture::stage::runner::main(&together, &[crowds::CASES]);
}
