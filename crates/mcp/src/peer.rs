//! The client at the other end of a server session: what it told about itself, and what can be sent to it.

use crate::error::{Error, Kind};
use crate::id::Decimal;
use crate::json;
use crate::message::{self, Notification, Request, Response};
use crate::outlet::Outlet;
use crate::pending::{Asker, Fault, Patience, Pending};
use crate::version::{Version, meta};
use bytes::Bytes;
use memchr::memmem::Finder;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A person may have to answer, so it is long; whoever asks us has a shorter deadline of its own.
pub const ASK_PATIENCE: Patience = Patience { silence: Duration::from_secs(600), total: Duration::from_secs(3600) };

/// Different changes that are remembered for a subscription that is about to be acknowledged.
const MAX_BACKLOG: usize = 1024;

/// How a client presented itself: once, with `initialize`, or with each request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    pub version: Version,
    /// The capabilities object as it was sent.
    pub capabilities: Bytes,
    /// The `clientInfo` object as it was sent.
    pub info: Option<Bytes>,
    /// All params of `initialize` as they were sent.
    pub initialize: Option<Bytes>,
}

impl Profile {
    /// A client that has said nothing about itself.
    pub fn unknown() -> Self {
        let capabilities = Bytes::from_static(b"{}");
        Self { version: Version::V2025_06_18, capabilities, info: None, initialize: None }
    }

    /// Reads the params of `initialize`.
    pub fn from_initialize(params: &[u8]) -> Result<Self, Error> {
        let [version, capabilities, info] = json::find(params, ["protocolVersion", "capabilities", "clientInfo"])
            .map_err(|flaw| Error::invalid_params(flaw.to_string()))?;
        let version = version
            .and_then(|place| json::string(&params[place]))
            .ok_or_else(|| Error::invalid_params("`protocolVersion` must be a string"))?;
        let object = |place: Option<std::ops::Range<usize>>| {
            place.filter(|place| params[place.start] == b'{').map(|place| Bytes::copy_from_slice(&params[place]))
        };
        Ok(Self {
            version: Version::negotiate(&version),
            capabilities: object(capabilities).unwrap_or_else(|| Bytes::from_static(b"{}")),
            info: object(info),
            initialize: Some(Bytes::copy_from_slice(params)),
        })
    }

    /// Reads what a stateless request says in its `_meta`; `None` if it does not claim to be one.
    pub fn from_meta(params: &[u8]) -> Option<Result<Self, Error>> {
        let meta_object = json::get(params, "_meta").filter(|value| value.first() == Some(&b'{'))?;
        let keys = [meta::PROTOCOL_VERSION, meta::CLIENT_CAPABILITIES, meta::CLIENT_INFO];
        let [version, capabilities, info] = json::find(meta_object, keys).ok()?;
        let Some(requested) = json::string(&meta_object[version?]) else {
            return Some(Err(Error::invalid_params(format!("`{}` must be a string", meta::PROTOCOL_VERSION))));
        };
        if Version::parse(&requested).is_none_or(|version| !version.is_modern()) {
            let modern: Vec<_> =
                Version::ALL.iter().filter(|version| version.is_modern()).map(|v| v.as_str()).collect();
            return Some(Err(Error::new(
                Kind::UnsupportedVersion,
                format!("Unsupported protocol version: {requested}"),
            )
            .with("supported", modern)
            .with("requested", requested.as_ref())));
        }
        let Some(capabilities) = capabilities.filter(|place| meta_object[place.start] == b'{') else {
            return Some(Err(Error::invalid_params(format!("`_meta` must have `{}`", meta::CLIENT_CAPABILITIES))));
        };
        Some(Ok(Self {
            version: Version::LATEST,
            capabilities: Bytes::copy_from_slice(&meta_object[capabilities]),
            info: info.map(|place| Bytes::copy_from_slice(&meta_object[place])),
            initialize: None,
        }))
    }

    /// Whether the client declared a capability.
    pub fn can(&self, capability: &str) -> bool {
        json::get(&self.capabilities, capability).is_some_and(|value| value != b"null" && value != b"false")
    }
}

/// Something on the server's side that clients may have asked to hear of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    Tools,
    Prompts,
    Resources,
    /// The content of one resource.
    Updated {
        uri: String,
    },
}

