//! The hub: takes requests from any number of clients, finds the server that each is for, passes it on.

mod levels;
mod requests;

use crate::bridge::{self, Waiting};
use crate::catalogue::{Catalogue, Hidden, Kind};
use crate::event::{Event, Events};
use crate::guard::Guard;
use crate::link::{Attribution, Link};
use crate::merge;
use crate::plan::{Plan, ServerPlan};
use crate::source::{Figures, Source};
use bytes::Bytes;
use levels::{DEFAULT_LEVEL, LEVELS, rank};
use requests::{level_params, set_level};
use rialto_mcp::call::Call;
use rialto_mcp::json;
use rialto_mcp::message::Notification;
use rialto_mcp::mirror::Mirrored;
use rialto_mcp::peer::{Change, Peer, Profile};
use rialto_mcp::pending::Patience;
use rialto_mcp::reply::Answer;
use rialto_mcp::server::{Description, Service};
use rialto_mcp::version::Version;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// How the hub calls itself where it speaks for several servers.
const OWN_INFO: &str =
    concat!("{\"name\":\"rialto\",\"title\":\"Rialto gateway\",\"version\":\"", env!("CARGO_PKG_VERSION"), "\"}");

/// How we introduce ourselves to servers that several clients share: with everything that any client may be able to do. A
/// question for a client that cannot is refused when it comes.
const SHARED_CAPABILITIES: &str =
    r#"{"sampling":{"context":{},"tools":{}},"elicitation":{"form":{},"url":{}},"roots":{"listChanged":true}}"#;

/// How long a server may take to answer when it is asked whether it is there.
const CHECK_PATIENCE: Patience = Patience { silence: Duration::from_secs(5), total: Duration::from_secs(5) };

/// How often it is looked whether a server that is to go has finished its calls.
const RETIRE_PAUSE: Duration = Duration::from_millis(50);

/// Many servers as one.
#[derive(Debug)]
pub struct Hub {
    /// What is offered now. Requests work with the one they began with.
    view: Mutex<Arc<View>>,
    /// Whether clients come and go, and share the servers.
    is_shared: bool,
    guard: Arc<Guard>,
    /// Every server that may still run, those included that are no longer offered.
    running: Mutex<Vec<Weak<Source>>>,
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
    supervisors: Mutex<tokio::task::JoinSet<()>>,
}

/// The servers of a plan, and everything they offer together.
#[derive(Debug)]
pub(crate) struct View {
    plan: Plan,
    /// Whether any tool is hidden on purpose.
    has_policy: bool,
    /// In the order of the plan.
    sources: Vec<Arc<Source>>,
    catalogue: Catalogue,
}

/// What a new plan changed, by the names of the servers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reloaded {
    pub added: Vec<String>,
    pub changed: Vec<String>,
    pub removed: Vec<String>,
}

impl Reloaded {
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.changed.is_empty() && self.removed.is_empty()
    }
}

/// A connected client.
#[derive(Debug)]
struct Entry {
    peer: Arc<Peer>,
    profile: Arc<Profile>,
    /// Resources it wants to hear of, and how many of its subscriptions each.
    uris: BTreeMap<String, usize>,
    /// The log messages it wants to see, if it said so.
    level: Option<usize>,
}

impl View {
    /// With one server and nothing hidden we are a pane of glass: even what is not in the catalogue is passed on.
    fn transparent(&self) -> Option<usize> {
        match self.sources.as_slice() {
            [only] if only.plan.allow.is_empty() && only.plan.deny.is_empty() => Some(0),
            _ => None,
        }
    }

    /// The place of the server that a resource belongs to.
    fn owner_of(&self, uri: &str) -> Option<usize> {
        self.catalogue.resource(uri).or_else(|| self.transparent()).or_else(|| {
            let has_resources = |place: &usize| self.sources[*place].ready().is_some_and(|link| link.can("resources"));
            let mut able = (0..self.sources.len()).filter(has_resources);
            let only = able.next()?;
            able.next().is_none().then_some(only)
        })
    }
}

impl Hub {
    /// Starts all servers of the plan for one client; they are introduced once it has said who it is, in its words.
    pub fn start(plan: Plan, guard: Guard, events: Events) -> Arc<Self> {
        Self::begin(plan, guard, events, false)
    }

    /// Starts all servers of the plan for clients that come and go. The first one decides which era is spoken to servers that
    /// know both.
    pub fn start_shared(plan: Plan, guard: Guard, events: Events) -> Arc<Self> {
        Self::begin(plan, guard, events, true)
    }

