//! The hub: takes requests from any number of clients, finds the server that each is for, passes it on.

use crate::bridge::{self, Waiting};
use crate::catalogue::{Catalogue, Kind, Route};
use crate::event::{Event, Events};
use crate::guard::Guard;
use crate::link::{Attribution, Link};
use crate::merge;
use crate::name;
use crate::plan::Plan;
use crate::source::Source;
use bytes::Bytes;
use rialto_mcp::error::{self, Error};
use rialto_mcp::json;
use rialto_mcp::message::{Edit, Notification};
use rialto_mcp::peer::{Change, Peer, Profile};
use rialto_mcp::reply::Answer;
use rialto_mcp::server::{Call, Description, Service};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// How long a list request waits for a server that does not tell when its lists change.
const REFRESH_WAIT: Duration = Duration::from_secs(2);

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
        let catalogue = Arc::new(catalogue);
        let before = std::mem::replace(&mut *current, catalogue.clone());
        drop(current);
        let differs = |kind: Kind| told.contains(&kind) || before.section(kind) != catalogue.section(kind);
        let changes = [
            (Change::Tools, differs(Kind::Tools)),
            (Change::Prompts, differs(Kind::Prompts)),
            (Change::Resources, differs(Kind::Resources) || differs(Kind::Templates)),
        ];
        if before != catalogue {
            for item in hidden {
                let server = self.plan.servers[item.source].name.clone();
                self.events.tell(Event::Warning { server, text: item.reason });
            }
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

    async fn list(&self, kind: Kind, call: &Call) -> Answer {
        self.wait_started().await;
        self.freshen(kind).await;
        let catalogue = self.catalogue();
        let section = catalogue.section(kind);
        // What was promised for servers to come is an empty list as long as they do not come.
        if let [only] = self.sources.as_slice()
            && !self.has_promised.load(Ordering::Relaxed)
            && only.ready().is_some_and(|link| !link.can(kind.capability()))
        {
            return Answer::Error(Error::not_offered(call.method()));
        }
        let cursor = match json::get(call.params(), "cursor") {
            None | Some(b"null") => None,
            Some(value) => match json::string(value) {
                Some(cursor) => Some(cursor),
                None => return Answer::Error(Error::invalid_params("`cursor` must be a string")),
            },
        };
        section.page(kind, cursor.as_deref()).into()
    }

    /// Asks those servers again that would not have told of a change.
    async fn freshen(&self, kind: Kind) {
        let silent = |link: &Arc<Link>| link.can(kind.capability()) && !link.flag(kind.capability(), "listChanged");
        let links: Vec<_> = self.sources.iter().filter_map(|source| source.ready()).filter(silent).collect();
        if links.is_empty() {
            return;
        }
        let mut asked = tokio::task::JoinSet::new();
        for link in links {
            asked.spawn(async move { !link.source.refresh(&link, &[kind]).await.is_empty() });
        }
        let mut changed = false;
        let all = async {
            while let Some(one) = asked.join_next().await {
                changed |= one.unwrap_or(false);
            }
        };
        let _ = tokio::time::timeout(REFRESH_WAIT, all).await;
        if changed {
            self.rebuild(&[]);
        }
    }

    /// Finds the server behind a name that is not known yet: it may belong to a server that is starting, or down.
    async fn late_route(&self, kind: Kind, public: &str) -> Result<Option<Route>, Down> {
        let named = self.sources.iter().find(|source| public.starts_with(&name::public(&source.plan.name, "")));
        let mut down = None;
        match named {
            Some(source) if !source.has_offer() => {
                down = source.link().await.err().map(|reason| Down {
                    server: source.plan.name.clone(),
                    fault: rialto_mcp::pending::Fault::Closed(reason),
                });
            }
            _ => self.wait_started().await,
        }
        let found = self.catalogue().section(kind).route(public).cloned();
        let found = found.or_else(|| self.transparent().map(|only| Route { source: only.index, name: public.into() }));
        match (found, down) {
            (None, Some(down)) => Err(down),
            (found, _) => Ok(found),
        }
    }

    async fn by_name(&self, kind: Kind, call: &Call) -> Answer {
        let place = match json::find(call.params(), ["name"]) {
            Ok([Some(place)]) => place,
            Ok([None]) => return Answer::Error(Error::invalid_params("`name` is missing")),
            Err(flaw) => return Answer::Error(Error::invalid_params(flaw.to_string())),
        };
        let Some(public) = json::string(&call.params()[place.clone()]) else {
            return Answer::Error(Error::invalid_params("`name` must be a string"));
        };
        if self.has_policy && has_second_name(call.params()) {
            return Answer::Error(Error::invalid_params("`name` is given twice, in different spellings"));
        }
        let catalogue = self.catalogue();
        let late;
        let route = match catalogue.section(kind).route(&public) {
            Some(route) => Some(route),
            None => {
                late = match Box::pin(self.late_route(kind, &public)).await {
                    Ok(late) => late,
                    Err(down) => return Answer::Error(bridge::unanswered(&down.server, call.method(), &down.fault)),
                };
                late.as_ref()
            }
        };
        let Some(route) = route else {
            let (kind, what) = match kind {
                Kind::Prompts => (error::Kind::PromptNotFound, "prompt"),
                _ => (error::Kind::ToolNotFound, "tool"),
            };
            return Answer::Error(Error::new(kind, format!("Unknown {what}: {public}")).with("name", &*public));
        };
        if *route.name == *public {
            return self.pass(route.source, call, &[]).await;
        }
        let name = json::quoted(&route.name);
        self.pass(route.source, call, &[(place, &name)]).await
    }

    async fn by_uri(&self, call: &Call) -> Answer {
        let Some(uri) = json::get_string(call.params(), "uri").map(|uri| uri.into_owned()) else {
            return Answer::Error(Error::invalid_params("`uri` must be a string"));
        };
        if self.owner_of(&self.catalogue(), &uri).is_none() {
            self.wait_started().await;
        }
        let Some(source) = self.owner_of(&self.catalogue(), &uri).map(|source| source.index) else {
            let error = Error::new(error::Kind::ResourceNotFound, format!("Resource not found: {uri}"));
            return Answer::Error(error.with("uri", uri));
        };
        match call.method() {
            "resources/subscribe" => self.note_subscription(call, source, uri, true).await,
            "resources/unsubscribe" => self.note_subscription(call, source, uri, false).await,
            _ => self.pass(source, call, &[]).await,
        }
    }

    async fn note_subscription(&self, call: &Call, source: usize, uri: String, on: bool) -> Answer {
        let others_want = {
            let mut peers = self.peers();
            if let Some(entry) = peers.get_mut(&call.peer.serial) {
                if on {
                    entry.uris.insert(uri.clone(), 1)
                } else {
                    entry.uris.remove(&uri)
                };
            }
            peers.iter().any(|(serial, entry)| *serial != call.peer.serial && entry.uris.contains_key(&uri))
        };
        if !on && others_want {
            return Answer::empty();
        }
        match self.sources[source].link().await {
            Ok(link) if link.is_modern() => {
                self.subscribe(&link, &uri, on).await;
                Answer::empty()
            }
            _ => self.pass(source, call, &[]).await,
        }
    }

    async fn complete(&self, call: &Call) -> Answer {
        let params = call.params();
        let Ok([Some(reference)]) = json::find(params, ["ref"]) else {
            return Answer::Error(Error::invalid_params("`ref` is missing"));
        };
        let object = &params[reference.clone()];
        if let Some(uri) = json::get_string(object, "uri") {
            let catalogue = self.catalogue();
            let route = catalogue.section(Kind::Templates).route(&uri).map(|route| route.source);
            let source = route.or_else(|| self.owner_of(&catalogue, &uri).map(|source| source.index));
            return match source {
                Some(source) => self.pass(source, call, &[]).await,
                None => Answer::Error(
                    Error::new(error::Kind::ResourceNotFound, format!("Resource not found: {uri}")).with("uri", &*uri),
                ),
            };
        }
        let place = json::find(object, ["name"]).ok().and_then(|[place]| place);
        let Some((place, public)) =
            place.and_then(|place| Some((place.clone(), json::string(&object[place])?.into_owned())))
        else {
            return Answer::Error(Error::invalid_params("`ref` must have a `name` or a `uri`"));
        };
        let route = match self.late_route(Kind::Prompts, &public).await {
            Ok(route) => route,
            Err(down) => return Answer::Error(bridge::unanswered(&down.server, call.method(), &down.fault)),
        };
        let Some(route) = route else {
            let error = Error::new(error::Kind::PromptNotFound, format!("Unknown prompt: {public}"));
            return Answer::Error(error.with("name", public));
        };
        let name = json::quoted(&route.name);
        let place = place.start + reference.start..place.end + reference.start;
        let edits: &[Edit<'_>] = if *route.name == *public { &[] } else { &[(place, &name)] };
        self.pass(route.source, call, edits).await
    }

    async fn set_level(&self, call: &Call) -> Answer {
        let Ok([Some(place)]) = json::find(call.params(), ["level"]) else {
            return Answer::Error(Error::invalid_params("`level` is missing"));
        };
        // A common misspelling.
        let is_short = json::string(&call.params()[place.clone()]).as_deref() == Some("warn");
        let level: &[u8] = if is_short { b"\"warning\"" } else { &call.params()[place.clone()] };
        *self.log_level.lock().unwrap_or_else(PoisonError::into_inner) = Some(Bytes::copy_from_slice(level));
        let edits: &[Edit<'_>] = if is_short { &[(place, level)] } else { &[] };
        if let [only] = self.sources.as_slice()
            && only.ready().is_none_or(|link| !link.is_modern())
        {
            return self.pass(0, call, edits).await;
        }
        let mut asked = tokio::task::JoinSet::new();
        for link in self.sources.iter().filter_map(|source| source.ready()) {
            let params = level_params(level);
            asked.spawn(async move { set_level(&link, &params).await });
        }
        asked.join_all().await;
        Answer::empty()
    }

    pub(crate) fn log_level(&self) -> Option<Bytes> {
        self.log_level.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn other_request(&self, call: &Call) -> Answer {
        if let Some(kind) = Kind::of_method(call.method()) {
            return self.list(kind, call).await;
        }
        match call.method() {
            "prompts/get" => self.by_name(Kind::Prompts, call).await,
            "resources/read" | "resources/subscribe" | "resources/unsubscribe" => self.by_uri(call).await,
            "completion/complete" => self.complete(call).await,
            "logging/setLevel" => self.set_level(call).await,
            // What no version of the protocol knows can be passed on only where there is no choice.
            _ if self.sources.len() == 1 => self.pass(0, call, &[]).await,
            method => Answer::Error(Error::method_not_found(method)),
        }
    }

    /// Passes a call on to one server.
    async fn pass(&self, source: usize, call: &Call, edits: &[Edit<'_>]) -> Answer {
        let source = &self.sources[source];
        let link = match source.ready() {
            Some(link) => Ok(link),
            None => Box::pin(source.link()).await,
        };
        match link {
            Ok(link) => bridge::forward(self, &link, call, edits).await,
            Err(reason) => {
                let fault = rialto_mcp::pending::Fault::Closed(reason);
                Answer::Error(bridge::unanswered(&source.plan.name, call.method(), &fault))
            }
        }
    }
}

fn level_params(level: &[u8]) -> Vec<u8> {
    [b"{\"level\":".as_slice(), level, b"}"].concat()
}

/// Tells a server which log messages are wanted; a stateless one is told with each request.
async fn set_level(link: &Link, params: &[u8]) {
    if link.can("logging") && !link.is_modern() {
        // A server that refuses sends what it likes.
        let _ = link.ask("logging/setLevel", params, link.source.patience()).await;
    }
}

/// Some servers take `Name` for `name`: what our policy saw must be what they see.
fn has_second_name(params: &[u8]) -> bool {
    let names = json::Members::of(params).map_while(Result::ok);
    names.filter(|member| member.resembles("name")).count() > 1
}

/// The server that a name belongs to is not there.
struct Down {
    server: String,
    fault: rialto_mcp::pending::Fault,
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
