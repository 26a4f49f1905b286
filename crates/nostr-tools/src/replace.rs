//! Replacing an event without losing what others wrote: profiles, follow lists, relay lists, any list.
//!
//! Relays know no "replace only if unchanged". So we listen to every version from before the first reading until after the
//! publishing: a version of another client that comes in between is seen even though ours replaces it, and is merged into
//! the next try. An edit is therefore never a whole list but a change, which can be made to any version.

use crate::failure::Failure;
use crate::network::{Progress, Sent, is_at, newest_of, send_through};
use crate::publish::{Wishes, worked};
use crate::signer::Signer;
use crate::store::is_newer;
use crate::tool::Turn;
use nostr::prelude::{Event, EventId, Filter, Kind, PublicKey, RelayUrl, Tag, Timestamp, UnsignedEvent};
use rialto_relay::pool::{Arrival, Pool, Watch};
use rialto_relay::status::{State, Status};
use std::collections::HashSet;
use std::pin::Pin;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// How long relays have to show what they have.
const READ: Duration = Duration::from_secs(10);

/// Once one relay has answered, how long the others are waited for before anything is published.
const OTHERS: Duration = Duration::from_secs(4);

/// How long relays have to show what they have afterwards.
const CHECK: Duration = Duration::from_secs(3);

/// Whoever edits the same list so often in the same moment does it for ever.
const ROUNDS: usize = 8;

/// Longer than Nostr exists: the subscription brings all versions.
const ALWAYS: Duration = Duration::from_secs(100 * 365 * 86_400);

/// What is to be replaced.
#[derive(Debug, Clone, Default)]
pub(crate) struct Target {
    pub(crate) kind: u16,
    /// The `d` tag, for addressable events.
    pub(crate) identifier: String,
    /// Publish even if nobody knows what is replaced.
    pub(crate) force: bool,
    pub(crate) wishes: Wishes,
}

impl Target {
    pub(crate) fn kind(kind: Kind, force: Option<bool>) -> Self {
        Self { kind: kind.as_u16(), force: force.unwrap_or(false), ..Self::default() }
    }
}

/// What takes its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Draft {
    pub(crate) tags: Vec<Tag>,
    pub(crate) content: String,
}

impl Draft {
    /// The same as it was; nothing if there was nothing.
    pub(crate) fn of(base: Option<&Event>) -> Self {
        let tags = base.map(|event| event.tags.iter().cloned().collect()).unwrap_or_default();
        Self { tags, content: base.map(|event| event.content.clone()).unwrap_or_default() }
    }
}

/// A change that is being made to a version.
pub(crate) type Making<'a> = Pin<Box<dyn Future<Output = Result<Draft, Failure>> + Send + 'a>>;

/// A change that can be made to any version. A version that has it already comes back as it is.
pub(crate) trait Edit: Send {
    fn make<'a>(&'a mut self, base: Option<&'a Event>) -> Making<'a>;
}

/// Most changes need nobody's help.
impl<F: FnMut(Option<&Event>) -> Result<Draft, Failure> + Send> Edit for F {
    fn make<'a>(&'a mut self, base: Option<&'a Event>) -> Making<'a> {
        Box::pin(std::future::ready(self(base)))
    }
}

/// How it went.
#[derive(Debug)]
pub(crate) struct Replaced {
    /// The version that holds now.
    pub(crate) event: Event,
    pub(crate) sent: Sent,
}

impl Turn<'_> {
    /// Changes a replaceable event of the active key. `edit` makes the change to a version; it may be asked several times,
    /// with other versions, and a version that has the change already must come back as it is.
    pub(crate) async fn replace(&self, target: Target, edit: impl Edit) -> Result<Replaced, Failure> {
        let network = &self.session.network;
        let signer = self.session.keyring.signer().await?;
        let who = signer.public_key();
        let mut relays = network.homes(&who).await?;
        if let Some(wanted) = &target.wishes.to_relays {
            crate::network::add(&mut relays, &crate::argument::relays(wanted, "/to_relays")?, usize::MAX);
        }
        if relays.is_empty() {
            return Err(Failure::relays("there is no relay to write to; add one with nostr_relays_set"));
        }
        let kind = Kind::from(target.kind);
        self.session.guard.admit_event(kind, &relays)?;
        // Two edits of ours need not find out about each other by way of relays.
        let _turn = network.edits.lock().await;
        let mut filter = Filter::new().kind(kind).author(who);
        if kind.is_addressable() {
            filter = filter.identifier(&target.identifier);
        }
        let watch = Watch { filter: filter.clone(), spread: ALWAYS };
        let (pool, arrivals) = network.pool_apart(Some(&signer), &relays, vec![watch]);
        let mut desk = Desk { turn: self, signer, who, target, filter, relays, pool, arrivals, seen: Vec::new() };
        desk.seen.extend(network.store.known(&who, kind, &desk.target.identifier)?);
        let replaced = desk.work(edit).await?;
        network.store.learn(&replaced.event)?;
        if kind == Kind::RelayList {
            network.note_list(&replaced.event);
        }
        Ok(replaced)
    }
}

/// Everything about one edit.
struct Desk<'a> {
    turn: &'a Turn<'a>,
    signer: Signer,
    who: PublicKey,
    target: Target,
    filter: Filter,
    relays: Vec<RelayUrl>,
    pool: Pool,
    arrivals: mpsc::Receiver<Arrival>,
    /// All versions that we have heard of.
    seen: Vec<Event>,
}

