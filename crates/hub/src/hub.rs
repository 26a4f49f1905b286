//! The hub: takes requests from any number of clients, finds the server that each is for, passes it on.

mod requests;

use crate::bridge::Waiting;
use crate::catalogue::{Catalogue, Hidden, Kind};
use crate::event::{Event, Events};
use crate::guard::Guard;
use crate::link::{Attribution, Link};
use crate::merge;
use crate::plan::Plan;
use crate::source::Source;
use bytes::Bytes;
use requests::{level_params, set_level};
use rialto_mcp::call::Call;
use rialto_mcp::message::Notification;
use rialto_mcp::peer::{Change, Peer, Profile};
use rialto_mcp::reply::Answer;
use rialto_mcp::server::{Description, Service};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;
use tokio::time::Instant;

/// How the hub calls itself where it speaks for several servers.
const OWN_INFO: &str =
    concat!("{\"name\":\"rialto\",\"title\":\"Rialto gateway\",\"version\":\"", env!("CARGO_PKG_VERSION"), "\"}");

/// Many servers as one.
#[derive(Debug)]
pub struct Hub {
    plan: Plan,
    /// Whether any tool is hidden on purpose.
    has_policy: bool,
    sources: Vec<Arc<Source>>,
    catalogue: Mutex<Arc<Catalogue>>,
    /// What could not be offered when the catalogue was made last; each is told once.
    hidden: Mutex<BTreeSet<Hidden>>,
    peers: Mutex<BTreeMap<u64, Entry>>,
    profile: watch::Sender<Option<Arc<Profile>>>,
    /// When we began to introduce ourselves to the servers.
    begun: Mutex<Option<Instant>>,
    /// A client was told what a gateway can do in general, not what its only server can.
    has_promised: AtomicBool,
    /// The level that clients want log messages of, as written.
    log_level: Mutex<Option<Bytes>>,
    pub(crate) waiting: Waiting,
    events: Events,
    stop: watch::Sender<bool>,
    supervisors: Mutex<tokio::task::JoinSet<()>>,
}

/// A connected client.
#[derive(Debug)]
struct Entry {
    peer: Arc<Peer>,
    profile: Arc<Profile>,
    /// Resources it wants to hear of, and how many of its subscriptions each.
    uris: BTreeMap<String, usize>,
}

impl Hub {
    /// Starts all servers of the plan; they are introduced once the first client has said who it is.
    pub fn start(plan: Plan, guard: Guard, events: Events) -> Arc<Self> {
        let servers = plan.servers.iter().cloned().enumerate();
        let sources = servers.map(|(index, server)| Source::new(index, server, events.clone())).collect();
        let has_policy = plan.servers.iter().any(|server| !server.allow.is_empty() || !server.deny.is_empty());
        let hub = Arc::new(Self {
            plan,
            has_policy,
            sources,
            catalogue: Mutex::default(),
            hidden: Mutex::default(),
            peers: Mutex::default(),
            profile: watch::Sender::new(None),
            begun: Mutex::default(),
            has_promised: AtomicBool::new(false),
            log_level: Mutex::default(),
            waiting: Waiting::default(),
            events,
            stop: watch::Sender::new(false),
            supervisors: Mutex::default(),
        });
        let guard = Arc::new(guard);
        let mut supervisors = hub.supervisors.lock().unwrap_or_else(PoisonError::into_inner);
        for source in &hub.sources {
            let (profile, stop) = (hub.profile.subscribe(), hub.stop.subscribe());
            supervisors.spawn(source.clone().supervise(Arc::downgrade(&hub), guard.clone(), profile, stop));
        }
        drop(supervisors);
        hub
    }

    /// Ends all servers, and waits until they are gone.
    pub async fn stop(&self) {
        self.stop.send_replace(true);
        let mut supervisors = std::mem::take(&mut *self.supervisors.lock().unwrap_or_else(PoisonError::into_inner));
        while supervisors.join_next().await.is_some() {}
    }

    pub(crate) fn events(&self) -> &Events {
        &self.events
    }

    fn catalogue(&self) -> Arc<Catalogue> {
        self.catalogue.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn peers(&self) -> MutexGuard<'_, BTreeMap<u64, Entry>> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn all_peers(&self) -> Vec<Arc<Peer>> {
        self.peers().values().map(|entry| entry.peer.clone()).collect()
    }

    /// The client to ask when no call is running: only if there is no choice.
    pub(crate) fn only_peer(&self) -> Option<(Arc<Peer>, Arc<Profile>)> {
        let peers = self.peers();
        let mut entries = peers.values();
        let first = entries.next()?;
        entries.next().is_none().then(|| (first.peer.clone(), first.profile.clone()))
    }

