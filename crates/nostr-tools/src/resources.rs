//! MCP resources: profiles and events by their `nostr:` URIs (NIP-21), and news of them.
//!
//! One pool listens for everything that anybody has subscribed to; what arrives is matched with the subscriptions here.

use crate::argument;
use crate::failure::Failure;
use crate::network::{List, PATIENCE, Progress, Route, add};
use crate::profile;
use crate::result::{EventItem, npub, quoted};
use crate::session::Session;
use nostr::filter::MatchEventOptions;
use nostr::nips::nip19::{FromBech32, Nip19};
use nostr::prelude::{Event, Filter, Kind, PublicKey, RelayUrl};
use rialto_mcp::call::Call;
use rialto_mcp::error::{Error, Kind as Wrong};
use rialto_mcp::json;
use rialto_mcp::peer::{Change, Peer};
use rialto_mcp::reply::Answer;
use rialto_relay::pool::{Arrival, Pool, Watch};
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;

/// Resources that one client may subscribe to, and all of them together.
const MAX_EACH: usize = 64;
const MAX_ALL: usize = 256;

/// Relays that are listened to.
const MAX_RELAYS: usize = 32;

/// Clocks differ by so much.
const SPREAD: Duration = Duration::from_secs(60);

const MEDIA_TYPE: &str = "application/json";

/// What a URI stands for.
#[derive(Debug, Clone)]
struct Reference {
    uri: String,
    filter: Filter,
    /// Who wrote it, if the URI says so.
    author: Option<PublicKey>,
    hints: Vec<RelayUrl>,
}

impl Reference {
    fn parse(uri: &str) -> Option<Self> {
        let bare = uri.get(..6).filter(|scheme| scheme.eq_ignore_ascii_case("nostr:")).map(|_| &uri[6..])?;
        let profile = |author: PublicKey| {
            author.xonly().is_ok().then(|| (Filter::new().author(author).kind(Kind::Metadata), Some(author)))
        };
        let (filter, author) = match Nip19::from_bech32(bare).ok()? {
            Nip19::Pubkey(key) => profile(key)?,
            Nip19::Profile(found) => profile(found.public_key)?,
            Nip19::EventId(id) => (Filter::new().id(id), None),
            Nip19::Event(event) => (Filter::new().id(event.event_id), event.author),
            Nip19::Coordinate(address) => {
                let coordinate = &address.coordinate;
                let filter = Filter::new().author(coordinate.public_key).kind(coordinate.kind);
                let is_addressable = coordinate.kind.is_addressable();
                let filter = if is_addressable { filter.identifier(&coordinate.identifier) } else { filter };
                (filter, Some(coordinate.public_key))
            }
            _ => return None,
        };
        Some(Self { uri: uri.to_owned(), filter, author, hints: argument::hints(bare) })
    }

    /// What would be news. An event never changes; but it can be taken back.
    fn news(&self) -> Filter {
        match &self.filter.ids {
            Some(ids) => Filter::new().kind(Kind::EventDeletion).events(ids.iter().copied()),
            None => self.filter.clone(),
        }
    }
}

/// The resources that clients have subscribed to.
#[derive(Debug, Default)]
pub(crate) struct Resources {
    listener: Mutex<Option<Pool>>,
    subscriptions: Arc<Mutex<Vec<Subscription>>>,
}