impl Desk<'_> {
    async fn work(mut self, mut edit: impl Edit) -> Result<Replaced, Failure> {
        self.read().await?;
        let mut ours = HashSet::new();
        let mut base = newest_of(&self.seen).cloned();
        for _ in 0..ROUNDS {
            let draft = edit.make(base.as_ref()).await?;
            let event = match &base {
                // The change is there already; whoever lacks that version gets it.
                Some(base) if Draft::of(Some(base)) == draft => base.clone(),
                _ => self.sign(draft).await?,
            };
            ours.insert(event.id);
            self.seen.push(event.clone());
            let progress = Progress::of(self.turn);
            let mut sent = send_through(&self.pool, &event, &self.relays, &progress).await;
            if sent.success.is_empty() {
                sent.result(&event)?;
                return Err(Failure::relays("no relay took the event"));
            }
            self.check().await;
            match self.foreign(&ours, base.as_ref()) {
                Some(foreign) => base = Some(foreign),
                None => {
                    // A relay that has something newer says that it has ours.
                    sent.success.sort();
                    return Ok(Replaced { event, sent });
                }
            }
        }
        Err(Failure::relays(
            "another client changes the same thing all the time; its changes are kept, yours may be missing: try again",
        ))
    }

    /// The newest version of somebody else that our last one does not build on.
    fn foreign(&self, ours: &HashSet<EventId>, base: Option<&Event>) -> Option<Event> {
        let foreign = self.seen.iter().filter(|event| !ours.contains(&event.id));
        let foreign = foreign.filter(|event| base.is_none_or(|base| is_newer(event, base) && event.id != base.id));
        newest_of(foreign).cloned()
    }

    async fn sign(&self, draft: Draft) -> Result<Event, Failure> {
        let last = self.seen.iter().map(|event| event.created_at.as_secs() + 1).max().unwrap_or(0);
        let time = Timestamp::from(self.turn.session.clock.now().as_secs().max(last));
        let mut tags = draft.tags;
        let kind = Kind::from(self.target.kind);
        if kind.is_addressable() && !tags.iter().any(|tag| tag.kind() == "d") {
            tags.insert(0, Tag::identifier(&self.target.identifier));
        }
        let unsigned = UnsignedEvent::new(self.who, time, kind, tags, draft.content);
        self.signer.sign(worked(unsigned, self.target.wishes.pow).await?).await
    }

    fn take(&mut self, event: Event) {
        let is_meant = event.pubkey == self.who
            && event.kind.as_u16() == self.target.kind
            && (!event.kind.is_addressable() || event.tags.identifier().unwrap_or_default() == self.target.identifier);
        if is_meant && !self.seen.iter().any(|one| one.id == event.id) {
            self.seen.push(event);
        }
    }

    /// Reads what there is. It must be clear what would be replaced.
    async fn read(&mut self) -> Result<(), Failure> {
        let progress = Progress::of(self.turn);
        let mut answered: HashSet<String> = HashSet::new();
        let mut changes = self.pool.changes();
        let mut end = Instant::now() + READ;
        loop {
            let statuses = self.pool.status();
            let is_over = |relay: &RelayUrl| {
                answered.contains(relay.as_str_without_trailing_slash()) || is_away(&statuses, relay)
            };
            if self.relays.iter().all(is_over) {
                break;
            }
            tokio::select! {
                arrival = self.arrivals.recv() => match arrival {
                    Some(Arrival::Event { event, .. }) => self.take(*event),
                    Some(Arrival::Subscribed { relay }) => {
                        answered.insert(relay.to_string());
                        end = end.min(Instant::now() + OTHERS);
                        progress.tell("reading what there is").await;
                    }
                    Some(Arrival::Repeat { .. }) => {}
                    None => break,
                },
                _ = changes.changed() => {}
                () = tokio::time::sleep_until(end) => break,
            }
        }
        if self.target.force {
            return Ok(());
        }
        let silent: Vec<&str> = self
            .relays
            .iter()
            .map(RelayUrl::as_str_without_trailing_slash)
            .filter(|name| !answered.contains(*name))
            .collect();
        // An empty answer means something only if everybody has given it.
        if answered.is_empty() || (self.seen.is_empty() && !silent.is_empty()) {
            let words = format!(
                "what is published now could not be read (no answer: {}), so it is not replaced; try again, or set \
                 `force` to replace it unseen",
                silent.join(", ")
            );
            return Err(Failure::relays(words).with("silent", silent));
        }
        Ok(())
    }

    /// Looks once more at what relays have, and at what came meanwhile.
    async fn check(&mut self) {
        let mut query = self.pool.query(std::slice::from_ref(&self.filter), CHECK);
        while let Some(event) = query.next().await {
            self.take(event);
        }
        drop(query);
        while let Ok(arrival) = self.arrivals.try_recv() {
            if let Arrival::Event { event, .. } = arrival {
                self.take(*event);
            }
        }
    }
}

fn is_away(statuses: &[Status], relay: &RelayUrl) -> bool {
    let status = statuses.iter().find(|status| is_at(status, relay));
    status.is_none_or(|status| matches!(status.state, State::Down { tries, .. } if tries > 1))
}
