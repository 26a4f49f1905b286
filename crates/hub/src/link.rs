//! A live connection to one server, and whose calls are running on it.

use crate::bridge::Ask;
use crate::source::Source;
use rialto_mcp::call::Call;
use rialto_mcp::client::{Client, Welcome, meta_members};
use rialto_mcp::id::{Decimal, Id};
use rialto_mcp::json;
use rialto_mcp::message::{Notification, Response};
use rialto_mcp::outlet::Outlet;
use rialto_mcp::peer::{Peer, Profile};
use rialto_mcp::pending::{Fault, Patience};
use rialto_mcp::version::meta;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// For requests that are meant to stay open: longer than any process lives.
const FOREVER: Patience =
    Patience { silence: Duration::from_secs(10 * 365 * 86400), total: Duration::from_secs(10 * 365 * 86400) };

/// How long a server may take to acknowledge a subscription before we go on without its word.
const LISTEN_WAIT: Duration = Duration::from_secs(2);

/// The pause before a stream of changes is opened again; it doubles each time it breaks soon.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
const LONG_STREAM: Duration = Duration::from_secs(30);

/// One connection, from the start of the process to its end.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) source: Arc<Source>,
    pub(crate) client: Arc<Client>,
    welcome: OnceLock<(Welcome, Arc<Profile>)>,
    active: Mutex<BTreeMap<u64, Active>>,
    /// The open `subscriptions/listen` request. Held while it is being replaced by another.
    listening: tokio::sync::Mutex<Option<AbortHandle>>,
    /// The id of the one that was acknowledged last.
    acknowledged: watch::Sender<u64>,
    /// Lines on its standard output that were no messages.
    strays: AtomicU64,
    /// The stream of changes broke off: some may have been missed.
    missed: AtomicBool,
}

/// A call that is running on a link.
#[derive(Debug, Clone)]
pub(crate) struct Active {
    pub(crate) peer: Arc<Peer>,
    pub(crate) profile: Arc<Profile>,
    /// The stream that belongs to the call.
    pub(crate) outlet: Option<Outlet>,
    /// Where the server's questions go if the client cannot be asked directly.
    pub(crate) asks: Option<mpsc::Sender<Ask>>,
}

/// Ends a call's time on its link.
pub(crate) struct Entered<'a> {
    link: &'a Link,
    key: u64,
}

impl Link {
    pub(crate) fn new(source: Arc<Source>, client: Arc<Client>) -> Arc<Self> {
        let (active, listening, acknowledged) = (Mutex::default(), Default::default(), watch::Sender::new(0));
        Arc::new(Self {
            source,
            client,
            welcome: OnceLock::new(),
            active,
            listening,
            acknowledged,
            strays: AtomicU64::new(0),
            missed: AtomicBool::new(false),
        })
    }

    pub(crate) fn set_welcome(&self, welcome: Welcome, profile: Arc<Profile>) {
        let _ = self.welcome.set((welcome, profile));
    }

    pub(crate) fn welcome(&self) -> Option<&Welcome> {
        self.welcome.get().map(|(welcome, _)| welcome)
    }

    pub(crate) fn can(&self, capability: &str) -> bool {
        self.welcome().is_some_and(|welcome| welcome.can(capability))
    }

    /// Whether the server said `true` to a flag of one of its capabilities, such as `listChanged`.
    pub(crate) fn flag(&self, capability: &str, flag: &str) -> bool {
        let value = self.welcome().and_then(|welcome| json::get(&welcome.capabilities, capability));
        value.and_then(|value| json::get(value, flag)) == Some(b"true")
    }

    pub(crate) fn is_modern(&self) -> bool {
        self.client.version().is_modern()
    }

