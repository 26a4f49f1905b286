//! What a relay is asked to be, and how much of everything it allows.
//!
//! Whoever can reach the port can send anything, so each quantity that a stranger controls has a limit here.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

/// How to run a relay.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where to listen; port 0 lets the system choose.
    pub listen: SocketAddr,
    /// The file that keeps events over a restart. Without one they live in memory only.
    pub store: Option<PathBuf>,
    /// How much of everything is allowed.
    pub limits: Limits,
    /// The name in the relay's information document.
    pub name: String,
    /// Whether clients must prove who they are (NIP-42) before anything else.
    pub require_auth: bool,
    /// The address by which clients know the relay, when it differs from the one it listens on.
    pub url: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            store: None,
            limits: Limits::default(),
            name: "rialto".to_owned(),
            require_auth: false,
            url: None,
        }
    }
}

/// The limits of one relay.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Longest message from a client.
    pub max_message_bytes: usize,
    /// Longest event, as JSON text.
    pub max_event_bytes: usize,
    /// Most tags in one event.
    pub max_tags: usize,
    /// Most open subscriptions of one connection.
    pub max_subscriptions: usize,
    /// Most filters in one REQ or COUNT.
    pub max_filters: usize,
    /// Most ids, authors, kinds and tag values in all open subscriptions of one connection together.
    pub max_filter_values: usize,
    /// Most stored events that one filter returns.
    pub max_limit: usize,
    /// Most connections at the same time.
    pub max_connections: usize,
    /// Most stored events; the oldest go first.
    pub max_events: usize,
    /// About how much memory stored events may take; the oldest go first.
    pub max_stored_bytes: usize,
    /// Most events that one connection may publish in a minute.
    pub events_per_minute: Option<u32>,
    /// How far ahead of our clock an event may be dated.
    pub created_at_future_secs: u64,
    /// Leading zero bits that an event's id must have (NIP-13); 0 asks for no work.
    pub min_pow_difficulty: u8,
    /// Most messages that may wait for a client that does not read them.
    pub max_queue_messages: usize,
    /// Most bytes that may wait for a client that does not read them.
    pub max_queue_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_message_bytes: 512 * 1024,
            // Twice what most public relays take, so that what works there works here.
            max_event_bytes: 128 * 1024,
            // Follow lists are the largest honest events; few people follow more.
            max_tags: 5000,
            max_subscriptions: 64,
            max_filters: 32,
            max_filter_values: 10_000,
            max_limit: 5000,
            max_connections: 1024,
            max_events: 100_000,
            max_stored_bytes: 512 * 1024 * 1024,
            events_per_minute: None,
            // What public relays commonly allow.
            created_at_future_secs: 900,
            min_pow_difficulty: 0,
            max_queue_messages: 8192,
            max_queue_bytes: 8 * 1024 * 1024,
        }
    }
}