    fn begin(plan: Plan, guard: Guard, events: Events, is_shared: bool) -> Arc<Self> {
        let empty = Plan { servers: Vec::new(), prefix: plan.prefix, startup_grace: plan.startup_grace };
        let view = View { plan: empty, has_policy: false, sources: Vec::new(), catalogue: Catalogue::default() };
        let hub = Arc::new(Self {
            view: Mutex::new(Arc::new(view)),
            is_shared,
            guard: Arc::new(guard),
            running: Mutex::default(),
            hidden: Mutex::default(),
            peers: Mutex::default(),
            profile: watch::Sender::new(None),
            begun: Mutex::default(),
            has_promised: AtomicBool::new(false),
            log_level: Mutex::default(),
            waiting: Waiting::default(),
            events,
            supervisors: Mutex::default(),
        });
        hub.reload(plan);
        hub
    }

    /// Goes over to another plan: servers that are the same in both go on undisturbed, others end when their calls have.
    pub fn reload(self: &Arc<Self>, plan: Plan) -> Reloaded {
        let before = self.view();
        let kept = |server: &ServerPlan| before.sources.iter().find(|source| source.plan == *server).cloned();
        let sources: Vec<_> =
            plan.servers.iter().map(|server| kept(server).unwrap_or_else(|| self.launch(server.clone()))).collect();
        let is_in =
            |sources: &[Arc<Source>], source: &Arc<Source>| sources.iter().any(|other| Arc::ptr_eq(other, source));
        let named = |sources: &[Arc<Source>], name: &str| sources.iter().any(|source| source.plan.name == name);
        let mut reloaded = Reloaded::default();
        for source in sources.iter().filter(|source| !is_in(&before.sources, source)) {
            let name = source.plan.name.clone();
            if named(&before.sources, &name) { reloaded.changed.push(name) } else { reloaded.added.push(name) }
        }
        for source in before.sources.iter().filter(|source| !is_in(&sources, source)) {
            if !named(&sources, &source.plan.name) {
                reloaded.removed.push(source.plan.name.clone());
            }
            retire(source.clone());
        }
        self.offer(Some((plan, sources)), &[]);
        reloaded
    }

    /// Starts one server.
    fn launch(self: &Arc<Self>, server: ServerPlan) -> Arc<Source> {
        let source = Source::new(server, self.events.clone());
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.retain(|source| source.strong_count() > 0);
        running.push(Arc::downgrade(&source));
        let (profile, stop) = (self.profile.subscribe(), source.stop.subscribe());
        let supervised = source.clone().supervise(Arc::downgrade(self), self.guard.clone(), profile, stop);
        let mut supervisors = self.supervisors.lock().unwrap_or_else(PoisonError::into_inner);
        while supervisors.try_join_next().is_some() {}
        supervisors.spawn(supervised);
        source
    }

    /// Ends all servers, and waits until they are gone.
    pub async fn stop(&self) {
        let running = std::mem::take(&mut *self.running.lock().unwrap_or_else(PoisonError::into_inner));
        for source in running.iter().filter_map(Weak::upgrade) {
            source.stop.send_replace(true);
        }
        let mut supervisors = std::mem::take(&mut *self.supervisors.lock().unwrap_or_else(PoisonError::into_inner));
        while supervisors.join_next().await.is_some() {}
    }

    /// Asks every server whether it is there; gives how long each took to answer, or why it did not. Servers that nobody has
    /// needed yet are introduced.
    pub async fn check(&self) -> Vec<(String, Result<Duration, String>)> {
        self.introduce(&Arc::new(Profile::unknown()), false);
        let mut asked = tokio::task::JoinSet::new();
        for (place, source) in self.view().sources.iter().cloned().enumerate() {
            asked.spawn(async move {
                let begun = Instant::now();
                let answered = tokio::time::timeout(CHECK_PATIENCE.total, source.check(CHECK_PATIENCE)).await;
                let outcome = answered.unwrap_or_else(|_| Err("it is still starting".into()));
                (place, source.plan.name.clone(), outcome.map(|()| begun.elapsed()))
            });
        }
        let mut checked = asked.join_all().await;
        checked.sort_unstable_by_key(|(place, ..)| *place);
        checked.into_iter().map(|(_, name, outcome)| (name, outcome)).collect()
    }

    /// For each server: its name, whether it is ready, how often it was started, how many calls it has had.
    pub fn figures(&self) -> Vec<Figures> {
        self.view().sources.iter().map(|source| source.figures()).collect()
    }

    pub(crate) fn events(&self) -> &Events {
        &self.events
    }

