//! What a person should know while a bridge runs. Nothing in here was written by a stranger without being made fit to be
//! shown.

use rialto_wire::service::{Way, Wire};
use std::fmt;

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// A service has told what it offers.
    Ready { service: String, tools: usize, way: Way },
    /// A service cannot be used now; it is tried again.
    Failed { service: String, reason: String },
    /// Others can see something of the requests to this service.
    Seen { service: String, way: Way },
    /// Tools that are hidden until their new definition is accepted.
    Changed { service: String, npub: String, tools: Vec<String> },
    /// A tool or prompt that is hidden because another has its name.
    NameTaken { name: String },
    /// What should be remembered could not be kept.
    NotKept { reason: String },
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Notice::Ready { service, tools, way } => write!(f, "{service}: {tools} tools; calls are {}", seen(*way)),
            Notice::Failed { service, reason } => write!(f, "{service}: {reason}; trying again"),
            Notice::Seen { service, way } => write!(f, "{service}: calls are {}", seen(*way)),
            Notice::Changed { service, npub, tools } => write!(
                f,
                "{service}: {} changed since first used, and is hidden until you accept it: rialto pins review {npub}",
                tools.join(", ")
            ),
            Notice::NameTaken { name } => {
                write!(f, "`{name}` is hidden, because another service has that name already")
            }
            Notice::NotKept { reason } => write!(f, "{reason}"),
        }
    }
}

/// What others can see of requests that travel this way.
pub fn seen(way: Way) -> &'static str {
    match (way.wire, way.sealed) {
        (Wire::Dvmcp, true) => "sealed (dvmcp): only the service can read them, or see who calls",
        (Wire::Manifest, true) => "sealed messages (manifest): only the service can read them, or see who calls",
        (Wire::Manifest, false) => {
            "direct messages (manifest): only the service can read them, but everybody can see who calls it and when"
        }
        (Wire::Dvmcp, false) => "public (dvmcp): whoever reads the relay can see arguments and results",
    }
}
