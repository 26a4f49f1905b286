//! Keeps the announcement true: on all relays, whenever the offer changes, until the end.

use super::deliver::said;
use super::{Cause, Provider};
use crate::catalogue::Catalogue;
use crate::event::{Event as Told, Observer};
use crate::plan::Ending;
use crate::till::Till;
use nostr::prelude::{Event, Keys, Timestamp, UnsignedEvent};
use rialto_mcp::server::Service;
use rialto_relay::pool::Pool;
use rialto_relay::publication::Publication;
use rialto_relay::sign::sign;
use rialto_relay::verdict::Verdict;
use rialto_relay::work;
use rialto_wire::service::{self, Wire};
use rialto_wire::{dvmcp, manifest};
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Relays refuse what is dated further ahead.
const MAX_AHEAD_SECS: u64 = 900;

/// How long servers may take to list what they offer.
const LOAD_PATIENCE: Duration = Duration::from_secs(120);

/// The lists are asked for at most this often, however often a server says that they changed.
const RELOAD_PAUSE: Duration = Duration::from_secs(1);

/// What was said last.
#[derive(Debug)]
pub(super) struct Announced {
    /// The descriptions of the service and the lists of relays, and how they were taken.
    events: Vec<(Event, Arc<Publication>)>,
    /// Descriptions that an earlier process has left on the relays.
    before: Vec<Event>,
    /// It is time to say it again, changed or not.
    pub(super) is_due: bool,
    /// Relays that have been subscribed to before.
    relays: HashSet<String>,
    /// When something was said last, also by an earlier process: what comes next must be later to count.
    last: u64,
    file: PathBuf,
    /// Where the descriptions are kept, for whoever comes after a process that could not withdraw them.
    described: PathBuf,
}

impl Announced {
    pub(super) fn load(directory: &Path) -> Self {
        let file = directory.join("announced");
        let last = fs::read_to_string(&file).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0);
        let described = directory.join("described.json");
        let before = fs::read(&described).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
        Self { events: Vec::new(), before, is_due: false, relays: HashSet::new(), last, file, described }
    }

    /// Descriptions that were there before these; from now on, these are.
    fn replace(&mut self, events: Vec<(Event, Arc<Publication>)>) -> Vec<Event> {
        let is_replaced = |old: &Event| events.iter().any(|(new, _)| new.kind == old.kind && d(new) == d(old));
        let said = std::mem::take(&mut self.events).into_iter().map(|(event, _)| event);
        let mut gone: Vec<Event> = said.chain(std::mem::take(&mut self.before)).collect();
        gone.retain(|old| service::is_description(old.kind) && !is_replaced(old));
        let described: Vec<&Event> =
            events.iter().map(|(event, _)| event).filter(|event| service::is_description(event.kind)).collect();
        // Losing it costs at most a description that nobody withdraws.
        let _ = serde_json::to_vec(&described).map(|text| fs::write(&self.described, text));
        self.events = events;
        gone
    }

    /// The time to write on what is said next.
    fn next(&mut self, now: Timestamp) -> Timestamp {
        // What a wrong clock dated further ahead was taken by no relay, and would keep us silent until then.
        if self.last > now.as_secs().saturating_add(MAX_AHEAD_SECS) {
            self.last = 0;
        }
        self.last = now.as_secs().max(self.last + 1);
        // Losing it costs at most one announcement that looks older than it is.
        let _ = fs::write(&self.file, self.last.to_string());
        Timestamp::from(self.last)
    }
}

impl<S: Service> Provider<S> {
    /// Asks the servers for their lists again, unless that is being done.
    pub(super) fn reload(&mut self) {
        if self.is_loading {
            self.load_again = true;
            return;
        }
        self.is_loading = true;
        let (local, causes, prices) = (self.local.clone(), self.causes.clone(), self.plan.prices.clone());
        let begin = self.loaded.map_or_else(Instant::now, |last| last + RELOAD_PAUSE);
        tokio::spawn(async move {
            tokio::time::sleep_until(begin).await;
            let loaded = tokio::time::timeout(LOAD_PATIENCE, Catalogue::load(&local, &prices)).await;
            let _ = causes.send(Cause::Reloaded(loaded.ok().map(Box::new)));
        });
    }

    pub(super) fn reloaded(&mut self, loaded: Option<(Catalogue, Vec<String>)>) {
        self.is_loading = false;
        self.loaded = Some(Instant::now());
        if std::mem::take(&mut self.load_again) {
            self.reload();
        }
        let Some((catalogue, refused)) = loaded else {
            return self.observer.warn("the servers do not tell what they offer; what was offered before still is");
        };
        if !catalogue.is_same(&self.catalogue) {
            self.offer(catalogue, &refused);
            self.observer.tell(Told::Changed { tools: self.catalogue.tools.len() });
        } else if self.announced.is_due {
            // Unchanged, but said again: a relay may have lost it.
            self.announce();
        }
    }

