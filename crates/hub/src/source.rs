//! One server behind the hub: started, introduced, listed, watched and started again.

use crate::catalogue::{Kind, Listed, Offer};
use crate::child::Child;
use crate::event::{Event, Events};
use crate::guard::Guard;
use crate::hub::Hub;
use crate::link::Link;
use crate::plan::{EraChoice, Process, ServerPlan, Transport};
use crate::upstream::Upstream;
use bytes::Bytes;
use rialto_mcp::client::{Client, Opening, Unwelcome};
use rialto_mcp::json;
use rialto_mcp::outlet::outlet;
use rialto_mcp::peer::Profile;
use rialto_mcp::pending::Patience;
use std::collections::{HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// How long a server may take to answer the handshake. `npx` and `uvx` fetch packages first.
const START_PATIENCE: Patience = Patience { silence: Duration::from_secs(60), total: Duration::from_secs(60) };

/// How long a call waits for a server that is being started again.
const RESTART_WAIT: Duration = Duration::from_secs(30);

/// After a death the server is started again at once; each further death within [`DEATH_WINDOW`] doubles the pause.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// This many deaths within the window, and the server is left alone for [`OPEN_PAUSE`].
const MAX_DEATHS: usize = 5;
const DEATH_WINDOW: Duration = Duration::from_secs(60);
const OPEN_PAUSE: Duration = Duration::from_secs(60);

/// How long what a dead server wrote last may take to be read.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// Pages of one list that are followed; a server that never ends its list is cut off here.
const MAX_PAGES: usize = 1000;

/// How clients present themselves, once one has come.
pub(crate) type Profiles = watch::Receiver<Option<Arc<Profile>>>;

/// Where a server stands.
#[derive(Debug, Clone)]
pub(crate) enum State {
    /// Being started; calls wait.
    Starting,
    Ready(Arc<Link>),
    /// Not to be had; calls fail at once with this reason.
    Down(Arc<str>),
}

/// One server.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) plan: ServerPlan,
    state: watch::Sender<State>,
    /// What it offers, kept while it is being started again.
    offer: Mutex<Option<Offer>>,
    stale: Mutex<Stale>,
    /// Ends it when it turns true.
    pub(crate) stop: watch::Sender<bool>,
    starts: AtomicU64,
    calls: AtomicU64,
    events: Events,
}

/// How a server has fared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Figures {
    pub name: String,
    pub is_ready: bool,
    pub starts: u64,
    pub calls: u64,
}

impl Source {
    pub(crate) fn new(plan: ServerPlan, events: Events) -> Arc<Self> {
        Arc::new(Self {
            plan,
            state: watch::Sender::new(State::Starting),
            offer: Mutex::default(),
            stale: Mutex::default(),
            stop: watch::Sender::new(false),
            starts: AtomicU64::new(0),
            calls: AtomicU64::new(0),
            events,
        })
    }

