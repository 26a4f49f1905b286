//! Telling relays.

use super::{Network, PUBLISH, Progress, excuse, is_at};
use crate::failure::Failure;
use crate::result::{SendResult, quoted};
use crate::signer::Signer;
use nostr::prelude::{Event, Keys, RelayUrl};
use rialto_relay::pool::Pool;
use rialto_relay::publication::{Publication, Report};
use rialto_relay::status::{State, Status};
use rialto_relay::verdict::Verdict;
use rialto_relay::work;
use std::collections::BTreeMap;
use std::num::NonZeroU8;
use std::time::Duration;
use tokio::time::Instant;

/// Once a relay has the event, how long the others are waited for.
const GRACE: Duration = Duration::from_secs(3);

/// A relay that could not be reached so often is not there.
const TRIES: u32 = 2;

/// How relays took an event.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sent {
    pub(crate) success: Vec<String>,
    pub(crate) failed: BTreeMap<String, String>,
    /// No relay has it, and this much work would help.
    pub(crate) work: Option<NonZeroU8>,
}

impl Sent {
    /// That no relay took it is an error.
    pub(crate) fn result(self, event: &Event) -> Result<SendResult, Failure> {
        let id = event.id.to_hex();
        if self.success.is_empty() {
            let reasons: Vec<String> = self.failed.iter().map(|(relay, why)| format!("{relay}: {why}")).collect();
            let failed = serde_json::to_value(&self.failed).unwrap_or_default();
            let words = format!("no relay took the event ({})", reasons.join("; "));
            return Err(Failure::relays(words).with("failed", failed).with("id", id));
        }
        Ok(SendResult { id, success: self.success, failed: self.failed, pubkey: event.pubkey.to_hex() })
    }
}

impl Network {
    /// Publishes to these relays, and tells how each of them took it.
    pub(crate) async fn send(
        &self,
        event: &Event,
        relays: &[RelayUrl],
        who: Option<&Signer>,
        progress: &Progress<'_>,
    ) -> Result<Sent, Failure> {
        self.check(event, relays)?;
        let pool = self.pool(who, relays);
        Ok(send_through(&pool, event, relays, progress).await)
    }

    /// Publishes over connections that are used for nothing else.
    pub(crate) async fn publish_apart(
        &self,
        event: &Event,
        relays: &[RelayUrl],
        keys: &Keys,
        progress: &Progress<'_>,
    ) -> Result<Sent, Failure> {
        self.check(event, relays)?;
        let (pool, _) = self.pool_apart(Some(&Signer::Local(keys.clone())), relays, Vec::new());
        let sent = send_through(&pool, event, relays, progress).await;
        pool.stop(Duration::ZERO).await;
        Ok(sent)
    }

    fn check(&self, event: &Event, relays: &[RelayUrl]) -> Result<(), Failure> {
        if relays.is_empty() {
            return Err(Failure::relays("there is no relay to write to; add one with nostr_relays_set"));
        }
        if event.is_expired_at(self.clock.now()) {
            return Err(Failure::invalid("the event has expired already; relays would not keep it"));
        }
        Ok(())
    }
}

/// Publishes and waits for the relays, but not for those that are not there.
pub(crate) async fn send_through(pool: &Pool, event: &Event, relays: &[RelayUrl], progress: &Progress<'_>) -> Sent {
    let names: Vec<&str> = relays.iter().map(RelayUrl::as_str_without_trailing_slash).collect();
    let publication = pool.publish_to(event, |url| names.contains(&url));
    let report = wait(pool, &publication, relays, progress).await;
    let statuses = pool.status();
    let mut sent = Sent { work: work::demanded(&report), ..Sent::default() };
    for relay in relays {
        let name = relay.as_str_without_trailing_slash();
        let verdict = report.verdicts.iter().find(|(url, _)| **url == *name).map(|(_, verdict)| verdict);
        match verdict {
            Some(Verdict::Accepted) => sent.success.push(name.to_owned()),
            Some(other) => drop(sent.failed.insert(name.to_owned(), quoted(&words(other)))),
            None => {
                drop(sent.failed.insert(name.to_owned(), quoted(&excuse(&statuses, relay))));
                // It has been reported as failed: it must not turn up later all the same.
                pool.remove(relay);
            }
        }
    }
    sent
}

async fn wait(pool: &Pool, publication: &Publication, relays: &[RelayUrl], progress: &Progress<'_>) -> Report {
    let end = Instant::now() + PUBLISH;
    let mut grace = None;
    let mut told = 0;
    let mut changes = pool.changes();
    loop {
        let report = publication.report();
        if report.accepted > 0 {
            grace.get_or_insert_with(|| Instant::now() + GRACE);
        }
        if report.verdicts.len() > told {
            told = report.verdicts.len();
            let words = format!("{} of {} relays have it", report.accepted, relays.len());
            progress.tell(&words).await;
        }
        let limit = grace.map_or(end, |grace| end.min(grace));
        let is_over = Instant::now() >= limit || all_away(&pool.status(), &report, relays);
        if report.open == 0 || is_over {
            return report;
        }
        // A publication tells only when it is finished; what happens before is looked for.
        tokio::select! {
            _ = publication.finished() => {}
            _ = changes.changed() => {}
            () = tokio::time::sleep(Duration::from_millis(50)) => {}
        }
    }
}

/// Whether all relays that may still take it cannot be reached.
fn all_away(statuses: &[Status], report: &Report, relays: &[RelayUrl]) -> bool {
    let is_open = |relay: &&RelayUrl| {
        let name = relay.as_str_without_trailing_slash();
        !report.verdicts.iter().any(|(url, _)| **url == *name)
    };
    let is_away = |relay: &RelayUrl| {
        let status = statuses.iter().find(|status| is_at(status, relay));
        status.is_none_or(|status| matches!(status.state, State::Down { tries, .. } if tries >= TRIES))
    };
    relays.iter().filter(is_open).all(is_away)
}

fn words(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Accepted => String::new(),
        Verdict::Refused(words) | Verdict::GaveUp(words) | Verdict::Work { message: words, .. } => words.clone(),
        Verdict::TooLarge { limit } => format!("it takes at most {limit} bytes"),
        Verdict::Stopped => "we stopped".to_owned(),
    }
}
