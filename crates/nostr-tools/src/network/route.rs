//! Which relays an event goes to, and where it may be found: each author's own (NIP-65), as far as they say.

use super::fetch::Care;
use super::{Network, Progress};
use crate::failure::Failure;
use nostr::nips::nip65::{RelayMetadata, extract_relay_list};
use nostr::prelude::{Event, Filter, Kind, PublicKey, RelayUrl, UnsignedEvent};
use rialto_relay::{http, information};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;
use tokio::time::Instant;

/// Relays for those who have chosen none: large, open to everybody, and run by different people.
const DEFAULTS: [&str; 4] = ["wss://relay.damus.io", "wss://nos.lol", "wss://relay.primal.net", "wss://nostr.mom"];

/// Relays that collect profiles and relay lists of everybody.
const INDEXERS: [&str; 2] = ["wss://purplepag.es", "wss://indexer.coracle.social"];

/// Relays that search (NIP-50).
const SEARCHERS: [&str; 2] = ["wss://relay.nostr.band", "wss://search.nos.today"];

/// Relays of one person that are used; a list could name any number.
const MAX_EACH: usize = 3;

/// Relays that are used for one thing beside our own.
const MAX_ROUTED: usize = 12;

/// Relays of our own that are used for one thing.
const MAX_OURS: usize = 16;

/// People whose relays are looked for on account of one query or event.
const MAX_PEOPLE: usize = 200;

/// How long a list is taken for current, and how long its absence.
const KEPT: Duration = Duration::from_secs(3600);
const ABSENT: Duration = Duration::from_secs(600);
const MAX_KEPT: usize = 5_000;

/// How long relays have to tell where others write.
const LOOKUP: Duration = Duration::from_secs(4);

/// Where an event belongs or is looked for, if the caller has no wish of its own.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) enum Route<'a> {
    /// Our relays, and those of the people concerned.
    #[default]
    Usual,
    /// There as well: relays that a poll names, the one that an event was found on.
    Also(&'a [RelayUrl]),
    /// There only: a group lives on one relay.
    Only(&'a [RelayUrl]),
}

/// Whose event it is, for the choice of relays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Author {
    /// Somebody who may have a list of relays.
    Known,
    /// A key that is used once: to ask for its list would show that it is ours.
    Nobody,
}

/// Where somebody reads and writes.
#[derive(Debug, Clone, Default)]
pub(crate) struct List {
    pub(crate) read: Vec<RelayUrl>,
    pub(crate) write: Vec<RelayUrl>,
}

#[derive(Debug)]
pub(super) struct Entry {
    list: List,
    until: Instant,
}

impl List {
    pub(crate) fn of(event: &Event) -> Self {
        let mut list = Self::default();
        for (relay, metadata) in extract_relay_list(event) {
            if metadata != Some(RelayMetadata::Write) && list.read.len() < MAX_EACH {
                list.read.push(relay.clone());
            }
            if metadata != Some(RelayMetadata::Read) && list.write.len() < MAX_EACH {
                list.write.push(relay);
            }
        }
        list
    }
}

/// One relay, and what it is asked for.
pub(super) type Plan = BTreeMap<RelayUrl, Vec<Filter>>;

impl Network {
    /// Whether the relays that ship with us are used: an operator who names some wants those.
    fn has_defaults(&self) -> bool {
        self.given.is_empty()
    }

    fn shipped(&self, urls: &[&str]) -> Vec<RelayUrl> {
        if !self.has_defaults() {
            return Vec::new();
        }
        urls.iter().filter_map(|url| RelayUrl::parse(url).ok()).collect()
    }

    fn ours(&self, is_wanted: impl Fn(bool, bool) -> bool) -> Result<Vec<RelayUrl>, Failure> {
        let chosen = self.store.relays()?;
        let given = self.given.iter().filter(|given| !chosen.iter().any(|one| one.url == **given));
        let mut relays: Vec<RelayUrl> =
            chosen.iter().filter(|one| is_wanted(one.read, one.write)).map(|one| one.url.clone()).collect();
        relays.extend(given.cloned());
        if chosen.is_empty() && relays.is_empty() {
            relays = self.shipped(&DEFAULTS);
        }
        self.keep_usable(&mut relays);
        relays.truncate(MAX_OURS);
        Ok(relays)
    }

