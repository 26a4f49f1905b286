//! What a provider tells the person who runs it. Nothing here is sent to customers.

use nostr::prelude::PublicKey;
use rialto_payment::amount::Msat;
use rialto_wire::service::Way;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Something worth a line.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Event {
    /// The service can be called.
    Ready {
        tools: Vec<String>,
    },
    /// The list of tools changed.
    Changed {
        tools: usize,
    },
    /// An announcement was published.
    Announced {
        accepted: usize,
        relays: usize,
    },
    /// A request was answered.
    Answered {
        customer: PublicKey,
        what: String,
        took: Duration,
        code: Option<&'static str>,
        way: Way,
        /// What the customer has paid for it.
        paid: Option<Msat>,
    },
    Warning(String),
}

/// Who is told.
#[derive(Clone)]
pub struct Observer(Arc<dyn Fn(Event) + Send + Sync>);

impl Observer {
    pub fn new(tell: impl Fn(Event) + Send + Sync + 'static) -> Self {
        Self(Arc::new(tell))
    }

    pub(crate) fn tell(&self, event: Event) {
        (self.0)(event);
    }

    pub(crate) fn warn(&self, words: impl Into<String>) {
        self.tell(Event::Warning(words.into()));
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Observer")
    }
}