    fn view(&self) -> Arc<View> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner).clone()
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

    /// Makes a client known. The first one to come decides how we introduce ourselves to the servers. If they are its own and
    /// it introduces itself anew with `initialize`, so do we.
    fn greet(&self, peer: &Arc<Peer>, profile: &Arc<Profile>) {
        let mut peers = self.peers();
        match peers.get_mut(&peer.serial) {
            Some(entry) if Arc::ptr_eq(&entry.profile, profile) => return,
            Some(entry) => entry.profile = profile.clone(),
            None => {
                let entry = Entry { peer: peer.clone(), profile: profile.clone(), uris: BTreeMap::new(), level: None };
                peers.insert(peer.serial, entry);
            }
        }
        let is_alone = peers.len() == 1;
        drop(peers);
        self.introduce(profile, is_alone);
    }

    /// Introduces ourselves to the servers if that has not been done, or is to be done again.
    fn introduce(&self, profile: &Arc<Profile>, is_alone: bool) {
        self.profile.send_if_modified(|known| {
            let is_news = match known {
                None => true,
                Some(known) => !self.is_shared && is_alone && profile.initialize.is_some() && known != profile,
            };
            if is_news {
                for source in self.view().sources.iter().filter(|_| known.is_some()) {
                    source.renew();
                }
                *self.begun.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
                *known = Some(if self.is_shared { shared(profile) } else { profile.clone() });
            }
            is_news
        });
    }

    /// Waits for servers that are still starting, as long as the plan allows.
    async fn wait_started(&self) {
        let begun = *self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        let begun = begun.unwrap_or_else(Instant::now);
        let view = self.view();
        let all = async {
            for source in &view.sources {
                source.settled().await;
            }
        };
        let _ = tokio::time::timeout_at(begun + view.plan.startup_grace, all).await;
    }

    /// Merges the lists anew and tells clients of those that changed, and of those in `told` in any case.
    pub(crate) fn rebuild(&self, told: &[Kind]) {
        self.offer(None, told);
    }

    /// Offers what the servers offer now, or what other ones do.
    fn offer(&self, changed: Option<(Plan, Vec<Arc<Source>>)>, told: &[Kind]) {
        let mut current = self.view.lock().unwrap_or_else(PoisonError::into_inner);
        let (plan, sources) = changed.unwrap_or_else(|| (current.plan.clone(), current.sources.clone()));
        let offers: Vec<_> = sources.iter().map(|source| source.offer()).collect();
        let (catalogue, hidden) = Catalogue::build(&plan, &offers);
        let hidden: BTreeSet<_> = hidden.into_iter().collect();
        let has_policy = plan.servers.iter().any(|server| !server.allow.is_empty() || !server.deny.is_empty());
        let view = Arc::new(View { plan, has_policy, sources, catalogue });
        let before = std::mem::replace(&mut *current, view.clone());
        drop(current);
        let differs =
            |kind: Kind| told.contains(&kind) || before.catalogue.section(kind) != view.catalogue.section(kind);
        let changes = [
            (Change::Tools, differs(Kind::Tools)),
            (Change::Prompts, differs(Kind::Prompts)),
            (Change::Resources, differs(Kind::Resources) || differs(Kind::Templates)),
        ];
        let known = std::mem::replace(&mut *self.hidden.lock().unwrap_or_else(PoisonError::into_inner), hidden.clone());
        for item in hidden.into_iter().filter(|item| !known.contains(item)) {
            let server = view.plan.servers[item.source].name.clone();
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
            return link.listen(&self.uris_of(&link.source)).await;
        }
        if let Some(level) = self.log_level() {
            set_level(link, &level_params(&level)).await;
        }
        for uri in self.uris_of(&link.source) {
            self.subscribe(link, &uri, true).await;
        }
    }

    /// The resources of one server that any client wants to hear of.
    fn uris_of(&self, source: &Arc<Source>) -> Vec<String> {
        let view = self.view();
        let owned = |uri: &String| view.owner_of(uri).is_some_and(|place| Arc::ptr_eq(&view.sources[place], source));
        let uris: BTreeSet<_> =
            self.peers().values().flat_map(|entry| entry.uris.keys().cloned()).filter(owned).collect();
        uris.into_iter().collect()
    }

    async fn subscribe(&self, link: &Arc<Link>, uri: &str, on: bool) {
        if link.is_modern() || !on {
            return forget(link, uri, &self.uris_of(&link.source)).await;
        }
        let params = serde_json::json!({ "uri": uri }).to_string();
        // A server that cannot does not offer it; there is nobody to tell.
        let _ = link.ask("resources/subscribe", params.as_bytes(), link.source.patience()).await;
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
        // The server speaks at the level of the client that wants to hear most.
        let importance = if is_log && self.is_shared { rank(json::get(note.params(), "level")) } else { LEVELS.len() };
        let wants = |entry: &Entry| importance >= entry.level.unwrap_or(DEFAULT_LEVEL);
        let attributed = link.attributed();
        // What belongs to one of several clients is for no other.
        if self.is_shared && matches!(attributed, Attribution::Ambiguous) {
            return;
        }
        if let Attribution::Call(active) = attributed {
            let is_wanted = self.peers().get(&active.peer.serial).is_none_or(wants);
            if is_wanted && may_hear(&active.profile) {
                active.peer.forward(note, active.outlet.as_ref()).await;
            }
            return;
        }
        let peers: Vec<_> = {
            let peers = self.peers();
            let heard = peers.values().filter(|entry| may_hear(&entry.profile) && wants(entry));
            heard.map(|entry| entry.peer.clone()).collect()
        };
        for peer in peers {
            peer.forward(note, None).await;
        }
    }
}