    /// The relays that we read from.
    pub(crate) fn read_relays(&self) -> Result<Vec<RelayUrl>, Failure> {
        self.ours(|read, _| read)
    }

    /// The relays that we write to.
    pub(crate) fn write_relays(&self) -> Result<Vec<RelayUrl>, Failure> {
        self.ours(|_, write| write)
    }

    /// All of them, with their flags.
    pub(crate) fn all_relays(&self) -> Result<Vec<crate::store::Chosen>, Failure> {
        let mut all = self.store.relays()?;
        let mut more = self.given.clone();
        if all.is_empty() && more.is_empty() {
            more = self.shipped(&DEFAULTS);
        }
        for url in more {
            if !all.iter().any(|one| one.url == url) {
                all.push(crate::store::Chosen { url, read: true, write: true });
            }
        }
        Ok(all)
    }

    /// Relays that know profiles and relay lists of people whom our own do not know.
    pub(crate) fn indexers(&self) -> Vec<RelayUrl> {
        self.shipped(&INDEXERS)
    }

    /// Where somebody's own lists are kept and looked for: where we write, where they write, and where all lists are.
    pub(crate) async fn homes(&self, who: &PublicKey) -> Result<Vec<RelayUrl>, Failure> {
        let mut homes = self.write_relays()?;
        let list = self.lists_of(&BTreeSet::from([*who]), &Progress::NONE).await;
        add(&mut homes, list.get(who).into_iter().flat_map(|list| &list.write), MAX_OURS + MAX_EACH);
        add(&mut homes, &self.indexers(), usize::MAX);
        self.keep_usable(&mut homes);
        Ok(homes)
    }

    /// Leaves out what the user has disconnected, and what the operator does not allow.
    fn keep_usable(&self, relays: &mut Vec<RelayUrl>) {
        let state = self.state();
        relays.retain(|relay| !state.paused.contains(relay) && self.guard.allows_relay(relay));
    }

    /// Where an event goes, if nobody wishes otherwise.
    pub(crate) async fn destinations(
        &self,
        draft: &UnsignedEvent,
        route: Route<'_>,
        author: Author,
    ) -> Result<Vec<RelayUrl>, Failure> {
        if let Route::Only(these) = route {
            return Ok(these.to_vec());
        }
        let mut relays = self.write_relays()?;
        let mentioned: BTreeSet<PublicKey> = draft.tags.public_keys().take(MAX_PEOPLE).collect();
        // Follow lists and the like mention people without addressing them.
        let is_addressed = !draft.kind.is_replaceable() && !draft.kind.is_addressable();
        let mut people = if is_addressed { mentioned.clone() } else { BTreeSet::new() };
        if author == Author::Known {
            people.insert(draft.pubkey);
        }
        let lists = self.lists_of(&people, &Progress::NONE).await;
        if author == Author::Known {
            add(&mut relays, lists.get(&draft.pubkey).into_iter().flat_map(|list| &list.write), MAX_OURS);
        }
        if let Route::Also(more) = route {
            add(&mut relays, more, MAX_OURS + MAX_ROUTED);
        }
        if is_addressed {
            let readers = mentioned.iter().filter_map(|one| lists.get(one)).flat_map(|list| &list.read);
            let most = relays.len() + MAX_ROUTED;
            add(&mut relays, readers, most);
        }
        if [Kind::Metadata, Kind::ContactList, Kind::RelayList].contains(&draft.kind) {
            add(&mut relays, &self.indexers(), usize::MAX);
        }
        self.keep_usable(&mut relays);
        Ok(relays)
    }