    fn active(&self) -> MutexGuard<'_, BTreeMap<u64, Active>> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers that a call runs here, until the returned guard is dropped.
    pub(crate) fn enter(&self, call: &Call, asks: Option<mpsc::Sender<Ask>>) -> Entered<'_> {
        self.source.count_call();
        let mut active = self.active();
        let key = active.last_key_value().map_or(0, |(key, _)| key + 1);
        let (peer, profile, outlet) = (call.peer.clone(), call.profile.clone(), Some(call.outlet().clone()));
        active.insert(key, Active { peer, profile, outlet, asks });
        Entered { link: self, key }
    }

    /// Whether any call is running here.
    pub(crate) fn is_busy(&self) -> bool {
        !self.active().is_empty()
    }

    /// The call on whose account a question of the server is: the oldest of the only client that has any. Clients must
    /// never be asked for each other, so with calls of several there is no answer.
    pub(crate) fn attributed(&self) -> Attribution {
        let active = self.active();
        let Some((_, first)) = active.first_key_value() else { return Attribution::Idle };
        if active.values().all(|other| other.peer.serial == first.peer.serial) {
            Attribution::Call(first.clone())
        } else {
            Attribution::Ambiguous
        }
    }

    /// Sends a request on the hub's own account.
    pub(crate) async fn ask(&self, method: &str, params: &[u8], patience: Patience) -> Result<Response, Fault> {
        match self.welcome.get() {
            Some((_, profile)) if self.is_modern() => {
                let params = json::with_meta(params, &meta_members(profile));
                self.client.request(method, &params, patience).await
            }
            _ => self.client.request(method, params, patience).await,
        }
    }

    /// Hears of changes of a stateless server: of its lists, and of these resources. Replaces what was heard before,
    /// without a gap: the old request is cancelled once the new one is acknowledged.
    pub(crate) async fn listen(self: &Arc<Self>, uris: &[String]) {
        let mut wanted = serde_json::Map::new();
        for (capability, key) in
            [("tools", "toolsListChanged"), ("prompts", "promptsListChanged"), ("resources", "resourcesListChanged")]
        {
            if self.flag(capability, "listChanged") {
                wanted.insert(key.into(), true.into());
            }
        }
        if !uris.is_empty() && self.flag("resources", "subscribe") {
            wanted.insert("resourceSubscriptions".into(), uris.into());
        }
        let mut listening = self.listening.lock().await;
        let before = listening.take();
        if let (false, Some((_, profile))) = (wanted.is_empty(), self.welcome.get()) {
            let params = serde_json::json!({ "notifications": wanted }).to_string();
            let params = json::with_meta(params.as_bytes(), &meta_members(profile));
            let (send, sent) = oneshot::channel();
            let link = self.clone();
            let task = tokio::spawn(async move { link.keep_listening(&params, send).await });
            let abort = task.abort_handle();
            let mut acknowledged = self.acknowledged.subscribe();
            let established = async {
                if let Ok(id) = sent.await {
                    let _ = acknowledged.wait_for(|acknowledged| *acknowledged == id).await;
                }
            };
            let is_refused = tokio::select! {
                _ = tokio::time::timeout(LISTEN_WAIT, established) => false,
                _ = task => true,
            };
            if is_refused {
                // Better the old ear than none.
                *listening = before;
                return;
            }
            *listening = Some(abort);
        }
        if let Some(before) = before {
            before.abort();
        }
    }

    /// Listens until the connection ends or the server refuses. The notifications come by themselves. A stream over HTTP
    /// may break any time; it is opened again, and what was missed in between is asked for.
    async fn keep_listening(&self, params: &[u8], begun: oneshot::Sender<u64>) {
        let mut begun = Some(begun);
        let mut pause = FIRST_PAUSE;
        loop {
            let mut own = 0;
            let opened = Instant::now();
            let note = |id: &Decimal| {
                own = id.number;
                if let Some(begun) = begun.take() {
                    let _ = begun.send(own);
                }
            };
            let ended = self.client.request_noting("subscriptions/listen", params, FOREVER, note).await;
            let is_broken = match ended {
                Ok(response) => response.result().is_some(),
                Err(fault) => matches!(fault, Fault::Lost(_) | Fault::Unreachable(_) | Fault::Status { .. }),
            };
            let was_heard = *self.acknowledged.borrow() >= own || self.missed.load(Ordering::Relaxed);
            if !self.source.is_apart() || !is_broken || !was_heard {
                return;
            }
            self.missed.store(true, Ordering::Relaxed);
            if opened.elapsed() >= LONG_STREAM {
                pause = FIRST_PAUSE;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Whether something may have changed unheard since the last time this was asked.
    pub(crate) fn take_missed(&self) -> bool {
        self.missed.swap(false, Ordering::Relaxed)
    }

    /// Counts a line that is no message.
    pub(crate) fn count_stray(&self) -> u64 {
        self.strays.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// A subscription of ours was acknowledged.
    pub(crate) fn acknowledge(&self, note: &Notification) {
        if let Some(id) = subscription(note) {
            self.acknowledged.send_replace(id);
        }
    }

    /// Whether a notification belongs to a subscription that has been replaced: its successor tells the same.
    pub(crate) fn is_outdated(&self, note: &Notification) -> bool {
        subscription(note).is_some_and(|id| id < *self.acknowledged.borrow())
    }
}

/// The subscription that a stateless server's notification belongs to.
fn subscription(note: &Notification) -> Option<u64> {
    let id = json::get(json::get(note.params(), "_meta")?, meta::SUBSCRIPTION_ID)?;
    Id::read(bytes::Bytes::copy_from_slice(id))?.as_number()
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.link.active().remove(&self.key);
    }
}

/// Whom a server's question concerns.
#[derive(Debug)]
pub(crate) enum Attribution {
    Call(Active),
    /// No call is running.
    Idle,
    /// Calls of several clients are running.
    Ambiguous,
}
