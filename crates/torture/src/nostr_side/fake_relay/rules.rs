//! How a relay behaves.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::nostr_side::event::Event;

/// What happens to an event that somebody publishes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Stored, delivered and confirmed.
    Accept,
    /// `OK false` with this reason.
    Refuse(&'static str),
    /// Nothing at all is said, and nothing stored.
    Ignore,
    /// Stored and delivered, but called a duplicate.
    Duplicate,
    /// The connection is cut before anything is said; the event is stored.
    HangUp,
}

pub type Judge = Arc<dyn Fn(&Event, usize) -> Verdict + Send + Sync>;

/// What one connection gets in place of an event.
pub type Tamper = Arc<dyn Fn(&Event, usize) -> Vec<Event> + Send + Sync>;

/// How it behaves. Changes take effect at once.
pub struct Rules {
    /// Decides about each event; the number counts how often this id has come before.
    pub judge: Judge,
    /// How often each event is delivered to each subscription.
    pub copies: usize,
    /// How long each delivery is held back.
    pub delay: Duration,
    /// How long it thinks about each event before it says `OK`.
    pub thought: Duration,
    /// What a connection, by its number, gets in place of an event: nothing if it is kept back, something else if it is forged,
    /// to each something else if the relay equivocates.
    pub tamper: Option<Tamper>,
    /// Deliveries are gathered until there are so many, and then come in another order.
    pub shuffled: usize,
    /// A new subscription gets all that is stored, however old, in whatever order.
    pub replays: bool,
    /// Longer messages are refused.
    pub longest: Option<usize>,
    /// Subscriptions are closed with this reason.
    pub closes: Option<&'static str>,
    /// Nothing counts before NIP-42 authentication.
    pub wants_auth: bool,
    /// Connections are taken, but nothing is ever answered.
    pub deaf: bool,
    /// What it says about itself (NIP-11).
    pub information: Option<Value>,
}

impl Default for Rules {
    /// A good relay.
    fn default() -> Self {
        Self {
            judge: Arc::new(|_, _| Verdict::Accept),
            copies: 1,
            delay: Duration::ZERO,
            thought: Duration::ZERO,
            tamper: None,
            shuffled: 0,
            replays: false,
            longest: None,
            closes: None,
            wants_auth: false,
            deaf: false,
            information: None,
        }
    }
}