    /// With one server and nothing hidden we are a pane of glass: even what is not in the catalogue is passed on.
    fn transparent(&self) -> Option<&Arc<Source>> {
        match self.sources.as_slice() {
            [only] if only.plan.allow.is_empty() && only.plan.deny.is_empty() => Some(only),
            _ => None,
        }
    }

    /// Makes a client known. The first one to come decides how we introduce ourselves to the servers. If it is alone and
    /// introduces itself anew with `initialize`, so do we.
    fn greet(&self, peer: &Arc<Peer>, profile: &Arc<Profile>) {
        let mut peers = self.peers();
        match peers.get_mut(&peer.serial) {
            Some(entry) if Arc::ptr_eq(&entry.profile, profile) => return,
            Some(entry) => entry.profile = profile.clone(),
            None => {
                let entry = Entry { peer: peer.clone(), profile: profile.clone(), uris: BTreeMap::new() };
                peers.insert(peer.serial, entry);
            }
        }
        let is_alone = peers.len() == 1;
        drop(peers);
        self.profile.send_if_modified(|known| {
            let is_news = match known {
                None => true,
                Some(known) => is_alone && profile.initialize.is_some() && known != profile,
            };
            if is_news {
                for source in self.sources.iter().filter(|_| known.is_some()) {
                    source.renew();
                }
                *self.begun.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
                *known = Some(profile.clone());
            }
            is_news
        });
    }

    /// Waits for servers that are still starting, as long as the plan allows.
    async fn wait_started(&self) {
        let begun = *self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        let begun = begun.unwrap_or_else(Instant::now);
        let all = async {
            for source in &self.sources {
                source.settled().await;
            }
        };
        let _ = tokio::time::timeout_at(begun + self.plan.startup_grace, all).await;
    }

    /// Merges the lists anew and tells clients of those that changed, and of those in `told` in any case.
    pub(crate) fn rebuild(&self, told: &[Kind]) {
        let mut current = self.catalogue.lock().unwrap_or_else(PoisonError::into_inner);
        let offers: Vec<_> = self.sources.iter().map(|source| source.offer()).collect();
        let (catalogue, hidden) = Catalogue::build(&self.plan, &offers);
        let hidden: BTreeSet<_> = hidden.into_iter().collect();
        let catalogue = Arc::new(catalogue);
        let before = std::mem::replace(&mut *current, catalogue.clone());
        drop(current);
        let differs = |kind: Kind| told.contains(&kind) || before.section(kind) != catalogue.section(kind);
        let changes = [
            (Change::Tools, differs(Kind::Tools)),
            (Change::Prompts, differs(Kind::Prompts)),
            (Change::Resources, differs(Kind::Resources) || differs(Kind::Templates)),
        ];
        let known = std::mem::replace(&mut *self.hidden.lock().unwrap_or_else(PoisonError::into_inner), hidden.clone());
        for item in hidden.into_iter().filter(|item| !known.contains(item)) {
            let server = self.plan.servers[item.source].name.clone();
            self.events.tell(Event::Warning { server, text: item.reason });
        }
        for peer in self.all_peers() {
            for (change, _) in changes.iter().filter(|(_, changed)| *changed) {
                peer.list_changed(change);
            }
        }
    }

    /// Gives a server that was started again what clients had told its predecessor.
    pub(crate) async fn restore(&self, link: &Arc<Link>) {
        if link.is_modern() {
            return link.listen(&self.uris_of(link.source.index)).await;
        }
        if let Some(level) = self.log_level() {
            set_level(link, &level_params(&level)).await;
        }
        for uri in self.uris_of(link.source.index) {
            self.subscribe(link, &uri, true).await;
        }
    }

    /// The resources of one server that any client wants to hear of.
    fn uris_of(&self, source: usize) -> Vec<String> {
        let catalogue = self.catalogue();
        let owned = |uri: &String| self.owner_of(&catalogue, uri).is_some_and(|owner| owner.index == source);
        let uris: BTreeSet<_> =
            self.peers().values().flat_map(|entry| entry.uris.keys().cloned()).filter(owned).collect();
        uris.into_iter().collect()
    }

    async fn subscribe(&self, link: &Arc<Link>, uri: &str, on: bool) {
        if link.is_modern() {
            return link.listen(&self.uris_of(link.source.index)).await;
        }
        let method = if on { "resources/subscribe" } else { "resources/unsubscribe" };
        let params = serde_json::json!({ "uri": uri }).to_string();
        // A server that cannot does not offer it; there is nobody to tell.
        let _ = link.ask(method, params.as_bytes(), link.source.patience()).await;
    }