    pub(crate) fn count_call(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn figures(&self) -> Figures {
        Figures {
            name: self.plan.name.clone(),
            is_ready: self.ready().is_some(),
            starts: self.starts.load(Ordering::Relaxed),
            calls: self.calls.load(Ordering::Relaxed),
        }
    }

    /// Asks the server something that every server answers.
    pub(crate) async fn check(&self, patience: Patience) -> Result<(), String> {
        let link = self.link().await.map_err(|reason| reason.to_string())?;
        let method = if link.is_modern() { "server/discover" } else { "ping" };
        // Even a refusal is an answer.
        link.ask(method, b"{}", patience).await.map(drop).map_err(|fault| fault.to_string())
    }

    fn offer_lock(&self) -> MutexGuard<'_, Option<Offer>> {
        self.offer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn has_offer(&self) -> bool {
        self.offer_lock().is_some()
    }

    pub(crate) fn offer(&self) -> Option<Offer> {
        self.offer_lock().clone()
    }

    /// Whether the server runs elsewhere.
    pub(crate) fn is_apart(&self) -> bool {
        matches!(self.plan.transport, Transport::Http(_))
    }

    pub(crate) fn patience(&self) -> Patience {
        Patience { silence: self.plan.timeout, total: self.plan.max_timeout }
    }

    /// The connection, if there is one now.
    pub(crate) fn ready(&self) -> Option<Arc<Link>> {
        if let State::Ready(link) = &*self.state.borrow() { Some(link.clone()) } else { None }
    }

    /// The connection, waiting for a server that is being started; else why there is none.
    pub(crate) async fn link(&self) -> Result<Arc<Link>, Arc<str>> {
        match self.ready() {
            Some(link) => Ok(link),
            None => self.link_after(None).await,
        }
    }

    /// The connection that follows `old`, waiting for it; else why there is none.
    pub(crate) async fn link_after(&self, old: Option<&Arc<Link>>) -> Result<Arc<Link>, Arc<str>> {
        let mut state = self.state.subscribe();
        let wait = RESTART_WAIT.min(self.plan.timeout);
        let is_settled = |state: &State| match state {
            State::Starting => false,
            State::Ready(link) => old.is_none_or(|old| !Arc::ptr_eq(old, link)),
            State::Down(_) => true,
        };
        let settled = tokio::time::timeout(wait, state.wait_for(is_settled)).await;
        match settled.ok().and_then(Result::ok).as_deref() {
            Some(State::Ready(link)) => Ok(link.clone()),
            Some(State::Down(reason)) => Err(reason.clone()),
            _ => Err(format!("server `{}` is still starting", self.plan.name).into()),
        }
    }

    /// The server is about to be started anew: nothing more goes to its present life.
    pub(crate) fn renew(&self) {
        self.state.send_replace(State::Starting);
    }

    pub(crate) fn set(&self, state: State) {
        self.state.send_replace(state);
    }

    /// Waits until the server is ready or known to be down.
    pub(crate) async fn settled(&self) {
        let _ = self.state.subscribe().wait_for(|state| !matches!(state, State::Starting)).await;
    }

    /// Keeps the server running until `stop` turns true. `profile` is what clients present themselves as.
    pub(crate) async fn supervise(
        self: Arc<Self>,
        hub: Weak<Hub>,
        guard: Arc<Guard>,
        mut profile: Profiles,
        mut stop: watch::Receiver<bool>,
    ) {
        let mut deaths = VecDeque::new();
        let mut may_probe = true;
        loop {
            self.starts.fetch_add(1, Ordering::Relaxed);
            let life = match &self.plan.transport {
                Transport::Process(process) => {
                    self.live(process, &hub, &guard, (&mut profile, &mut stop), may_probe).await
                }
                Transport::Http(remote) => self.live_apart(remote, &hub, &mut profile, &mut stop).await,
            };
            let reason = match life {
                Life::Stopped => return,
                Life::Anew => continue,
                // A server that dies of a question it does not know is not asked it again.
                Life::DiedOfProbe => {
                    may_probe = false;
                    continue;
                }
                Life::Over(reason) => reason,
            };
            let now = Instant::now();
            deaths.push_back(now);
            deaths.retain(|death| now.duration_since(*death) < DEATH_WINDOW);
            let was_listed = self.has_offer();
            let is_open = deaths.len() >= MAX_DEATHS;
            let pause = if is_open { OPEN_PAUSE } else { FIRST_PAUSE * (1 << (deaths.len() * 2 - 2).min(6)) };
            // A server that has worked before is worth waiting for; one that never did is not.
            if is_open || !was_listed {
                *self.offer_lock() = None;
                self.state.send_replace(State::Down(reason.as_str().into()));
                offer_changed(&hub);
            }
            let retry = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
            self.events.tell(Event::Down { server: self.plan.name.clone(), reason, retry });
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                _ = stop.wait_for(|stop| *stop) => return,
            }
            // A server that is down stays so for callers until it has proved otherwise.
        }
    }

    /// One life of the process.
    async fn live(
        self: &Arc<Self>,
        process: &Process,
        hub: &Weak<Hub>,
        guard: &Arc<Guard>,
        (profile, stop): (&mut Profiles, &mut watch::Receiver<bool>),
        may_probe: bool,
    ) -> Life {
        let name = &self.plan.name;
        let (mut child, input, output) = match Child::start(name, process, guard, &self.events) {
            Ok(started) => started,
            Err(error) => {
                return Life::Over(format!("server `{name}` cannot be started: `{}`: {error}", process.program));
            }
        };
        let (outlet, drain) = outlet();
        let pump = tokio::spawn(drain.pump(input));
        let client = Client::new(outlet.clone());
        let link = Link::new(self.clone(), client.clone());
        let host = Arc::new(Upstream { hub: hub.clone(), link: link.clone() });
        let mut reading = tokio::spawn({
            let client = client.clone();
            async move { client.run(&host, output).await }
        });
        let probing = AtomicBool::new(false);
        let mut later = profile.clone();
        let mut reached_end = false;
        let end = tokio::select! {
            refused = self.introduce(hub, &link, profile, may_probe, &probing) => End::Refused(refused),
            status = child.wait() => End::Died(status.ok()),
            _ = &mut reading => { reached_end = true; End::Died(None) }
            _ = stop.wait_for(|stop| *stop) => End::Stopped,
            () = replaced(&mut later) => End::Anew,
        };
        let life = match end {
            End::Stopped => {
                outlet.finish();
                child.end().await;
                Life::Stopped
            }
            End::Anew => Life::Anew,
            End::Refused(error) => Life::Over(format!("server `{name}` could not be introduced to: {error}")),
            End::Died(status) => {
                // Answers it wrote before it died still count.
                if !reached_end {
                    let _ = tokio::time::timeout(LAST_WORDS, &mut reading).await;
                }
                let words = obituary(&mut child, status).await;
                if probing.into_inner() { Life::DiedOfProbe } else { Life::Over(format!("server `{name}` {words}")) }
            }
        };
        let reason = if let Life::Over(reason) = &life { reason.as_str() } else { "the server is being ended" };
        // Before its calls fail: whoever calls again must wait for the next life, not get this one.
        self.state.send_replace(State::Starting);
        client.close(reason);
        reading.abort();
        pump.abort();
        life
    }

