//! Numbers for `/metrics`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Debug, Default)]
pub(super) struct Counts {
    connections: Arc<AtomicU64>,
    streams: Arc<AtomicU64>,
    sessions_begun: AtomicU64,
    answers: Mutex<BTreeMap<u16, u64>>,
}

/// Something that is counted while it lasts.
#[derive(Debug)]
pub(super) struct Open(Arc<AtomicU64>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn open(count: &Arc<AtomicU64>) -> Open {
    count.fetch_add(1, Ordering::Relaxed);
    Open(count.clone())
}

impl Counts {
    pub(super) fn connection(&self) -> Open {
        open(&self.connections)
    }

    pub(super) fn stream(&self) -> Open {
        open(&self.streams)
    }

    pub(super) fn session_begun(&self) {
        self.sessions_begun.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn answered(&self, status: u16) {
        *self.answers.lock().unwrap_or_else(PoisonError::into_inner).entry(status).or_default() += 1;
    }

    /// Everything, in Prometheus' text format.
    pub(super) fn write(&self, out: &mut String, sessions: usize) {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        for (name, kind, words, value) in [
            ("rialto_http_connections", "gauge", "Connections that are open.", load(&self.connections)),
            ("rialto_http_streams", "gauge", "Event streams that are open.", load(&self.streams)),
            ("rialto_http_sessions", "gauge", "Sessions that have not ended.", sessions as u64),
            ("rialto_http_sessions_total", "counter", "Sessions that have begun.", load(&self.sessions_begun)),
        ] {
            let _ = write!(out, "# HELP {name} {words}\n# TYPE {name} {kind}\n{name} {value}\n");
        }
        let name = "rialto_http_requests_total";
        let _ = write!(out, "# HELP {name} Requests, by the status of their answer.\n# TYPE {name} counter\n");
        for (status, count) in self.answers.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let _ = writeln!(out, "{name}{{status=\"{status}\"}} {count}");
        }
    }
}
