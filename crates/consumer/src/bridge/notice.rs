//! What a person should know while a bridge runs. Nothing in here was written by a stranger without being made fit to be
//! shown.

use std::fmt;

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// A service has told what it offers.
    Ready { service: String, tools: usize },
    /// A service cannot be used now; it is tried again.
    Failed { service: String, reason: String },
    /// Requests to this service can be read by everybody.
    Public { service: String },
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
            Notice::Ready { service, tools } => write!(f, "{service}: {tools} tools"),
            Notice::Failed { service, reason } => write!(f, "{service}: {reason}; trying again"),
            Notice::Public { service } => {
                write!(f, "{service}: calls are public; whoever reads the relay can see arguments and results")
            }
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
