//! The canonical Nostr tools as an MCP server.
//!
//! Each file in `tools` is one tool, and says everything about it: its name, what it takes and gives, what it does to the
//! world, and its code. [`tool`] is what they have in common, [`server`] the MCP server. A tool works on a
//! [`session::Session`]: the [`keyring`] (who we are, and who signs), the [`network`] (relays), and the guard that says what
//! is allowed.

mod argument;
mod blossom;
mod compose;
mod confirm;
pub mod conformance;
mod failure;
mod files;
mod follows;
mod guard;
mod keyring;
mod lightning;
mod list;
pub mod log;
mod message;
mod name;
mod network;
mod profile;
mod publish;
mod read;
mod record;
pub mod registry;
mod relay_list;
mod relays;
mod replace;
mod resources;
mod result;
mod server;
mod session;
mod shape;
mod signer;
mod store;
mod tool;
mod zap;

pub use self::failure::{Failure, Fault};
pub use self::guard::Guard;
pub use self::keyring::{Activate, Fate, Home, Identity, Keyring, Material, Passphrase, Place};
pub use self::server::Server;
pub use self::session::{Options, Session};
pub use self::signer::{Invitation, Remote, join, page};
pub use self::tool::{About, Effect, Entry, Status};

mod tools {
    use crate::tool::Entry;

    include!(concat!(env!("OUT_DIR"), "/tools.rs"));
}

/// All tools, in the order of the registry.
pub fn tools() -> Vec<Entry> {
    let mut tools = tools::all();
    tools.sort_by_key(|tool| (tool.about.place, tool.about.name));
    tools
}