    /// Where these people read and write, as far as that can be found out.
    pub(crate) async fn lists_of(
        &self,
        people: &BTreeSet<PublicKey>,
        progress: &Progress<'_>,
    ) -> HashMap<PublicKey, List> {
        let now = Instant::now();
        let (mut known, unknown) = {
            let state = self.state();
            let fresh = |one: &PublicKey| state.lists.get(one).filter(|entry| entry.until > now);
            let known: HashMap<_, _> = people.iter().filter_map(|one| Some((*one, fresh(one)?.list.clone()))).collect();
            let unknown: BTreeSet<_> =
                people.iter().filter(|one| fresh(one).is_none()).take(MAX_PEOPLE).copied().collect();
            (known, unknown)
        };
        let mut asked = self.read_relays().unwrap_or_default();
        add(&mut asked, &self.indexers(), usize::MAX);
        self.keep_usable(&mut asked);
        if unknown.is_empty() || asked.is_empty() {
            return known;
        }
        let filter = Filter::new().kind(Kind::RelayList).authors(unknown.iter().copied());
        let plan: Plan = asked.into_iter().map(|relay| (relay, vec![filter.clone()])).collect();
        let answers = self.ask(&plan, None, LOOKUP, Care::Quick, progress).await;
        let mut state = self.state();
        if state.lists.len() + unknown.len() > MAX_KEPT {
            state.lists.clear();
        }
        for one in unknown {
            let newest = answers.events.iter().find(|event| event.pubkey == one);
            let list = newest.map(List::of);
            if let Some(list) = &list {
                known.insert(one, list.clone());
            }
            // Nothing is known of an absence if nobody answered.
            if list.is_some() || !answers.answered.is_empty() {
                let until = now + if list.is_some() { KEPT } else { ABSENT };
                state.lists.insert(one, Entry { list: list.unwrap_or_default(), until });
            }
        }
        known
    }

    /// Notes a list that was just published.
    pub(crate) fn note_list(&self, event: &Event) {
        self.state().lists.insert(event.pubkey, Entry { list: List::of(event), until: Instant::now() + KEPT });
    }

    /// Whom to ask for what: our own relays for everything, others for what their people write or get.
    pub(super) async fn plan(
        &self,
        filters: &[Filter],
        route: Route<'_>,
        progress: &Progress<'_>,
    ) -> Result<Plan, Failure> {
        let everything = |relays: &[RelayUrl]| relays.iter().map(|relay| (relay.clone(), filters.to_vec())).collect();
        let mut plan: Plan = match route {
            Route::Only(these) => {
                these.iter().try_for_each(|relay| self.guard.admit_relay(relay))?;
                return Ok(everything(these));
            }
            Route::Usual => everything(&self.read_relays()?),
            Route::Also(more) => {
                let mut relays = self.read_relays()?;
                add(&mut relays, more, MAX_OURS + MAX_ROUTED);
                self.keep_usable(&mut relays);
                everything(&relays)
            }
        };
        let people: BTreeSet<PublicKey> = filters.iter().flat_map(|one| writers(one).chain(readers(one))).collect();
        let lists = self.lists_of(&people.into_iter().take(MAX_PEOPLE).collect(), progress).await;
        let most = plan.len() + MAX_ROUTED;
        for filter in filters {
            for (relay, authors) in shared(writers(filter), &lists, |list| &list.write) {
                let part = Filter { authors: Some(authors), ..filter.clone() };
                enter(&mut plan, most, relay, part);
            }
            for (relay, _) in shared(readers(filter), &lists, |list| &list.read) {
                enter(&mut plan, most, relay, filter.clone());
            }
        }
        let state = self.state();
        plan.retain(|relay, _| !state.paused.contains(relay) && self.guard.allows_relay(relay));
        Ok(plan)
    }

    /// Relays that search: ours that say so, and those that are known for it.
    pub(crate) async fn searchers(&self) -> Result<Vec<RelayUrl>, Failure> {
        let ours = self.read_relays()?;
        let asked = ours.iter().map(|relay| self.can_search(relay));
        let found = futures_util::future::join_all(asked).await;
        let mut relays: Vec<RelayUrl> =
            ours.iter().zip(found).filter(|(_, can)| *can).map(|(one, _)| one.clone()).collect();
        add(&mut relays, &self.shipped(&SEARCHERS), usize::MAX);
        self.keep_usable(&mut relays);
        Ok(relays)
    }

