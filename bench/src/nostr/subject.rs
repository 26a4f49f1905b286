//! What is measured: our provider, and what others offer for MCP over Nostr.

use std::path::{Path, PathBuf};

use super::{
    peers,
    wire::{Dialect, Privacy, Wire},
};
use crate::Failure;

/// Stands in a command where the relay's address goes.
const RELAY: &str = "{relay}";

pub struct Subject {
    pub name: &'static str,
    pub dialect: Dialect,
    pub maker: Maker,
    command: Vec<String>,
    /// Why it cannot be measured.
    pub missing: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Maker {
    Rialto,
    /// ContextVM's TypeScript SDK on node, as a gateway.
    Node,
    /// ContextVM's Rust SDK, with the tool in the same process.
    Rust,
}

pub const OUR_PLAIN: &str = "Rialto, plain";
pub const OUR_SEALED: &str = "Rialto, sealed";
pub const PLAIN_PEERS: [&str; 2] = ["@contextvm/sdk 0.11.14, plain", "contextvm-sdk 0.2.2 (no stdio hop), plain"];
pub const SEALED_PEERS: [&str; 2] = ["@contextvm/sdk 0.11.14, sealed", "contextvm-sdk 0.2.2 (no stdio hop), sealed"];

const ROWS: [(&str, Maker, Privacy); 6] = [
    (OUR_PLAIN, Maker::Rialto, Privacy::Plain),
    (PLAIN_PEERS[0], Maker::Node, Privacy::Plain),
    (PLAIN_PEERS[1], Maker::Rust, Privacy::Plain),
    (OUR_SEALED, Maker::Rialto, Privacy::Sealed),
    (SEALED_PEERS[0], Maker::Node, Privacy::Sealed),
    (SEALED_PEERS[1], Maker::Rust, Privacy::Sealed),
];

impl Subject {
    pub fn command(&self, relay: &str) -> Vec<String> {
        self.command.iter().map(|word| word.replace(RELAY, relay)).collect()
    }
}

/// The MCP server behind every subject that has one.
pub fn child(rialto: &Path) -> Vec<String> {
    [&rialto.to_string_lossy(), "mcp", "example"].map(Into::into).to_vec()
}

/// The subjects whose name is wanted; their peers are installed.
pub fn all(rialto: &Path, wanted: impl Fn(&str) -> bool) -> Vec<Subject> {
    let rows: Vec<_> = ROWS.into_iter().filter(|(name, ..)| wanted(name)).collect();
    let install = |maker, install: fn() -> Result<PathBuf, Failure>| -> Result<String, String> {
        if !rows.iter().any(|row| row.1 == maker) {
            return Ok(String::new());
        }
        install().map(|path| path.to_string_lossy().into_owned()).map_err(|error| error.to_string())
    };
    let (node, rust) = (install(Maker::Node, peers::node), install(Maker::Rust, peers::rust));
    let own = rialto.to_string_lossy();
    let subject = |&(name, maker, privacy): &(&'static str, Maker, Privacy)| {
        let mode = if privacy == Privacy::Plain { "plain" } else { "sealed" };
        let words = match maker {
            Maker::Rialto => Ok(format!(
                "{own} serve --relay {RELAY} --rate-per-key 0 --max-running 1024 --max-running-per-key 256 --json --"
            )),
            Maker::Node => node.clone().map(|script| format!("node {script} {RELAY} {mode}")),
            Maker::Rust => rust.clone().map(|binary| format!("{binary} {RELAY} {mode}")),
        };
        let missing = words.as_ref().err().cloned();
        let mut command: Vec<_> = words.unwrap_or_default().split(' ').map(str::to_owned).collect();
        if maker != Maker::Rust {
            command.extend(child(rialto));
        }
        let wire = if maker == Maker::Rialto { Wire::Dvmcp } else { Wire::ContextVm };
        Subject { name, dialect: Dialect { wire, privacy }, maker, command, missing }
    };
    rows.iter().map(subject).collect()
}
