//! Relays: asking them, and telling them.

mod route;

use crate::failure::Failure;
use crate::result::SendResult;
use crate::signer::Signer;
use crate::tool::Turn;
use nostr::prelude::{Event, Filter, Keys, PublicKey, RelayUrl};
use rialto_mcp::call::Call;
use rialto_relay::clock::Clock;
use rialto_relay::pool::{self, Pool};
use rialto_relay::verdict::Verdict;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long relays have to answer, unless told otherwise.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// How long relays have to take an event.
const PUBLISH: Duration = Duration::from_secs(15);

/// Who is told how far we are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Progress<'a>(Option<&'a Call>);

impl<'a> Progress<'a> {
    /// Nobody.
    pub(crate) const NONE: Progress<'static> = Progress(None);

    pub(crate) fn of(turn: &Turn<'a>) -> Self {
        Self(Some(turn.call))
    }

    pub(crate) async fn tell(&self, done: usize, total: usize, words: &str) {
        if let Some(call) = self.0 {
            #[expect(clippy::cast_precision_loss, reason = "numbers of relays are small")]
            call.progress(done as f64, Some(total as f64), Some(words)).await;
        }
    }
}

/// Connections to relays, made when they are needed, for each identity its own: a relay that wants to know who we are must not
/// learn that several of them are one.
#[derive(Debug)]
pub(crate) struct Network {
    relays: Vec<RelayUrl>,
    clock: Arc<dyn Clock>,
    pools: Mutex<HashMap<Option<PublicKey>, Pool>>,
}

impl Network {
    pub(crate) fn new(_directory: &Path, relays: Vec<RelayUrl>, clock: Arc<dyn Clock>) -> Result<Self, Failure> {
        Ok(Self { relays, clock, pools: Mutex::default() })
    }

    /// The connections of one identity, or of nobody.
    fn pool(&self, who: Option<&Signer>) -> Pool {
        let mut pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        let key = who.map(Signer::public_key);
        let make = || {
            let options = pool::Options {
                keys: who.and_then(Signer::local).cloned(),
                give_up: PUBLISH,
                clock: self.clock.clone(),
                ..pool::Options::default()
            };
            Pool::start(&self.relays, Vec::new(), options).0
        };
        pools.entry(key).or_insert_with(make).clone()
    }

    /// Asks relays for events: these, or those where such events are likely to be. Each event comes once, the newest
    /// first. That no relay answered is an error; that none has anything is not.
    pub(crate) async fn fetch(
        &self,
        filters: &[Filter],
        relays: &[RelayUrl],
        patience: Duration,
    ) -> Result<Vec<Event>, Failure> {
        let pool = self.pool(None);
        for relay in relays {
            pool.add(relay);
        }
        if pool.urls().is_empty() {
            return Err(Failure::relays("no relay is known; add one with nostr_relays_set"));
        }
        let mut events = pool.query(filters, patience).all().await;
        events.sort_by(|one, other| other.created_at.cmp(&one.created_at).then_with(|| one.id.cmp(&other.id)));
        Ok(events)
    }

    /// Publishes to these relays, or to ours. That none took it is an error.
    pub(crate) async fn publish(
        &self,
        event: &Event,
        relays: &[RelayUrl],
        who: Option<&Signer>,
    ) -> Result<SendResult, Failure> {
        self.publish_watched(event, relays, who, &Progress::NONE).await
    }

    /// The same, and somebody hears how far it is.
    pub(crate) async fn publish_watched(
        &self,
        event: &Event,
        relays: &[RelayUrl],
        who: Option<&Signer>,
        _progress: &Progress<'_>,
    ) -> Result<SendResult, Failure> {
        let pool = self.pool(who);
        let chosen: Vec<String> = relays.iter().map(|relay| relay.as_str_without_trailing_slash().to_owned()).collect();
        for relay in relays {
            pool.add(relay);
        }
        if pool.urls().is_empty() {
            return Err(Failure::relays("no relay is known; add one with nostr_relays_set"));
        }
        let publication = pool.publish_to(event, |url| chosen.is_empty() || chosen.iter().any(|one| one == url));
        let _ = tokio::time::timeout(PUBLISH, publication.finished()).await;
        let report = publication.report();
        let mut result = SendResult {
            id: event.id.to_hex(),
            success: Vec::new(),
            failed: BTreeMap::new(),
            pubkey: event.pubkey.to_hex(),
        };
        for (relay, verdict) in &report.verdicts {
            match verdict {
                Verdict::Accepted => result.success.push(relay.to_string()),
                other => drop(result.failed.insert(relay.to_string(), words(other))),
            }
        }
        if result.success.is_empty() {
            let failed = serde_json::to_value(&result.failed).unwrap_or_default();
            return Err(Failure::relays("no relay took the event").with("failed", failed).with("id", result.id));
        }
        Ok(result)
    }

    /// Publishes over connections that are used for nothing else.
    pub(crate) async fn publish_apart(
        &self,
        event: &Event,
        relays: &[RelayUrl],
        keys: &Keys,
        progress: &Progress<'_>,
    ) -> Result<SendResult, Failure> {
        self.publish_watched(event, relays, Some(&Signer::Local(keys.clone())), progress).await
    }
}

fn words(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Accepted => String::new(),
        Verdict::Refused(words) | Verdict::GaveUp(words) | Verdict::Work { message: words, .. } => words.clone(),
        Verdict::TooLarge { limit } => format!("it takes at most {limit} bytes"),
    }
}