#[derive(Debug)]
struct Subscription {
    reference: Reference,
    /// Events that were made before are no news, unless they come now.
    since: u64,
    /// Clients by their serial numbers, and how often each of them has asked.
    peers: HashMap<u64, (Arc<Peer>, usize)>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Resources {
    /// Answers a request about resources; `None` if it is about something else.
    pub(crate) async fn answer(&self, call: &Call, session: &Session) -> Option<Answer> {
        let outcome = match call.method() {
            "resources/list" => list(call, session),
            "resources/templates/list" => templates(call),
            "resources/read" => match reference(call) {
                Ok(reference) => read(&reference, session).await,
                Err(error) => Err(error),
            },
            "resources/subscribe" => match reference(call) {
                Ok(reference) => self.subscribe(&call.peer, reference, session).await.map(|()| json!({})),
                Err(error) => Err(error),
            },
            "resources/unsubscribe" => reference(call).map(|reference| {
                self.unsubscribe(&call.peer, &reference.uri);
                json!({})
            }),
            _ => return None,
        };
        Some(match outcome {
            Ok(result) => Answer::Result(result.to_string().into_bytes()),
            Err(error) => Answer::Error(error),
        })
    }

    /// A stateless client begins or ends to listen.
    pub(crate) async fn watch(&self, peer: &Arc<Peer>, uris: &[String], on: bool, session: &Session) {
        for uri in uris {
            match Reference::parse(uri) {
                // It has been told which it may have; one that cannot be had simply never changes.
                Some(reference) if on => drop(self.subscribe(peer, reference, session).await),
                Some(reference) => self.unsubscribe(peer, &reference.uri),
                None => {}
            }
        }
    }

    async fn subscribe(&self, peer: &Arc<Peer>, reference: Reference, session: &Session) -> Result<(), Error> {
        let relays = relays(&reference, session).await.map_err(|failure| wrong(&failure, &reference.uri))?;
        {
            let mut all = lock(&self.subscriptions);
            let known = all.iter().position(|one| one.reference.uri == reference.uri);
            let is_new = known.is_none_or(|place| !all[place].peers.contains_key(&peer.serial));
            let own = all.iter().filter(|one| one.peers.contains_key(&peer.serial)).count();
            if is_new && (own >= MAX_EACH || (known.is_none() && all.len() >= MAX_ALL)) {
                return Err(Error::new(Wrong::Busy, "too many resources are subscribed to"));
            }
            match known {
                Some(place) => {
                    let entry = all[place].peers.entry(peer.serial).or_insert_with(|| (peer.clone(), 0));
                    entry.1 += 1;
                }
                None => all.push(Subscription {
                    reference,
                    since: session.clock.now().as_secs(),
                    peers: HashMap::from([(peer.serial, (peer.clone(), 1))]),
                }),
            }
        }
        self.listen(&relays, session);
        Ok(())
    }

    fn unsubscribe(&self, peer: &Arc<Peer>, uri: &str) {
        self.leave(|subscription| {
            if subscription.reference.uri != uri {
                return;
            }
            if let Some((_, count)) = subscription.peers.get_mut(&peer.serial) {
                *count -= 1;
                if *count == 0 {
                    subscription.peers.remove(&peer.serial);
                }
            }
        });
    }

    /// A client is gone.
    pub(crate) fn closed(&self, peer: &Arc<Peer>) {
        self.leave(|subscription| drop(subscription.peers.remove(&peer.serial)));
    }

    fn leave(&self, change: impl FnMut(&mut Subscription)) {
        let mut all = lock(&self.subscriptions);
        all.iter_mut().for_each(change);
        all.retain(|subscription| !subscription.peers.is_empty());
        let watches = watches(&all);
        drop(all);
        let mut listener = lock(&self.listener);
        match &*listener {
            Some(pool) if !watches.is_empty() => pool.watch(watches),
            // Nobody listens any more, so the connections end.
            _ => *listener = None,
        }
    }

    fn listen(&self, relays: &[RelayUrl], session: &Session) {
        let watches = watches(&lock(&self.subscriptions));
        let mut listener = lock(&self.listener);
        if let Some(pool) = &*listener {
            let room = MAX_RELAYS.saturating_sub(pool.urls().len());
            relays.iter().filter(|relay| !pool.urls().contains(relay)).take(room).for_each(|relay| pool.add(relay));
            pool.watch(watches);
            return;
        }
        let relays = &relays[..relays.len().min(MAX_RELAYS)];
        let (pool, arrivals) = session.network.pool_apart(None, relays, watches);
        tokio::spawn(tell(arrivals, self.subscriptions.clone()));
        *listener = Some(pool);
    }
}

fn watches(all: &[Subscription]) -> Vec<Watch> {
    all.iter().map(|one| Watch { filter: one.reference.news(), spread: SPREAD }).collect()
}

/// Tells clients what arrives, until the pool ends.
async fn tell(mut arrivals: mpsc::Receiver<Arrival>, subscriptions: Arc<Mutex<Vec<Subscription>>>) {
    while let Some(arrival) = arrivals.recv().await {
        let Arrival::Event { event, stored, .. } = arrival else { continue };
        let told: Vec<(String, Arc<Peer>)> = lock(&subscriptions)
            .iter()
            .filter(|one| is_news(one, &event, stored))
            .flat_map(|one| one.peers.values().map(|(peer, _)| (one.reference.uri.clone(), peer.clone())))
            .collect();
        for (uri, peer) in told {
            peer.changed(&Change::Updated { uri }, None).await;
        }
    }
}

fn is_news(subscription: &Subscription, event: &Event, stored: bool) -> bool {
    let fits = subscription.reference.news().match_event(event, MatchEventOptions::new());
    let is_recent = !stored || event.created_at.as_secs() > subscription.since;
    // Only its author can take an event back.
    let is_authorised = subscription.reference.author.is_none_or(|author| author == event.pubkey);
    fits && is_recent && is_authorised
}

/// Where to look and listen: our relays, those that were named, and where the author writes.
async fn relays(reference: &Reference, session: &Session) -> Result<Vec<RelayUrl>, Failure> {
    let network = &session.network;
    let mut relays = network.read_relays()?;
    let lists = network.lists_of(&reference.author.into_iter().collect::<BTreeSet<_>>(), &Progress::NONE).await;
    let writes = |list: &List| list.write.clone();
    let more: Vec<RelayUrl> = lists.values().flat_map(writes).chain(reference.hints.iter().cloned()).collect();
    add(&mut relays, more.iter().filter(|relay| session.guard.allows_relay(relay)), MAX_RELAYS);
    Ok(relays)
}

fn reference(call: &Call) -> Result<Reference, Error> {
    let uri = json::get_string(call.params(), "uri");
    let uri = uri.ok_or_else(|| Error::invalid_params("`uri` must be given once, as a string"))?;
    // What is no resource may be a secret; it is not repeated.
    let words = "not a resource: nostr:npub1…, nprofile1…, note1…, nevent1… or naddr1…";
    Reference::parse(&uri).ok_or_else(|| Error::new(Wrong::ResourceNotFound, words))
}

fn wrong(failure: &Failure, uri: &str) -> Error {
    let kind = match failure.reason {
        "not_found" => Wrong::ResourceNotFound,
        "not_allowed" => Wrong::AccessDenied,
        "timeout" => Wrong::Timeout,
        _ => Wrong::Unavailable,
    };
    Error::new(kind, failure.message.clone()).with("uri", uri)
}

/// There is no second page.
fn no_cursor(call: &Call) -> Result<(), Error> {
    match json::get(call.params(), "cursor") {
        None | Some(b"null") => Ok(()),
        Some(_) => Err(Error::invalid_params("Invalid cursor")),
    }
}

fn list(call: &Call, session: &Session) -> Result<Value, Error> {
    no_cursor(call)?;
    let (identities, _) = session.keyring.list().map_err(|failure| wrong(&failure, ""))?;
    let entry = |identity: &crate::keyring::Identity| {
        let key = npub(&identity.public_key);
        let title = format!("Profile of {}", quoted(&identity.label));
        json!({ "uri": format!("nostr:{key}"), "name": key, "title": title, "mimeType": MEDIA_TYPE })
    };
    Ok(json!({ "resources": identities.iter().map(entry).collect::<Vec<_>>() }))
}

fn templates(call: &Call) -> Result<Value, Error> {
    no_cursor(call)?;
    let template = |uri: &str, name: &str, title: &str, words: &str| json!({ "uriTemplate": uri, "name": name, "title": title, "description": words, "mimeType": MEDIA_TYPE });
    Ok(json!({ "resourceTemplates": [
        template("nostr:{profile}", "profile", "Profile", "A profile by npub1… or nprofile1…, from relays"),
        template("nostr:{event}", "event", "Event", "An event by note1…, nevent1… or naddr1…, from relays"),
    ]}))
}

async fn read(reference: &Reference, session: &Session) -> Result<Value, Error> {
    let network = &session.network;
    let mut more = reference.hints.clone();
    let mut filters = vec![reference.filter.clone().limit(1)];
    let is_profile = reference.filter.kinds.as_ref().is_some_and(|kinds| kinds.contains(&Kind::Metadata));
    if is_profile {
        more.extend(network.indexers());
    }
    if let (Some(ids), Some(author)) = (&reference.filter.ids, reference.author) {
        // Named twice, it is looked for where its author writes as well.
        filters.push(Filter::new().ids(ids.iter().copied()).author(author).limit(1));
    }
    let found = network.fetch_along(&filters, Route::Also(&more), PATIENCE, &Progress::NONE).await;
    let found = found.map_err(|failure| wrong(&failure, &reference.uri))?;
    let Some(event) = found.first() else {
        let words = "no relay that was asked has it";
        return Err(Error::new(Wrong::ResourceNotFound, words).with("uri", reference.uri.as_str()));
    };
    let item = serde_json::to_value(EventItem::from(event)).unwrap_or_default();
    let document = match is_profile {
        true => json!({
            "pubkey": event.pubkey.to_hex(),
            "npub": npub(&event.pubkey),
            "metadata": profile::content(event),
            "event": item,
        }),
        false => item,
    };
    let content = json!({ "uri": reference.uri, "mimeType": MEDIA_TYPE, "text": document.to_string() });
    Ok(json!({ "contents": [content] }))
}