    /// A resource changed: tells those who asked to hear of it.
    pub(crate) async fn updated(&self, link: &Link, change: &Change, note: &Notification) {
        let Change::Updated { uri } = change else { return };
        let interested: Vec<_> = {
            let peers = self.peers();
            let is_alone = peers.len() == 1;
            let wants = |entry: &&Entry| is_alone || entry.uris.keys().any(|wanted| uri.starts_with(wanted.as_str()));
            peers.values().filter(wants).map(|entry| entry.peer.clone()).collect()
        };
        // A stateless server's notification names our subscription, which means nothing to a client.
        let original = (!link.is_modern()).then_some(note);
        for peer in interested {
            peer.changed(change, original).await;
        }
    }

    /// A notification that we have no use for: to the client whose call is running, else to all.
    pub(crate) async fn pass_on(&self, link: &Link, note: &Notification) {
        // A stateless client hears log messages only of requests that ask for them, which an older server cannot know.
        let is_log = note.method() == "notifications/message";
        let may_hear = |profile: &Profile| !is_log || link.is_modern() || !profile.version.is_modern();
        if let Attribution::Call(active) = link.attributed() {
            if may_hear(&active.profile) {
                active.peer.forward(note, active.outlet.as_ref()).await;
            }
            return;
        }
        let peers: Vec<_> = {
            let peers = self.peers();
            peers.values().filter(|entry| may_hear(&entry.profile)).map(|entry| entry.peer.clone()).collect()
        };
        for peer in peers {
            peer.forward(note, None).await;
        }
    }

    fn owner_of(&self, catalogue: &Catalogue, uri: &str) -> Option<&Arc<Source>> {
        if let Some(index) = catalogue.resource(uri) {
            return self.sources.get(index);
        }
        self.transparent().or_else(|| {
            let has_resources = |source: &&Arc<Source>| source.ready().is_some_and(|link| link.can("resources"));
            let mut able = self.sources.iter().filter(has_resources);
            let only = able.next()?;
            able.next().is_none().then_some(only)
        })
    }

    pub(crate) fn log_level(&self) -> Option<Bytes> {
        self.log_level.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Service for Hub {
    const AT_ONCE: bool = false;

    fn info(&self) -> Bytes {
        let only = if let [only] = self.sources.as_slice() { only.ready() } else { None };
        only.and_then(|link| link.welcome()?.info.clone()).unwrap_or_else(|| Bytes::from_static(OWN_INFO.as_bytes()))
    }

    async fn describe(&self, peer: &Arc<Peer>, profile: &Arc<Profile>) -> Description {
        self.greet(peer, profile);
        self.wait_started().await;
        let links: Vec<_> = self.sources.iter().map(|source| source.ready()).collect();
        if links.iter().any(Option::is_none) {
            self.has_promised.store(true, Ordering::Relaxed);
        }
        merge::describe(&self.plan, &links, self.info())
    }

    async fn request(&self, call: &Call) -> Answer {
        self.greet(&call.peer, &call.profile);
        // Tool calls are what a gateway does all day; the others are boxed so that their state does not weigh on these.
        match call.method() {
            "tools/call" => self.by_name(Kind::Tools, call).await,
            _ => Box::pin(self.other_request(call)).await,
        }
    }

    async fn notification(&self, _peer: &Arc<Peer>, note: &Notification) {
        // Our own introduction has said this already.
        if note.method() == "notifications/initialized" {
            return;
        }
        for link in self.sources.iter().filter_map(|source| source.ready()) {
            // Without waiting: one server that does not read must not hold up what is for the others.
            if !link.is_modern() && !link.client.outlet().try_send(|out| out.extend_from_slice(note.as_json())) {
                link.source.warn(format!("{} could not be passed on: the server does not read", note.method()));
            }
        }
    }

    async fn watch(&self, peer: &Arc<Peer>, uris: &[String], on: bool) {
        for uri in uris {
            // Only the first to come and the last to go concern the server.
            let is_turn = {
                let mut peers = self.peers();
                let before = peers.values().filter_map(|entry| entry.uris.get(uri)).sum::<usize>();
                let Some(entry) = peers.get_mut(&peer.serial) else { continue };
                let count = entry.uris.entry(uri.clone()).or_default();
                *count = if on { *count + 1 } else { count.saturating_sub(1) };
                if *count == 0 {
                    entry.uris.remove(uri);
                }
                before == usize::from(!on)
            };
            let source = self.owner_of(&self.catalogue(), uri).cloned();
            if let Some(link) = source.and_then(|source| source.ready()).filter(|_| is_turn) {
                self.subscribe(&link, uri, on).await;
            }
        }
    }

    fn closed(&self, peer: &Arc<Peer>) {
        self.peers().remove(&peer.serial);
    }
}