impl Change {
    fn method(&self) -> &'static str {
        match self {
            Change::Tools => "notifications/tools/list_changed",
            Change::Prompts => "notifications/prompts/list_changed",
            Change::Resources => "notifications/resources/list_changed",
            Change::Updated { .. } => "notifications/resources/updated",
        }
    }

    fn params(&self) -> Vec<u8> {
        match self {
            Change::Updated { uri } => {
                let mut params = b"{\"uri\":".to_vec();
                json::write_string(&mut params, uri);
                params.push(b'}');
                params
            }
            _ => Vec::new(),
        }
    }
}

/// What a `subscriptions/listen` request asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    pub tools: bool,
    pub prompts: bool,
    pub resources: bool,
    pub uris: Vec<String>,
}

impl Filter {
    fn wants(&self, change: &Change) -> bool {
        match change {
            Change::Tools => self.tools,
            Change::Prompts => self.prompts,
            Change::Resources => self.resources,
            // A notification may name a part of what was subscribed to.
            Change::Updated { uri } => self.uris.iter().any(|wanted| uri.starts_with(wanted.as_str())),
        }
    }
}

/// The client of one session.
#[derive(Debug)]
pub struct Peer {
    /// Distinguishes clients within this process.
    pub serial: u64,
    outlet: Outlet,
    pub(crate) pending: Pending,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Set by `initialize`.
    session: Option<Arc<Profile>>,
    /// The latest stateless request's.
    latest: Option<Arc<Profile>>,
    /// `initialize` has been answered, and `notifications/initialized` has come: from here on the client may be sent
    /// notifications.
    welcomed: bool,
    initialized: bool,
    listens: Vec<Listen>,
    /// Lists whose change is still to be told, each at most once, and whether someone is at it.
    late: Vec<Change>,
    is_telling: bool,
}

