//! What a provider is asked to offer: checked and complete.

use crate::limits::Limits;
use nostr::prelude::{Keys, PublicKey};
use rialto_payment::price::Prices;
use rialto_wire::dvmcp::request::OpenJobs;
use rialto_wire::service::Wire;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

/// Requests that are older or newer than this are not taken.
pub const DEFAULT_WINDOW: Window = Window { past: 15 * 60, future: 60 };

/// How long one call may take.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(600);

/// How long a quote can be paid: long enough for a person with a telephone.
pub const DEFAULT_QUOTE: Duration = Duration::from_secs(600);

/// How often an announcement that did not change is sent again.
pub const REANNOUNCE: Duration = Duration::from_secs(3600);

/// Everything about one service.
#[derive(Debug, Clone)]
pub struct Plan {
    pub keys: Keys,
    /// Never changes for a service.
    pub id: String,
    pub name: String,
    pub about: String,
    /// The ways in which it can be called.
    pub wires: BTreeSet<Wire>,
    pub access: Access,
    pub limits: Limits,
    pub window: Window,
    pub timeout: Duration,
    pub open_jobs: OpenJobs,
    /// Whether the announcement is withdrawn at the end.
    pub ending: Ending,
    /// The relays as others can reach them.
    pub relays: Vec<String>,
    /// Where it is kept what was announced.
    pub record: PathBuf,
    pub prices: Prices,
    /// Tools that may be called again when nobody knows what a call did: as often as not at all, they do the same.
    pub idempotent: BTreeSet<String>,
    /// How long a quote can be paid.
    pub quote: Duration,
}

/// Seconds around now in which a request must have been made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    pub past: u64,
    pub future: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    Withdraw,
    Stay,
}

/// Who may use the service.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// If there are any, only these.
    pub allow: BTreeSet<PublicKey>,
    /// Never these.
    pub deny: BTreeSet<PublicKey>,
}

impl Access {
    pub fn allows(&self, key: &PublicKey) -> bool {
        !self.deny.contains(key) && (self.allow.is_empty() || self.allow.contains(key))
    }

    /// A service for certain people is not announced to all.
    pub fn is_private(&self) -> bool {
        !self.allow.is_empty()
    }
}
