//! What the hub tells the person who runs it. Nothing here is sent to clients.

use std::fmt;
use std::sync::Arc;

/// Something worth a line on standard error.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Event {
    Ready {
        server: String,
        version: &'static str,
        tools: usize,
    },
    /// It ended, or could not be started; `retry` tells after how many milliseconds it is started again.
    Down {
        server: String,
        reason: String,
        retry: u64,
    },
    /// A line that a server wrote to its standard error.
    Stderr {
        server: String,
        line: String,
    },
    /// A line on a server's standard output that is no message.
    Stray {
        server: String,
        /// How many there have been.
        count: u64,
        line: String,
    },
    Warning {
        server: String,
        text: String,
    },
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Ready { server, version, tools } => write!(f, "{server}: ready, {tools} tools, MCP {version}"),
            Event::Down { server, reason, retry } => write!(f, "{server}: {reason}; next try in {retry} ms"),
            Event::Stderr { server, line } => write!(f, "{server}| {line}"),
            Event::Stray { server, count, line } => {
                write!(f, "{server}: not a message on its standard output (no. {count}): {line}")
            }
            Event::Warning { server, text } => write!(f, "{server}: {text}"),
        }
    }
}

/// Who is told.
#[derive(Clone)]
pub struct Events(Arc<dyn Fn(Event) + Send + Sync>);

impl Events {
    pub fn new(tell: impl Fn(Event) + Send + Sync + 'static) -> Self {
        Self(Arc::new(tell))
    }

    pub fn tell(&self, event: Event) {
        (self.0)(event);
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Events")
    }
}
