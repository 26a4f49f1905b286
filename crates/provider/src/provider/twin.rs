//! Somebody else who answers with our key. Two providers with one key and two ledgers would each run every request, and
//! charge for it; so whoever hears the other stops.
//!
//! What we have said ourselves comes back from the relays, and is known by its id. Workers that share a ledger say what the
//! ledger has; their feedback, which it has not, proves nothing.

use super::{Cause, Provider};
use crate::known::Known;
use nostr::prelude::{Event, EventId};
use rialto_ledger::ledger::Ledger;
use rialto_mcp::server::Service;
use rialto_relay::own::REMEMBERED;
use rialto_relay::work;
use rialto_wire::dvmcp;
use std::time::Duration;

/// A ledger that is shared may not have an answer of our own yet when somebody else's is heard.
const SECOND_LOOK: Duration = Duration::from_secs(2);

/// Why a provider ended that nobody stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("somebody else answers with the same key, and does not share the ledger")]
pub struct KeyInUse;

impl<S: Service> Provider<S> {
    /// Something was said with our key.
    pub(super) fn heard_ourselves(&self, event: &Event, stored: bool) {
        let (made, now) = (event.created_at.as_secs(), self.now().as_secs());
        // What is older may be ours from before; nobody remembers that. It is no news either if a relay had it in store.
        let is_news = !stored && made > self.started.as_secs() && made.saturating_add(REMEMBERED.as_secs()) >= now;
        if !is_news || self.pool.has_published(&event.id) {
            return;
        }
        let Some(request) = event.tags.event_ids().next() else { return };
        let is_shared = self.ledger.is_shared();
        // All kinds of services give feedback of this kind: it counts if it is about a request that is ours.
        let is_ours = self.jobs.contains_key(&request) || self.known.get(&request) != Known::New;
        if dvmcp::is_feedback(event.kind) && (is_shared || !is_ours) {
            return;
        }
        let (ledger, causes, id) = (self.ledger.clone(), self.causes.clone(), event.id);
        tokio::spawn(async move {
            if is_foreign(&*ledger, &request, &id, is_shared).await {
                let _ = causes.send(Cause::Twin(id));
            }
        });
    }

    pub(super) fn has_met(&mut self, id: &EventId) {
        if !std::mem::replace(&mut self.has_twin, true) {
            let id = id.to_hex();
            self.observer.warn(format!("somebody else answers with this key (event {id}); no more requests are taken"));
        }
    }
}

/// Whether nobody who shares our ledger has said this.
async fn is_foreign(ledger: &dyn Ledger, request: &EventId, id: &EventId, is_shared: bool) -> bool {
    let answers = || async {
        let answers = ledger.answers(request.to_bytes()).await.ok()?;
        Some(answers.iter().filter_map(|text| Event::from_json(text).ok()).collect::<Vec<Event>>())
    };
    let Some(mut found) = answers().await else { return false };
    if is_shared && found.is_empty() {
        tokio::time::sleep(SECOND_LOOK).await;
        found = answers().await.unwrap_or_default();
    }
    // Where a relay wanted work, another version of the same answer may have been sent before. Refusals are not kept.
    let is_certain = !found.is_empty() && !found.iter().any(work::is_in);
    !found.iter().any(|answer| answer.id == *id) && (!is_shared || is_certain)
}
