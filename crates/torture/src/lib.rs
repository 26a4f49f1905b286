//! Everything that torments Rialto: relays, wallets and MCP servers that do what a test says, customers that write down what they
//! were told, a checker of what all of them saw, and the rows of the scoreboard, which are experiments with these parts.
//!
//! The end-to-end tests of the product use the same parts. Nothing of this is ever shipped.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "an experiment that cannot go on should panic")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it is a program for people and their tests")]
#![allow(
    clippy::new_without_default,
    clippy::should_implement_trait,
    reason = "a stage is set with `new`, and chance has a `next`"
)]
#![allow(missing_debug_implementations, reason = "these are sockets and processes, and nobody prints them")]

pub mod crowd;
pub mod fused;
pub mod history;
pub mod machine;
pub mod market;
pub mod nostr_side;
pub mod peers;
pub mod rows;
pub mod score;
pub mod several;
pub mod simulation;
pub mod stage;

use std::sync::OnceLock;

/// Names the program under test, where it is not beside this one.
pub const PROGRAM: &str = "TORTURE_RIALTO";

/// The program under test: what [`PROGRAM`] names, or else [`built`].
pub fn rialto() -> &'static str {
    static NAMED: OnceLock<Option<String>> = OnceLock::new();
    let named = NAMED.get_or_init(|| std::env::var(PROGRAM).ok()).as_deref();
    named.or_else(built).expect("rialto is built: `cargo build -p rialto`")
}

/// `rialto`, if it is where Cargo puts it: beside this program, or beside the folder of tests that this is in.
pub fn built() -> Option<&'static str> {
    static PATH: OnceLock<Option<String>> = OnceLock::new();
    let find = || {
        let own = std::env::current_exe().ok()?;
        let mut places = own.ancestors().skip(1).take(2).map(|folder| folder.join("rialto"));
        places.find(|path| path.is_file())?.into_os_string().into_string().ok()
    };
    PATH.get_or_init(find).as_deref()
}

/// Plays a server, if this process was started for that.
pub fn play_if_asked() {
    nostr_side::actor::play_if_asked();
    stage::puppet::play_if_asked();
    fused::play_if_asked();
}