#[derive(Debug)]
struct Listen {
    /// The id of the request, as written.
    id: Bytes,
    filter: Filter,
    outlet: Outlet,
    /// What happened before the acknowledgement, which must come first; `None` after it.
    backlog: Option<Vec<(&'static str, Vec<u8>)>>,
}

impl Peer {
    pub(crate) fn new(outlet: Outlet) -> Self {
        static SERIAL: AtomicU64 = AtomicU64::new(1);
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        Self { serial, pending: Pending::default(), outlet, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the client has told about itself so far.
    pub fn profile(&self) -> Option<Arc<Profile>> {
        let state = self.state();
        state.session.clone().or_else(|| state.latest.clone())
    }

    /// The session's profile, if it began with `initialize`.
    pub(crate) fn session(&self) -> Option<Arc<Profile>> {
        self.state().session.clone()
    }

    pub(crate) fn set_session(&self, profile: Arc<Profile>) {
        self.state().session = Some(profile);
    }

    pub(crate) fn set_latest(&self, profile: Arc<Profile>) {
        self.state().latest = Some(profile);
    }

    pub(crate) fn set_welcomed(&self) {
        self.state().welcomed = true;
    }

    pub(crate) fn set_initialized(&self) {
        self.state().initialized = true;
    }

    /// The version in which something that belongs to no request is said.
    pub fn version(&self) -> Version {
        self.profile().map_or(Version::V2025_06_18, |profile| profile.version)
    }

    /// Tells the client of a change, in the way it asked for. `original` is an upstream's notification to pass on.
    pub async fn changed(&self, change: &Change, original: Option<&Notification>) {
        let params = original.map_or_else(|| change.params(), |note| note.params().to_vec());
        let mut streams = Vec::new();
        let plain = {
            let mut state = self.state();
            for listen in state.listens.iter_mut().filter(|listen| listen.filter.wants(change)) {
                let object: &[u8] = if params.is_empty() { b"{}" } else { &params };
                let stamped = json::with_meta(object, &subscription_member(&listen.id));
                match &mut listen.backlog {
                    // Each says "look again", so one of a kind is enough; and a server cannot fill our memory with them.
                    Some(backlog) => {
                        let entry = (change.method(), stamped);
                        if backlog.len() < MAX_BACKLOG && !backlog.contains(&entry) {
                            backlog.push(entry);
                        }
                    }
                    None => streams.push((listen.outlet.clone(), stamped)),
                }
            }
            state.welcomed && state.initialized
        };
        // A client that is gone is noticed by its session.
        if plain {
            let write = |out: &mut Vec<u8>| match original {
                Some(note) => out.extend_from_slice(note.as_json()),
                None => message::write_notification(out, change.method(), &params),
            };
            self.outlet.tell(write).await;
        }
        for (outlet, stamped) in streams {
            outlet.tell(|out| message::write_notification(out, change.method(), &stamped)).await;
        }
    }

    /// Passes on an upstream's notification, over the stream of the call that it belongs to, if any.
    pub async fn forward(&self, note: &Notification, outlet: Option<&Outlet>) {
        let outlet = outlet.unwrap_or(&self.outlet);
        outlet.tell(|out| out.extend_from_slice(note.as_json())).await;
    }

    /// Passes an upstream's request on to the client, over the stream of the call that it belongs to, if any. Its progress
    /// goes back to `asker`.
    pub async fn forward_request(
        &self,
        request: &Request,
        asker: Asker,
        outlet: Option<&Outlet>,
    ) -> Result<Response, Fault> {
        let token = progress_token(request.params());
        let write = |out: &mut Vec<u8>, id: &Decimal| match token {
            Some(place) => request.write(out, id.as_json(), &[(place, id.as_json())]),
            None => request.write(out, id.as_json(), &[]),
        };
        self.pending.request(outlet.unwrap_or(&self.outlet), ASK_PATIENCE, asker, write).await
    }

    /// Tells the client that a list changed, without waiting for it. A client that does not read is told once it does.
    pub fn list_changed(self: &Arc<Self>, change: &Change) {
        let mut state = self.state();
        let is_heard = (state.welcomed && state.initialized) || !state.listens.is_empty();
        if !is_heard {
            return;
        }
        if !state.late.contains(change) {
            state.late.push(change.clone());
        }
        if std::mem::replace(&mut state.is_telling, true) {
            return;
        }
        drop(state);
        let peer = self.clone();
        tokio::spawn(async move {
            while let Some(change) = peer.next_late() {
                peer.changed(&change, None).await;
            }
        });
    }

    fn next_late(&self) -> Option<Change> {
        let mut state = self.state();
        let next = (!state.late.is_empty()).then(|| state.late.remove(0));
        state.is_telling = next.is_some();
        next
    }

    pub(crate) fn listen(&self, id: Bytes, filter: Filter, outlet: Outlet) {
        self.state().listens.push(Listen { id, filter, outlet, backlog: Some(Vec::new()) });
    }

    /// Acknowledges a subscription and tells what has happened since it was made.
    pub(crate) fn acknowledge(&self, id: &Bytes, params: &[u8]) {
        const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
        let mut state = self.state();
        let Some(listen) = state.listens.iter_mut().find(|listen| listen.id == *id) else { return };
        let backlog = listen.backlog.take().unwrap_or_default();
        // Without waiting, because the lock is what keeps the order.
        listen.outlet.send_now(|out| message::write_notification(out, ACKNOWLEDGED, params));
        for (method, params) in backlog {
            listen.outlet.send_now(|out| message::write_notification(out, method, &params));
        }
    }

    pub(crate) fn unlisten(&self, id: &Bytes) {
        self.state().listens.retain(|listen| listen.id != *id);
    }
}

/// The place of `_meta.progressToken` in params.
pub fn progress_token(params: &[u8]) -> Option<std::ops::Range<usize>> {
    // Few requests have one, and a plain search is much faster than a walk. An escape may hide a spelling of the key.
    static KEY: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("progressToken"));
    if KEY.find(params).is_none() && memchr::memchr(b'\\', params).is_none() {
        return None;
    }
    let [meta] = json::find(params, ["_meta"]).ok()?;
    let meta = meta?;
    let [token] = json::find(&params[meta.clone()], ["progressToken"]).ok()?;
    token.map(|token| token.start + meta.start..token.end + meta.start)
}

/// `"io.modelcontextprotocol/subscriptionId":ID`, to be put into a `_meta`.
pub(crate) fn subscription_member(id: &[u8]) -> Vec<u8> {
    let mut member = Vec::new();
    json::write_string(&mut member, meta::SUBSCRIPTION_ID);
    member.push(b':');
    member.extend_from_slice(id);
    member
}
