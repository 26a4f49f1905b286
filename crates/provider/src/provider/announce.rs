//! Keeps the announcement true: on all relays, whenever the offer changes, until the end.

use super::{Cause, Provider};
use crate::catalogue::Catalogue;
use crate::event::Event as Told;
use crate::plan::Ending;
use nostr::prelude::{Event, Timestamp};
use rialto_mcp::server::Service;
use rialto_relay::publication::Publication;
use rialto_relay::sign::sign;
use rialto_relay::verdict::Verdict;
use rialto_relay::work;
use rialto_wire::dvmcp::announcement::{self, Offer};
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
    /// The announcement and the relay list, and how they were taken.
    events: Vec<(Event, Arc<Publication>)>,
    /// It is time to say it again, changed or not.
    pub(super) is_due: bool,
    /// Relays that have been subscribed to before.
    relays: HashSet<String>,
    /// When something was said last, also by an earlier process: what comes next must be later to count.
    last: u64,
    file: PathBuf,
}

impl Announced {
    pub(super) fn load(directory: &Path) -> Self {
        let file = directory.join("announced");
        let last = fs::read_to_string(&file).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0);
        Self { events: Vec::new(), is_due: false, relays: HashSet::new(), last, file }
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
        let (local, causes) = (self.local.clone(), self.causes.clone());
        let begin = self.loaded.map_or_else(Instant::now, |last| last + RELOAD_PAUSE);
        tokio::spawn(async move {
            tokio::time::sleep_until(begin).await;
            let loaded = tokio::time::timeout(LOAD_PATIENCE, Catalogue::load(&local)).await;
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
        self.announce();
    }

    fn announce(&mut self) {
        self.announced.is_due = false;
        if self.plan.access.is_private() {
            return;
        }
        let now = self.now();
        let now = self.announced.next(now);
        let keys = &self.plan.keys;
        let offer = Offer {
            id: &self.plan.id,
            name: &self.plan.name,
            about: &self.plan.about,
            tools: &self.catalogue.tools,
            resources: &self.catalogue.resources,
            templates: &self.catalogue.templates,
            prompts: &self.catalogue.prompts,
            relays: &self.plan.relays,
        };
        let me = keys.public_key();
        let announcement = sign(keys, offer.write(me, now));
        let relay_list = sign(keys, announcement::relay_list(&self.plan.relays, me, now));
        let events = [announcement, relay_list];
        let published: Vec<_> = events.iter().map(|event| self.pool.publish(event)).collect();
        self.announced.events = events.iter().cloned().zip(published.iter().cloned()).collect();
        let (observer, pool, keys) = (self.observer.clone(), self.pool.clone(), self.plan.keys.clone());
        tokio::spawn(async move {
            let Some(first) = published.first() else { return };
            let report = first.settled().await;
            if let Some(bits) = work::demanded(&report) {
                for event in &events {
                    if let Some(event) = work::done(&keys, event, bits).await {
                        pool.publish(&event);
                    }
                }
            }
            observer.tell(Told::Announced { accepted: report.accepted, relays: report.verdicts.len() + report.open });
        });
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

    /// Takes the announcement back.
    pub(super) fn withdraw(&mut self) {
        let Some((announcement, _)) = self.announced.events.first().filter(|_| self.plan.ending == Ending::Withdraw)
        else {
            return;
        };
        let id = announcement.id;
        let now = self.now();
        let at = self.announced.next(now);
        let keys = &self.plan.keys;
        let event = sign(keys, announcement::withdrawal(id, &self.plan.id, keys.public_key(), at));
        self.pool.publish(&event);
    }
}
