//! One service behind a bridge: finding it, asking what it offers, and noticing when that changes.

use super::notice::Notice;
use super::{Bridge, lock};
use crate::catalogue::{Catalogue, Item};
use crate::customer::Customer;
use crate::pins::Verdict;
use crate::reference::Reference;
use crate::remote::{Remote, Terms, npub};
use crate::text;
use nostr::prelude::PublicKey;
use rialto_wire::service::Way;
use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::broadcast::error::RecvError;

/// How long to wait before a service that failed is tried again, at first and at most.
const FIRST_RETRY: Duration = Duration::from_secs(2);
const LAST_RETRY: Duration = Duration::from_secs(60);

/// How often to look whether hidden tools have been accepted.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// A service as its user named it.
#[derive(Debug, Clone)]
pub struct Chosen {
    /// What was typed, for messages.
    pub typed: String,
    pub reference: Reference,
    pub terms: Terms,
}

/// What is known about one service.
#[derive(Debug)]
pub(crate) struct Source {
    typed: String,
    pub(crate) remote: Option<Remote>,
    /// How its user has been told that calls travel.
    way: Option<Way>,
    /// The name it had when it was first used.
    pub(crate) name: String,
    pub(crate) catalogue: Catalogue,
    /// Tools whose definition is not the one that was pinned.
    pub(crate) changed: BTreeSet<String>,
}

impl Source {
    pub(crate) fn new(chosen: &Chosen) -> Self {
        Self {
            typed: text::name(&chosen.typed),
            remote: None,
            way: None,
            name: String::new(),
            catalogue: Catalogue::default(),
            changed: BTreeSet::new(),
        }
    }

    pub(crate) fn provider(&self) -> Option<PublicKey> {
        self.remote.as_ref().map(|remote| remote.provider)
    }

    /// A name for people.
    pub(crate) fn title(&self) -> String {
        match (&self.remote, self.name.is_empty()) {
            (_, false) => self.name.clone(),
            (Some(remote), true) => remote.npub(),
            (None, true) => self.typed.clone(),
        }
    }
}

/// Looks after one service as long as the bridge lives.
pub(super) async fn keep(bridge: Weak<Bridge>, customer: Customer, index: usize, chosen: Chosen) {
    let mut announced = customer.announced();
    let mut retry = FIRST_RETRY;
    let mut is_first = true;
    let mut remote: Option<Remote> = None;
    loop {
        let learned = match &remote {
            Some(remote) => learn(&bridge, remote, index).await,
            None => match find(&bridge, &customer, &chosen).await {
                Ok(found) => {
                    let found = &*remote.insert(found);
                    customer.watch(found.provider);
                    learn(&bridge, found, index).await
                }
                Err(reason) => Err(reason),
            },
        };
        let Some(alive) = bridge.upgrade() else { return };
        if std::mem::take(&mut is_first) {
            alive.tried.send_modify(|tried| *tried += 1);
        }
        match (learned, &remote) {
            (Ok(()), Some(remote)) => {
                drop(alive);
                retry = FIRST_RETRY;
                tokio::select! {
                    is_alive = next_announcement(&mut announced, remote) => if !is_alive {
                        return;
                    },
                    () = acceptance(&bridge, index) => {}
                }
                if let Err(error) = remote.customer().announcements().save()
                    && let Some(alive) = bridge.upgrade()
                {
                    alive.notice(Notice::NotKept { reason: error.to_string() });
                }
            }
            (learned, _) => {
                let service = lock(&alive.sources)[index].title();
                let reason = learned.err().unwrap_or_default();
                alive.notice(Notice::Failed { service, reason });
                drop(alive);
                tokio::time::sleep(retry).await;
                retry = (retry * 2).min(LAST_RETRY);
            }
        }
    }
}

async fn find(bridge: &Weak<Bridge>, customer: &Customer, chosen: &Chosen) -> Result<Remote, String> {
    let pins = bridge.upgrade().ok_or("the bridge has ended")?.pins.clone();
    let target = chosen.reference.resolve(customer, &pins).await.map_err(|unknown| unknown.to_string())?;
    Remote::open(customer, &target, chosen.terms).await.map_err(|error| error.to_string())
}

/// Asks a service what it offers. Its tools are offered as soon as they are known.
async fn learn(bridge: &Weak<Bridge>, remote: &Remote, index: usize) -> Result<(), String> {
    let gone = || "the bridge has ended".to_owned();
    if remote.service().is_none() {
        // Without an announcement it may be away, or private. It may also have come back since.
        remote.look_up().await.map_err(|error| error.to_string())?;
    }
    bridge.upgrade().ok_or_else(gone)?.introduce(index, remote);
    let tools = async {
        let tools = Catalogue::tools(remote).await.map_err(|error| error.to_string())?;
        bridge.upgrade().ok_or_else(gone)?.learn_tools(index, remote, tools).await;
        Ok(())
    };
    let others = async {
        let others = Catalogue::others(remote).await;
        bridge.upgrade().ok_or_else(gone)?.learn_others(index, others);
        Ok(())
    };
    let (tools, others) = tokio::join!(tools, others);
    tools.and(others)
}