    async fn can_search(&self, relay: &RelayUrl) -> bool {
        if let Some(known) = self.state().searchable.get(relay) {
            return *known;
        }
        let asked = tokio::time::timeout(LOOKUP, self.information(relay)).await;
        let Ok(Ok((_, document))) = asked else { return false };
        let nips = document.get("supported_nips").and_then(serde_json::Value::as_array);
        let can = nips.is_some_and(|nips| nips.iter().any(|nip| nip.as_u64() == Some(50)));
        let mut state = self.state();
        if state.searchable.len() >= MAX_KEPT {
            state.searchable.clear();
        }
        state.searchable.insert(relay.clone(), can);
        can
    }

    /// What a relay says about itself (NIP-11): the answer's number, and the document.
    pub(crate) async fn information(&self, relay: &RelayUrl) -> Result<(u16, serde_json::Value), Failure> {
        let failed = |error: String| Failure::relays(format!("{relay} does not tell about itself: {error}"));
        let url = information::address(relay).map_err(|error| failed(error.to_string()))?;
        let addresses = self.reach.addresses(&url).await.map_err(|error| failed(error.to_string()))?;
        let document = http::get_from(&url, information::MEDIA_TYPE, Some(&addresses)).await;
        let document = document.map_err(|error| failed(error.to_string()))?;
        let value: serde_json::Value =
            serde_json::from_slice(&document.body).map_err(|_| failed("what it sent is no JSON".into()))?;
        if !value.is_object() {
            return Err(failed("what it sent is no document".into()));
        }
        Ok((document.status, value))
    }
}

/// Adds relays that are not there yet, up to so many in all.
pub(crate) fn add<'a>(relays: &mut Vec<RelayUrl>, more: impl IntoIterator<Item = &'a RelayUrl>, most: usize) {
    for relay in more {
        if relays.len() >= most {
            return;
        }
        if !relays.contains(relay) {
            relays.push(relay.clone());
        }
    }
}

fn enter(plan: &mut Plan, most: usize, relay: RelayUrl, filter: Filter) {
    let is_full = plan.len() >= most;
    match plan.get_mut(&relay) {
        Some(filters) if filters.iter().any(|one| one.authors.is_superset_of(&filter)) => {}
        Some(filters) => filters.push(filter),
        None if is_full => {}
        None => drop(plan.insert(relay, vec![filter])),
    }
}

/// Whether a filter without this part asks for at least as much.
trait Covers {
    fn is_superset_of(&self, filter: &Filter) -> bool;
}

impl Covers for Option<BTreeSet<PublicKey>> {
    fn is_superset_of(&self, filter: &Filter) -> bool {
        match (self, &filter.authors) {
            (None, None) => true,
            (Some(all), Some(some)) => some.is_subset(all),
            _ => false,
        }
    }
}

fn writers(filter: &Filter) -> impl Iterator<Item = PublicKey> + '_ {
    filter.authors.iter().flatten().copied()
}

/// Those that are looked for as mentioned, if nothing is said about who wrote it.
fn readers(filter: &Filter) -> impl Iterator<Item = PublicKey> + '_ {
    let is_open = filter.authors.is_none();
    let tags = filter.generic_tags.iter().filter(move |(name, _)| is_open && name.as_str() == "p");
    tags.flat_map(|(_, values)| values).filter_map(|value| PublicKey::from_hex(value).ok())
}

/// For each relay, who is there; the relays that most share come first.
fn shared(
    people: impl Iterator<Item = PublicKey>,
    lists: &HashMap<PublicKey, List>,
    part: impl Fn(&List) -> &Vec<RelayUrl>,
) -> Vec<(RelayUrl, BTreeSet<PublicKey>)> {
    let mut relays: BTreeMap<RelayUrl, BTreeSet<PublicKey>> = BTreeMap::new();
    for one in people {
        for relay in lists.get(&one).into_iter().flat_map(&part) {
            relays.entry(relay.clone()).or_default().insert(one);
        }
    }
    let mut relays: Vec<_> = relays.into_iter().collect();
    relays.sort_by_key(|(_, people)| std::cmp::Reverse(people.len()));
    relays
}
