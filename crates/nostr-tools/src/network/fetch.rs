//! Asking relays.

use super::route::{Plan, Route};
use super::{Network, Progress, excuse};
use crate::failure::Failure;
use crate::result::quoted;
use crate::signer::Signer;
use crate::store::is_newer;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use nostr::filter::MatchEventOptions;
use nostr::prelude::{Event, EventId, Filter, Kind, PublicKey, RelayUrl, Timestamp};
use rialto_relay::pool::Pool;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Once half of the relays have answered, how long the others are waited for.
const GRACE: Duration = Duration::from_secs(2);

/// Filters that one relay is asked at once. Many allow no more than ten.
const MAX_FILTERS: usize = 10;

/// Events that one question may bring in all; more than anybody reads.
const MAX_EVENTS: usize = 5_000;

/// How much it matters that every relay is heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Care {
    /// Slow relays are not waited for.
    Quick,
    /// All are, as long as there is time.
    Thorough,
}

/// What relays answered.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    /// Each once, the newest first.
    pub(crate) events: Vec<Event>,
    /// Relays that have sent all that they have.
    pub(crate) answered: Vec<RelayUrl>,
    /// Relays that have not, and why.
    pub(crate) silent: BTreeMap<String, String>,
}

impl Answers {
    /// That nobody answered is an error, unless something came all the same.
    pub(crate) fn heard(self) -> Result<Vec<Event>, Failure> {
        if self.answered.is_empty() && self.events.is_empty() {
            return Err(self.silence());
        }
        Ok(self.events)
    }

    pub(crate) fn silence(&self) -> Failure {
        if self.silent.is_empty() {
            return Failure::relays(
                "there is no relay to ask; add one with nostr_relays_set, or connect with nostr_relays_connect",
            );
        }
        let reasons: Vec<String> = self.silent.iter().map(|(relay, why)| format!("{relay}: {why}")).collect();
        let failed = serde_json::to_value(&self.silent).unwrap_or_default();
        Failure::relays(format!("no relay answered ({})", reasons.join("; "))).with("failed", failed)
    }
}

impl Network {
    /// Asks relays for events: these, or those where such events are likely to be. Each event comes once, the newest
    /// first. That no relay answered is an error; that none has anything is not.
    pub(crate) async fn fetch(
        &self,
        filters: &[Filter],
        relays: &[RelayUrl],
        patience: Duration,
    ) -> Result<Vec<Event>, Failure> {
        let route = if relays.is_empty() { Route::Usual } else { Route::Only(relays) };
        self.fetch_along(filters, route, patience, &Progress::NONE).await
    }

    /// The same along a route, and somebody hears how far it is.
    pub(crate) async fn fetch_along(
        &self,
        filters: &[Filter],
        route: Route<'_>,
        patience: Duration,
        progress: &Progress<'_>,
    ) -> Result<Vec<Event>, Failure> {
        let plan = self.plan(filters, route, progress).await?;
        let answers = self.ask(&plan, None, patience, Care::Quick, progress).await;
        Ok(select(answers.heard()?, filters, self.clock.now()))
    }

    /// Asks as somebody: relays that want to know who asks are told.
    pub(crate) async fn fetch_as(
        &self,
        who: &Signer,
        filters: &[Filter],
        relays: &[RelayUrl],
        patience: Duration,
        progress: &Progress<'_>,
    ) -> Result<Answers, Failure> {
        let plan = self.plan(filters, Route::Only(relays), progress).await?;
        let mut answers = self.ask(&plan, Some(who), patience, Care::Thorough, progress).await;
        answers.events = select(answers.events, filters, self.clock.now());
        Ok(answers)
    }

    /// The newest version of a replaceable event, wherever its author keeps it.
    pub(crate) async fn newest(
        &self,
        author: PublicKey,
        kind: Kind,
        patience: Duration,
        progress: &Progress<'_>,
    ) -> Result<Option<Event>, Failure> {
        let filter = Filter::new().author(author).kind(kind).limit(1);
        let indexers = self.indexers();
        let found = self.fetch_along(&[filter], Route::Also(&indexers), patience, progress).await?;
        Ok(found.into_iter().next())
    }