/// Waits until the service announces something new; `false` if nothing can come any more.
async fn next_announcement(
    announced: &mut tokio::sync::broadcast::Receiver<Arc<rialto_wire::service::Service>>,
    remote: &Remote,
) -> bool {
    loop {
        match announced.recv().await {
            Ok(service) if remote.take((*service).clone()) => return true,
            Ok(_) => {}
            // Too many at once to remember; one of them may have been this one's.
            Err(RecvError::Lagged(_)) => return true,
            Err(RecvError::Closed) => return false,
        }
    }
}

/// Waits until a change of a tool that is hidden has been accepted, in another process.
async fn acceptance(bridge: &Weak<Bridge>, index: usize) {
    let mut rounds = tokio::time::interval(LOOK_AGAIN);
    loop {
        rounds.tick().await;
        let Some(alive) = bridge.upgrade() else { return };
        let (provider, changed) = {
            let source = &lock(&alive.sources)[index];
            (source.provider(), source.changed.clone())
        };
        let Some(provider) = provider.filter(|_| !changed.is_empty()) else { continue };
        let pins = alive.pins.clone();
        drop(alive);
        let book = tokio::task::spawn_blocking(move || pins.read()).await;
        let Ok(Ok(book)) = book else { continue };
        let service = book.services.get(&provider.to_hex());
        let is_open = |tool: &String| {
            service.and_then(|service| service.tools.get(tool)).is_some_and(|pin| pin.offered.is_some())
        };
        if !changed.iter().all(is_open) {
            return;
        }
    }
}

impl Bridge {
    fn introduce(&self, index: usize, remote: &Remote) {
        let way = remote.way();
        let is_new = {
            let mut sources = lock(&self.sources);
            let source = &mut sources[index];
            let pinned = self.pins.read().ok().and_then(|book| book.services.get(&remote.provider.to_hex()).cloned());
            let name = pinned.map(|service| service.name).filter(|name| !name.is_empty()).or_else(|| remote.name());
            source.name = name.unwrap_or_default();
            source.remote = Some(remote.clone());
            source.way.replace(way) != Some(way)
        };
        if is_new && !way.sealed {
            let service = lock(&self.sources)[index].title();
            self.notice(Notice::Seen { service, way });
        }
    }

    async fn learn_tools(&self, index: usize, remote: &Remote, tools: Vec<Item>) {
        let (pins, provider, name) = (self.pins.clone(), remote.provider, remote.name().unwrap_or_default());
        let now = remote.customer().0.clock.now().as_secs();
        let shared = Arc::new(tools);
        let checked = shared.clone();
        // It reads and writes a file, and may wait for another process.
        let verdicts = tokio::task::spawn_blocking(move || pins.check(&provider, &name, &checked, now)).await;
        let verdicts = match verdicts {
            Ok(Ok(verdicts)) => verdicts,
            // A tool that cannot be compared with what it was is not offered.
            Ok(Err(error)) => return self.unpinned(index, error.to_string()),
            Err(error) => return self.unpinned(index, error.to_string()),
        };
        let mut changed = BTreeSet::new();
        let mut offered = Vec::new();
        for (tool, verdict) in shared.iter().zip(&verdicts) {
            match verdict {
                Verdict::Same | Verdict::New => offered.push(tool.clone()),
                Verdict::Changed => {
                    changed.insert(tool.name.clone());
                    offered.push(tool.clone());
                }
                Verdict::Full => {}
            }
        }
        let count = offered.len() - changed.len();
        let (service, is_news) = {
            let mut sources = lock(&self.sources);
            let source = &mut sources[index];
            let is_news = source.changed != changed;
            source.catalogue.tools = offered;
            source.changed.clone_from(&changed);
            (source.title(), is_news)
        };
        self.refresh();
        self.notice(Notice::Ready { service: service.clone(), tools: count, way: remote.way() });
        if verdicts.contains(&Verdict::Full) {
            let reason = "some tools are hidden, because too many are remembered: rialto pins forget SERVICE";
            self.notice(Notice::NotKept { reason: reason.to_owned() });
        }
        if is_news && !changed.is_empty() {
            let tools = changed.into_iter().collect();
            self.notice(Notice::Changed { service, npub: npub(&provider), tools });
        }
    }

    fn unpinned(&self, index: usize, reason: String) {
        lock(&self.sources)[index].catalogue.tools.clear();
        self.refresh();
        self.notice(Notice::NotKept { reason });
    }

    fn learn_others(&self, index: usize, others: Catalogue) {
        {
            let catalogue = &mut lock(&self.sources)[index].catalogue;
            let tools = std::mem::take(&mut catalogue.tools);
            *catalogue = Catalogue { tools, ..others };
        }
        self.refresh();
    }
}
