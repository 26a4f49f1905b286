//! Whether the servers behind the endpoint answer.

use crate::server::Probe;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// How long an answer is good for: whoever asks more often does not ask the servers.
const FRESH: Duration = Duration::from_secs(1);

/// What one server said.
#[derive(Debug, Clone)]
pub struct Checked {
    pub name: String,
    /// How long it took to answer, or why it did not.
    pub outcome: Result<Duration, String>,
}

/// The latest answers. The lock is held while the servers are asked, so that all who wait get the same.
#[derive(Default)]
pub(super) struct Health(Mutex<Option<(Instant, Arc<[Checked]>)>>);

impl Health {
    pub(super) async fn check(&self, probe: Option<&Probe>) -> Arc<[Checked]> {
        let Some(probe) = probe else { return Arc::default() };
        let mut latest = self.0.lock().await;
        if let Some((time, checked)) = &*latest
            && time.elapsed() < FRESH
        {
            return checked.clone();
        }
        let checked: Arc<[Checked]> = probe().await.into();
        *latest = Some((Instant::now(), checked.clone()));
        checked
    }
}

/// Whether all is well, and the words for it; strangers are told no names.
pub(super) fn report(checked: &[Checked], is_trusted: bool) -> (bool, Value) {
    let is_well = checked.iter().all(|server| server.outcome.is_ok());
    let mut report = json!({ "status": if is_well { "ok" } else { "failing" } });
    if is_trusted {
        let servers = checked.iter().map(|server| match &server.outcome {
            Ok(time) => json!({ "name": server.name, "ok": true, "milliseconds": time.as_millis() }),
            Err(error) => json!({ "name": server.name, "ok": false, "error": error }),
        });
        report["servers"] = servers.collect();
    }
    (is_well, report)
}
