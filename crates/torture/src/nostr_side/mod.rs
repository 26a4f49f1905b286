//! Everything that the tests of the Nostr side need, made here and not taken from the product: events, sealing, a raw
//! client, a relay that misbehaves on demand, and an MCP server that keeps a list of what it did.
//!
//! Of other people's code only the arithmetic is used (keys, signatures, AES, NIP-44). A mistake in the product's own codec is
//! then not repeated here.

pub mod actor;
pub mod client;
pub mod customer;
pub mod desk;
pub mod event;
pub mod fake_provider;
pub mod fake_relay;
pub mod filter;
pub mod harm;
pub mod host;
pub mod log;
pub mod message;
pub mod messenger;
pub mod process;
pub mod random;
pub mod scene;
pub mod sealed;
pub mod shop;
pub mod terminal;
pub mod weather;
pub mod world;

use std::sync::OnceLock;
use std::time::Duration;

use tokio::runtime::Runtime;

/// How long a test waits for what must happen. Long, as the machine may be busy; nothing waits this long that works.
pub const PATIENCE: Duration = Duration::from_secs(40);

/// Carries all sockets of this test binary.
pub fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap())
}