    /// Introduces the client to the server, fetches its lists and offers them. Comes back only if the server refuses.
    pub(crate) async fn introduce(
        &self,
        hub: &Weak<Hub>,
        link: &Arc<Link>,
        profile: &mut Profiles,
        may_probe: bool,
        probing: &AtomicBool,
    ) -> Unwelcome {
        let Ok(Some(introduced)) = profile.wait_for(Option::is_some).await.map(|profile| profile.clone()) else {
            return std::future::pending().await;
        };
        let opening = opening(self.plan.era, &introduced, may_probe);
        probing.store(opening == Opening::ModernThenLegacy, Ordering::Relaxed);
        match link.client.introduce(&introduced, opening, START_PATIENCE).await {
            Ok(welcome) => link.set_welcome(welcome, introduced),
            Err(error) => return error,
        }
        probing.store(false, Ordering::Relaxed);
        // A list that cannot be had now is offered as it was before.
        let mut offer = self.offer().unwrap_or_default();
        for kind in Kind::ALL {
            if let Ok(listed) = self.fetch(link, kind).await {
                offer.set(kind, listed);
            }
        }
        let tools = offer.get(Kind::Tools).map_or(0, |listed| listed.items.len());
        *self.offer_lock() = Some(offer);
        // First the catalogue, then the word that it can be used.
        offer_changed(hub);
        self.state.send_replace(State::Ready(link.clone()));
        let version = link.client.version().as_str();
        self.events.tell(Event::Ready { server: self.plan.name.clone(), version, tools });
        if let Some(hub) = hub.upgrade() {
            hub.restore(link).await;
        }
        std::future::pending().await
    }

    /// Fetches one list from the server, all pages of it; `None` if it has no such list. Nothing if any page is missing:
    /// half a list would hide the other half.
    async fn fetch(&self, link: &Link, kind: Kind) -> Result<Option<Listed>, Incomplete> {
        if !link.can(kind.capability()) {
            return Ok(None);
        }
        let mut listed = Listed::default();
        let mut cursor: Option<Bytes> = None;
        for page in 0..MAX_PAGES {
            let mut params = b"{".to_vec();
            if let Some(cursor) = &cursor {
                params.extend_from_slice(b"\"cursor\":");
                params.extend_from_slice(cursor);
            }
            params.push(b'}');
            let response = match link.ask(kind.method(), &params, self.patience()).await {
                Ok(response) => response,
                Err(fault) => {
                    self.warn(format!("{} got no answer: {fault}", kind.method()));
                    return Err(Incomplete);
                }
            };
            let Some(result) = response.result() else {
                // Few servers that have resources also have templates.
                if kind == Kind::Templates {
                    return Ok(None);
                }
                let error = String::from_utf8_lossy(response.error().unwrap_or_default()).into_owned();
                self.warn(format!("{} was refused: {error}", kind.method()));
                return Err(Incomplete);
            };
            cursor = None;
            for member in json::Members::of(result).map_while(Result::ok) {
                let value = &result[member.value.clone()];
                let key = String::from_utf8_lossy(member.key).into_owned();
                match key.as_str() {
                    _ if key == kind.key() => {
                        let places = json::elements(value).unwrap_or_default();
                        listed.items.extend(places.into_iter().map(|place| Bytes::copy_from_slice(&value[place])));
                    }
                    "nextCursor" if value.first() == Some(&b'"') => cursor = Some(Bytes::copy_from_slice(value)),
                    "nextCursor" | "resultType" => {}
                    _ if page == 0 => listed.siblings.push((key, Bytes::copy_from_slice(value))),
                    _ => {}
                }
            }
            if cursor.is_none() {
                return Ok(Some(listed));
            }
        }
        self.warn(format!("{} goes on for more than {MAX_PAGES} pages; the rest is left out", kind.method()));
        Ok(Some(listed))
    }

