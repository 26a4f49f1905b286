//! What time it is. Behind a trait, so that tests can say.

use nostr::prelude::Timestamp;

/// Wall-clock time; for deadlines, tokio's monotonic clock is used.
pub trait Clock: std::fmt::Debug + Send + Sync + 'static {
    fn now(&self) -> Timestamp;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}