    /// Asks each relay what the plan says.
    pub(super) async fn ask(
        &self,
        plan: &Plan,
        who: Option<&Signer>,
        patience: Duration,
        care: Care,
        progress: &Progress<'_>,
    ) -> Answers {
        let relays: Vec<RelayUrl> = plan.keys().cloned().collect();
        let pool = self.pool(who, &relays);
        let found = Mutex::new(HashMap::new());
        let end = Instant::now() + patience;
        let mut asking: FuturesUnordered<_> =
            plan.iter().map(|(relay, filters)| ask_one(&pool, relay, filters, end, &found)).collect();
        let mut answers = Answers::default();
        let (mut over, mut grace) = (0, None);
        loop {
            let limit: Instant = grace.unwrap_or(end);
            match tokio::time::timeout_at(limit, asking.next()).await {
                Ok(Some((relay, true))) => answers.answered.push(relay.clone()),
                Ok(Some((_, false))) => {}
                Ok(None) | Err(_) => break,
            }
            over += 1;
            progress.tell(&format!("{over} of {} relays have answered", relays.len())).await;
            if care == Care::Quick && grace.is_none() && answers.answered.len() * 2 >= relays.len() {
                grace = Some(end.min(Instant::now() + GRACE));
            }
        }
        drop(asking);
        let statuses = pool.status();
        for relay in relays.iter().filter(|relay| !answers.answered.contains(relay)) {
            answers.silent.insert(relay.as_str_without_trailing_slash().to_owned(), quoted(&excuse(&statuses, relay)));
        }
        let found: HashMap<EventId, Event> = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        answers.events = found.into_values().collect();
        sort(&mut answers.events);
        answers
    }
}

/// Asks one relay; says whether it has sent all that it has.
async fn ask_one<'a>(
    pool: &Pool,
    relay: &'a RelayUrl,
    filters: &[Filter],
    end: Instant,
    found: &Mutex<HashMap<EventId, Event>>,
) -> (&'a RelayUrl, bool) {
    let name = relay.as_str_without_trailing_slash();
    for part in filters.chunks(MAX_FILTERS) {
        let patience = end.saturating_duration_since(Instant::now());
        let mut query = pool.query_at(part, patience, |url| url == name);
        while let Some(event) = query.next().await {
            // A relay may send what nobody asked for.
            if part.iter().any(|filter| fits(filter, &event)) {
                let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                if found.len() < MAX_EVENTS {
                    found.insert(event.id, event);
                }
            }
        }
        if query.answered().is_empty() {
            return (relay, false);
        }
    }
    (relay, true)
}

/// Whether a filter asks for an event. What a search finds is the relay's affair.
fn fits(filter: &Filter, event: &Event) -> bool {
    filter.match_event(event, MatchEventOptions::new().nip50(false))
}

pub(crate) fn sort(events: &mut [Event]) {
    events.sort_by(|one, other| other.created_at.cmp(&one.created_at).then_with(|| one.id.cmp(&other.id)));
}

/// What one relay that has everything would have sent: of each filter the newest, up to its limit; nothing that has expired,
/// and nothing that a newer version has replaced.
fn select(mut events: Vec<Event>, filters: &[Filter], now: Timestamp) -> Vec<Event> {
    sort(&mut events);
    let mut newest: HashMap<(PublicKey, u16, String), EventId> = HashMap::new();
    for event in events.iter().filter(|event| event.kind.is_replaceable() || event.kind.is_addressable()) {
        newest.entry(coordinate(event)).or_insert(event.id);
    }
    events.retain(|event| {
        !event.is_expired_at(now) && newest.get(&coordinate(event)).is_none_or(|newest| *newest == event.id)
    });
    let mut chosen = HashSet::new();
    for filter in filters {
        let fitting = events.iter().filter(|event| fits(filter, event));
        chosen.extend(fitting.take(filter.limit.unwrap_or(usize::MAX)).map(|event| event.id));
    }
    events.retain(|event| chosen.contains(&event.id));
    events
}

fn coordinate(event: &Event) -> (PublicKey, u16, String) {
    let identifier =
        if event.kind.is_addressable() { event.tags.identifier().unwrap_or_default() } else { String::new() };
    (event.pubkey, event.kind.as_u16(), identifier)
}

/// The version that counts.
pub(crate) fn newest_of<'a>(events: impl IntoIterator<Item = &'a Event>) -> Option<&'a Event> {
    events.into_iter().reduce(|one, other| if is_newer(other, one) { other } else { one })
}

impl Network {
    /// Relays of the user's own that want to know who asks.
    pub(crate) fn closed_relays(&self) -> Result<Vec<RelayUrl>, Failure> {
        let statuses = self.status();
        let is_closed = |relay: &RelayUrl| {
            let status = statuses.iter().find(|status| super::is_at(status, relay));
            let words = status.and_then(|status| status.complaint.as_deref()).unwrap_or_default();
            words.starts_with("auth-required") || words.starts_with("restricted")
        };
        Ok(self.read_relays()?.into_iter().filter(is_closed).collect())
    }
}