    /// Fetches some lists anew; says which of them changed.
    pub(crate) async fn refresh(&self, link: &Link, kinds: &[Kind]) -> Vec<Kind> {
        let mut changed = Vec::new();
        for kind in kinds {
            let Ok(Some(listed)) = self.fetch(link, *kind).await else { continue };
            let mut offer = self.offer_lock();
            let Some(offer) = offer.as_mut() else { continue };
            if offer.get(*kind) != Some(&listed) {
                offer.set(*kind, Some(listed));
                changed.push(*kind);
            }
        }
        changed
    }

    /// The server says that lists changed: they are fetched anew, by one task, however often it says so.
    pub(crate) fn list_changed(self: &Arc<Self>, link: &Arc<Link>, hub: &Arc<Hub>, kinds: &[Kind]) {
        {
            let mut stale = self.stale.lock().unwrap_or_else(PoisonError::into_inner);
            stale.kinds.extend(kinds);
            if std::mem::replace(&mut stale.is_being_fetched, true) {
                return;
            }
        }
        let (source, link, hub) = (self.clone(), link.clone(), hub.clone());
        tokio::spawn(async move {
            while let Some(kinds) = source.take_stale() {
                source.refresh(&link, &kinds).await;
                hub.rebuild(&kinds);
            }
        });
    }

    /// Lists may have changed without a word: they are fetched anew, and clients told only if they did.
    pub(crate) fn look_again(self: &Arc<Self>, link: &Arc<Link>, hub: &Arc<Hub>) {
        let (source, link, hub) = (self.clone(), link.clone(), hub.clone());
        tokio::spawn(async move {
            if !source.refresh(&link, &Kind::ALL).await.is_empty() {
                hub.rebuild(&[]);
            }
        });
    }

    fn take_stale(&self) -> Option<Vec<Kind>> {
        let mut stale = self.stale.lock().unwrap_or_else(PoisonError::into_inner);
        stale.is_being_fetched = !stale.kinds.is_empty();
        stale.is_being_fetched.then(|| stale.kinds.drain().collect())
    }

    pub(crate) fn warn(&self, text: String) {
        self.events.tell(Event::Warning { server: self.plan.name.clone(), text });
    }
}

/// How a child ended that has closed its output or exited.
async fn obituary(child: &mut Child, status: Option<std::process::ExitStatus>) -> String {
    let status = match status {
        Some(status) => Some(status),
        None => tokio::time::timeout(LAST_WORDS, child.wait()).await.ok().and_then(Result::ok),
    };
    child.obituary(status).await
}

/// Waits until a profile that was there gives way to another.
pub(crate) async fn replaced(profile: &mut Profiles) {
    let Ok(known) = profile.wait_for(Option::is_some).await.map(|profile| profile.clone()) else {
        return std::future::pending().await;
    };
    if profile.wait_for(|profile| *profile != known).await.is_err() {
        std::future::pending::<()>().await;
    }
}

fn offer_changed(hub: &Weak<Hub>) {
    if let Some(hub) = hub.upgrade() {
        hub.rebuild(&[]);
    }
}

/// Lists that have changed since they were asked for, and whether a task is at it.
#[derive(Debug, Default)]
struct Stale {
    kinds: HashSet<Kind>,
    is_being_fetched: bool,
}

/// A list could not be fetched as a whole.
#[derive(Debug)]
struct Incomplete;

/// How a time with a server ended.
pub(crate) enum Life {
    Stopped,
    /// The client presents itself differently now; a server can be introduced to only once.
    Anew,
    DiedOfProbe,
    Over(String),
}

enum End {
    Stopped,
    Anew,
    Refused(Unwelcome),
    Died(Option<std::process::ExitStatus>),
}

/// The era of the client is tried first: then nothing needs to be translated.
fn opening(choice: EraChoice, profile: &Profile, may_probe: bool) -> Opening {
    match choice {
        EraChoice::Legacy => Opening::Legacy,
        EraChoice::Modern => Opening::Modern,
        EraChoice::Auto if profile.version.is_modern() && may_probe => Opening::ModernThenLegacy,
        EraChoice::Auto => Opening::LegacyThenModern,
    }
}
