//! How the relays are doing.

use crate::information::Limits;
use std::sync::Arc;
use std::time::Duration;

/// One relay, as seen from here.
#[derive(Debug, Clone)]
pub struct Status {
    pub url: Arc<str>,
    pub state: State,
    /// From sending an event to the relay's answer, the last time.
    pub latency: Option<Duration>,
    pub limits: Option<Limits>,
    pub counts: Counts,
    /// The last thing it complained about.
    pub complaint: Option<String>,
    /// Events that wait to be sent or acknowledged.
    pub waiting: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    Connecting,
    /// Connected; the subscription may not be answered yet.
    Connected,
    /// Everything that the relay had stored has been read.
    Subscribed,
    Down {
        reason: String,
        tries: u32,
    },
}

/// What one relay has brought.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub events: u64,
    pub repeats: u64,
    /// Events that did not pass the gate.
    pub forged: u64,
    pub connections: u64,
}