impl Service for Hub {
    const AT_ONCE: bool = false;

    fn info(&self) -> Bytes {
        let view = self.view();
        let only = if let [only] = view.sources.as_slice() { only.ready() } else { None };
        only.and_then(|link| link.welcome()?.info.clone()).unwrap_or_else(|| Bytes::from_static(OWN_INFO.as_bytes()))
    }

    async fn describe(&self, peer: &Arc<Peer>, profile: &Arc<Profile>) -> Description {
        self.greet(peer, profile);
        self.wait_started().await;
        let view = self.view();
        let links: Vec<_> = view.sources.iter().map(|source| source.ready()).collect();
        if links.iter().any(Option::is_none) {
            self.has_promised.store(true, Ordering::Relaxed);
        }
        merge::describe(&links, self.info())
    }

    async fn request(&self, call: &Call) -> Answer {
        self.greet(&call.peer, &call.profile);
        if call.version().is_modern()
            && let Some(answer) = Box::pin(bridge::resume(self, call)).await
        {
            return answer;
        }
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
        for link in self.view().sources.iter().filter_map(|source| source.ready()) {
            // Without waiting: one server that does not read must not hold up what is for the others.
            if !link.is_modern() && !link.client.outlet().try_send(|out| out.extend_from_slice(note.as_json())) {
                link.source.warn(format!("{} could not be passed on: the server does not read", note.method()));
            }
        }
    }

    async fn mirrored(&self, peer: &Arc<Peer>, profile: &Arc<Profile>, tool: &str) -> Vec<Mirrored> {
        let known = self.view().catalogue.section(Kind::Tools).mirrored(tool);
        if let Some(known) = known {
            return known;
        }
        self.greet(peer, profile);
        self.wait_started().await;
        self.view().catalogue.section(Kind::Tools).mirrored(tool).unwrap_or_default()
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
            let view = self.view();
            let link = view.owner_of(uri).and_then(|place| view.sources[place].ready());
            if let Some(link) = link.filter(|_| is_turn) {
                self.subscribe(&link, uri, on).await;
            }
        }
    }

    fn closed(&self, peer: &Arc<Peer>) {
        let Some(entry) = self.peers().remove(&peer.serial) else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let wanted = |uri: &String| self.peers().values().any(|other| other.uris.contains_key(uri));
        let view = self.view();
        for uri in entry.uris.into_keys().filter(|uri| !wanted(uri)) {
            let link = view.owner_of(&uri).and_then(|place| view.sources[place].ready());
            let Some(link) = link else { continue };
            let uris = self.uris_of(&link.source);
            runtime.spawn(async move { forget(&link, &uri, &uris).await });
        }
    }
}

/// Nobody wants to hear of a resource any more; of `others` somebody does.
async fn forget(link: &Arc<Link>, uri: &str, others: &[String]) {
    if link.is_modern() {
        return link.listen(others).await;
    }
    let params = serde_json::json!({ "uri": uri }).to_string();
    // There is nobody to tell.
    let _ = link.ask("resources/unsubscribe", params.as_bytes(), link.source.patience()).await;
}

/// How we introduce ourselves to servers that several clients share, the first of which is this one.
fn shared(first: &Profile) -> Arc<Profile> {
    let version = if first.version.is_modern() { first.version } else { Version::LATEST_LEGACY };
    let capabilities = Bytes::from_static(SHARED_CAPABILITIES.as_bytes());
    Arc::new(Profile { version, capabilities, info: Some(Bytes::from_static(OWN_INFO.as_bytes())), initialize: None })
}

/// Ends a server that is no longer offered, once its calls have ended.
fn retire(source: Arc<Source>) {
    tokio::spawn(async move {
        let deadline = Instant::now() + source.plan.max_timeout;
        while source.ready().is_some_and(|link| link.is_busy()) && Instant::now() < deadline {
            tokio::time::sleep(RETIRE_PAUSE).await;
        }
        source.stop.send_replace(true);
    });
}
