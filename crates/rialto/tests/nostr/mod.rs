//! Everything that the tests of the Nostr side need, made here and not taken from the product: events, sealing, a raw
//! client, a relay that misbehaves on demand, and an MCP server that keeps a list of what it did.
//!
//! Of other people's code only the arithmetic is used (keys, signatures, AES, NIP-44). A mistake in the product's own codec is
//! then not repeated here.

#![allow(dead_code, reason = "not every test binary uses all of it")]

pub(crate) mod actor;
pub(crate) mod client;
pub(crate) mod customer;
pub(crate) mod desk;
pub(crate) mod event;
pub(crate) mod fake_provider;
pub(crate) mod fake_relay;
pub(crate) mod filter;
pub(crate) mod host;
pub(crate) mod log;
pub(crate) mod message;
pub(crate) mod messenger;
pub(crate) mod process;
pub(crate) mod random;
pub(crate) mod scene;
pub(crate) mod sealed;
pub(crate) mod shop;
pub(crate) mod weather;
pub(crate) mod world;

use std::sync::OnceLock;
use std::time::Duration;

use tokio::runtime::Runtime;

/// How long a test waits for what must happen. Long, as the machine may be busy; nothing waits this long that works.
pub(crate) const PATIENCE: Duration = Duration::from_secs(40);

/// Carries all sockets of this test binary.
pub(crate) fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap())
}