    /// Offers this from now on, and announces it.
    pub(super) fn offer(&mut self, catalogue: Catalogue, refused: &[String]) {
        for words in refused {
            self.observer.warn(words.as_str());
        }
        let before = std::mem::replace(&mut self.catalogue, catalogue);
        self.catalogue.remember(&before);
        for tool in self.announce() {
            self.observer.warn(format!("tool `{tool}` is too long for a manifest, and is left out"));
        }
    }

    /// What is to be said; and the tools that fit nowhere.
    fn descriptions(&self, now: Timestamp) -> (Vec<UnsignedEvent>, Vec<String>) {
        let (plan, catalogue, me) = (&self.plan, &self.catalogue, self.plan.keys.public_key());
        let (id, name, about) = (plan.id.as_str(), plan.name.as_str(), plan.about.as_str());
        let (tools, relays) = (catalogue.tools.as_slice(), plan.relays.as_slice());
        let (mut events, mut left_out) = (Vec::new(), Vec::new());
        if plan.wires.contains(&Wire::Dvmcp) {
            let Catalogue { resources, templates, prompts, .. } = catalogue;
            let mints = self.till.as_ref().map(Till::mints).unwrap_or_default();
            let mints = mints.as_slice();
            let offer =
                dvmcp::announcement::Offer { id, name, about, tools, resources, templates, prompts, relays, mints };
            events.push(offer.write(me, now));
        }
        if plan.wires.contains(&Wire::Manifest) {
            let offer = manifest::description::Offer { id, name, about, tools: &catalogue.checked(), relays };
            let limit = self.content_limit(false).min(manifest::description::MAX_WRITTEN);
            let (manifests, others) = offer.write(limit, me, now);
            events.extend(manifests);
            events.push(service::inbox_list(relays, me, now));
            left_out = others;
        }
        events.push(service::relay_list(relays, me, now));
        (events, left_out)
    }

    /// Says what is offered; gives the names of the tools that do not fit.
    fn announce(&mut self) -> Vec<String> {
        self.announced.is_due = false;
        let is_private = self.plan.access.is_private();
        // What was announced before it was private is taken back.
        if is_private && self.announced.before.is_empty() {
            return Vec::new();
        }
        let now = self.now();
        let now = self.announced.next(now);
        let (events, left_out) = if is_private { Default::default() } else { self.descriptions(now) };
        let events = events.into_iter().map(|event| sign(&self.plan.keys, event));
        let events: Vec<_> = events.map(|event| (event.clone(), self.pool.publish(&event))).collect();
        let (observer, pool, keys) = (self.observer.clone(), self.pool.clone(), self.plan.keys.clone());
        tokio::spawn(spread(keys, pool, observer, events.clone()));
        for old in self.announced.replace(events) {
            self.take_back(&old, now);
        }
        left_out
    }

    /// Takes back a description that has no successor.
    fn take_back(&self, old: &Event, now: Timestamp) {
        let keys = &self.plan.keys;
        if let Some(emptied) = manifest::description::emptied(old, now) {
            self.pool.publish(&sign(keys, emptied));
        }
        self.pool.publish(&sign(keys, service::withdrawal(old, now)));
    }

    /// A relay that we are connected to again may have lost what it was told; one that was away for long was never told.
    pub(super) fn subscribed(&mut self, relay: &Arc<str>) {
        let is_first = self.announced.relays.insert(relay.to_string());
        for (event, published) in &self.announced.events {
            let verdicts = published.report().verdicts;
            let has_it = match verdicts.iter().find(|(url, _)| url == relay) {
                // It is about to be sent.
                None => true,
                Some((_, Verdict::Accepted)) => is_first,
                Some(_) => false,
            };
            if !has_it {
                self.pool.publish_to(event, |url| url == &**relay);
            }
        }
    }

    /// Takes back what describes the service.
    pub(super) fn withdraw(&mut self) {
        let events = std::mem::take(&mut self.announced.events);
        if self.plan.ending != Ending::Withdraw || events.is_empty() {
            return;
        }
        let now = self.now();
        let at = self.announced.next(now);
        for (event, _) in events.iter().filter(|(event, _)| service::is_description(event.kind)) {
            self.pool.publish(&sign(&self.plan.keys, service::withdrawal(event, at)));
        }
    }
}

/// Waits until relays have taken what was said, works for those that want it, and tells how it went.
async fn spread(keys: Keys, pool: Pool, observer: Observer, events: Vec<(Event, Arc<Publication>)>) {
    let mut is_first = true;
    for (event, published) in &events {
        let report = published.settled().await;
        if std::mem::take(&mut is_first) {
            let (accepted, relays) = (report.accepted, report.verdicts.len() + report.open);
            observer.tell(Told::Announced { accepted, relays });
        }
        let worked = match work::demanded(&report) {
            Some(bits) => work::done(&keys, event, bits).await,
            None => None,
        };
        match worked {
            Some(event) => drop(pool.publish(&event)),
            None if report.accepted == 0 && service::is_description(event.kind) => {
                let (id, kind) = (d(event).unwrap_or_default(), event.kind);
                observer.warn(format!("no relay took the description `{id}` (kind {kind}): {}", said(&report)));
            }
            None => {}
        }
    }
}

/// What tells descriptions of one kind apart.
fn d(event: &Event) -> Option<String> {
    event.tags.identifier()
}
