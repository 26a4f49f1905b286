//! The stored events, in memory, with an index for each thing that a filter can ask for.
//!
//! All indexes are one ordered tree: a hash of what is asked for, and then the order in which events are served. So a
//! query walks the shortest stretch that covers its filter and stops at its limit, and a tag value that occurs only
//! once costs no more than its place in the tree. Two values with the same hash only make a stretch longer, because
//! every candidate is compared with the filter. A [`Walk`] can be left and taken up again: a long one is done in steps,
//! between which others get their turn.

use std::cmp::Reverse;
use std::collections::btree_map::Range;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use super::event::{Address, Bytes32, DELETION, Event, Position, parse_hex, to_hex};
use super::filter::Filter;

/// How far candidates are counted before a stretch of the tree simply is "long".
const LONG: usize = 1000;

/// About what an event takes besides its text, and each of its tags besides its value: places in trees and tables.
const EVENT_OVERHEAD: usize = 800;
const TAG_OVERHEAD: usize = 150;

/// What a filter can ask for. Its hash is the first part of a key in the tree.
#[derive(Hash)]
enum Topic<'a> {
    Everything,
    Author(&'a Bytes32),
    Kind(u16),
    Tag(u8, &'a str),
    /// A deletion request of this author for what a tag names (NIP-09).
    Deletion(&'a Bytes32, u8, &'a str),
}

type Key = (u64, Position);

/// Why an event was not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    Duplicate,
    Replaced,
    Deleted,
    Full,
}

#[derive(Debug)]
pub(super) struct Store {
    max_events: usize,
    max_bytes: usize,
    bytes: usize,
    serial: u64,
    by_id: HashMap<Bytes32, (u64, Arc<Event>)>,
    by_address: HashMap<Address, Arc<Event>>,
    by_expiry: BTreeSet<(u64, Bytes32)>,
    by_topic: BTreeMap<Key, Arc<Event>>,
    /// With a secret of its own, so that nobody can make values collide on purpose.
    hasher: RandomState,
}

impl Store {
    pub(super) fn new(max_events: usize, max_bytes: usize) -> Self {
        Self {
            max_events,
            max_bytes,
            bytes: 0,
            serial: 0,
            by_id: HashMap::new(),
            by_address: HashMap::new(),
            by_expiry: BTreeSet::new(),
            by_topic: BTreeMap::new(),
            hasher: RandomState::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Whether nothing at all is held.
    #[cfg(test)]
    pub(super) fn is_hollow(&self) -> bool {
        let indexes = self.by_topic.len() + self.by_address.len() + self.by_expiry.len();
        self.by_id.len() + indexes + self.bytes == 0
    }

    pub(super) fn contains(&self, id: &Bytes32) -> bool {
        self.by_id.contains_key(id)
    }

    /// All events, oldest first.
    pub(super) fn all(&self) -> Vec<Arc<Event>> {
        self.stretch(&Topic::Everything, Bound::Unbounded).rev().map(|(_, event)| event.clone()).collect()
    }

    /// Says whether an event would be stored, without storing it.
    pub(super) fn check(&self, event: &Event) -> Result<(), Refusal> {
        if self.contains(&event.id) {
            return Err(Refusal::Duplicate);
        }
        let address = event.address();
        if self.is_deleted(event, address.as_ref()) {
            return Err(Refusal::Deleted);
        }
        if let Some(current) = address.and_then(|address| self.by_address.get(&address))
            && current.position() < event.position()
        {
            return Err(Refusal::Replaced);
        }
        let is_full = self.len() >= self.max_events || self.bytes + weight(event) > self.max_bytes;
        if is_full && self.oldest().is_none_or(|oldest| oldest.position() < event.position()) {
            return Err(Refusal::Full);
        }
        Ok(())
    }

    fn oldest(&self) -> Option<&Arc<Event>> {
        self.stretch(&Topic::Everything, Bound::Unbounded).next_back().map(|(_, event)| event)
    }

    /// The events of one topic, newest first.
    fn stretch(&self, topic: &Topic<'_>, from: Bound<Position>) -> Range<'_, Key, Arc<Event>> {
        let hash = self.hasher.hash_one(topic);
        let newest = Position { created_at: Reverse(u64::MAX), id: [0; 32] };
        let oldest = Position { created_at: Reverse(0), id: [0xff; 32] };
        let from = match from {
            Bound::Included(from) => Bound::Included((hash, from)),
            // Whatever is behind the oldest possible position belongs to another topic.
            Bound::Excluded(from) if from < oldest => Bound::Excluded((hash, from)),
            Bound::Excluded(_) => Bound::Included((hash, oldest)),
            Bound::Unbounded => Bound::Included((hash, newest)),
        };
        self.by_topic.range((from, Bound::Included((hash, oldest))))
    }

    fn is_deleted(&self, event: &Event, address: Option<&Address>) -> bool {
        if event.kind == DELETION {
            return false;
        }
        let request = |letter: u8, name: &str| {
            let mut requests = self.stretch(&Topic::Deletion(&event.author, letter, name), Bound::Unbounded);
            let is_real = |request: &Event| {
                request.kind == DELETION
                    && request.author == event.author
                    && request.values(letter).any(|value| value == name)
            };
            requests.find(|(_, request)| is_real(request)).map(|(_, request)| request)
        };
        if request(b'e', &to_hex(&event.id)).is_some() {
            return true;
        }
        let Some(address) = address else { return false };
        let name = format!("{}:{}:{}", address.kind, to_hex(&address.author), address.identifier);
        // The newest comes first.
        request(b'a', &name).is_some_and(|request| request.created_at >= event.created_at)
    }

    /// Stores an event that [`check`](Self::check) has let through, and does away with what it replaces or deletes.
    pub(super) fn insert(&mut self, event: &Arc<Event>) {
        if let Some(address) = event.address()
            && let Some(current) = self.by_address.insert(address, event.clone())
        {
            self.remove(&current.id);
        }
        self.add_to_indexes(event);
        if event.kind == DELETION {
            self.delete_what_is_named(event);
        }
        while self.len() > self.max_events || self.bytes > self.max_bytes {
            let Some(oldest) = self.oldest().map(|oldest| oldest.id) else { break };
            self.remove(&oldest);
        }
    }

    fn add_to_indexes(&mut self, event: &Arc<Event>) {
        self.bytes += weight(event);
        self.serial += 1;
        self.by_id.insert(event.id, (self.serial, event.clone()));
        for key in self.keys(event) {
            self.by_topic.insert(key, event.clone());
        }
        if let Some(expires) = event.expires {
            self.by_expiry.insert((expires, event.id));
        }
    }

    /// Every place of an event in the tree.
    fn keys(&self, event: &Event) -> Vec<Key> {
        let position = event.position();
        let mut keys = Vec::with_capacity(event.tags.len() + 3);
        let mut add = |topic: Topic<'_>| keys.push((self.hasher.hash_one(topic), position));
        add(Topic::Everything);
        add(Topic::Author(&event.author));
        add(Topic::Kind(event.kind));
        for (letter, value) in &event.tags {
            add(Topic::Tag(*letter, value));
            if event.kind == DELETION && matches!(letter, b'e' | b'a') {
                add(Topic::Deletion(&event.author, *letter, value));
            }
        }
        keys
    }

    /// NIP-09: only what the same author has published, and no deletion requests.
    fn delete_what_is_named(&mut self, request: &Event) {
        let mut named = Vec::new();
        for id in request.values(b'e').filter_map(parse_hex) {
            let event = self.by_id.get(&id).map(|(_, event)| event);
            named.extend(event.filter(|event| event.author == request.author && event.kind != DELETION).cloned());
        }
        for address in request.values(b'a').filter_map(Address::parse) {
            let event = self.by_address.get(&address);
            let is_meant =
                |event: &&Arc<Event>| event.author == request.author && event.created_at <= request.created_at;
            named.extend(event.filter(is_meant).cloned());
        }
        for event in named {
            self.remove(&event.id);
        }
    }

    fn remove(&mut self, id: &Bytes32) {
        let Some((_, event)) = self.by_id.remove(id) else { return };
        self.bytes -= weight(&event);
        for key in self.keys(&event) {
            self.by_topic.remove(&key);
        }
        if let Some(address) = event.address()
            && self.by_address.get(&address).is_some_and(|current| current.id == event.id)
        {
            self.by_address.remove(&address);
        }
        if let Some(expires) = event.expires {
            self.by_expiry.remove(&(expires, event.id));
        }
    }

    /// Removes up to `budget` events that have expired.
    pub(super) fn sweep(&mut self, now: u64, budget: usize) -> Step {
        for _ in 0..budget {
            match self.by_expiry.first().copied() {
                Some((expires, id)) if expires <= now => {
                    self.by_expiry.remove(&(expires, id));
                    self.remove(&id);
                }
                _ => return Step::Done,
            }
        }
        Step::More
    }

    /// The number of the newest event, in the order of arrival. Events that come later have a higher one.
    pub(super) fn serial(&self) -> u64 {
        self.serial
    }

    /// Takes one step of a walk: looks at up to `budget` candidates for a filter, newest first.
    pub(super) fn step(&self, filter: &Filter, walk: &mut Walk, budget: usize) -> Step {
        let mut from = walk.from;
        if let Some(until) = filter.until {
            let first = Position { created_at: Reverse(until), id: [0; 32] };
            match from {
                Bound::Excluded(after) if after >= first => {}
                _ => from = Bound::Included(first),
            }
        }
        let mut seen = 0;
        for event in self.candidates(filter, from) {
            let is_too_old = filter.since.is_some_and(|since| event.created_at < since);
            if is_too_old || walk.found.len() >= walk.wanted {
                return Step::Done;
            }
            if filter.matches(event) && self.is_wanted(event, walk) {
                walk.found.push(event.clone());
            }
            seen += 1;
            if seen >= budget {
                walk.from = Bound::Excluded(event.position());
                return Step::More;
            }
        }
        Step::Done
    }

    fn is_wanted(&self, event: &Event, walk: &Walk) -> bool {
        let is_known = self.by_id.get(&event.id).is_some_and(|(serial, _)| *serial <= walk.as_of);
        is_known && !event.is_expired(walk.now)
    }

    /// The events of the smallest index that holds everything a filter can match, newest first.
    fn candidates<'a>(
        &'a self,
        filter: &Filter,
        from: Bound<Position>,
    ) -> Box<dyn Iterator<Item = &'a Arc<Event>> + 'a> {
        if let Some(ids) = &filter.ids {
            let mut found: Vec<_> = ids.iter().filter_map(|id| self.by_id.get(id)).map(|(_, event)| event).collect();
            found.retain(|event| (from, Bound::Unbounded).contains(&event.position()));
            found.sort_unstable_by_key(|event| event.position());
            return Box::new(found.into_iter());
        }
        let mut best = vec![self.stretch(&Topic::Everything, from)];
        let mut cost = self.len();
        let mut consider = |topics: Vec<Topic<'_>>| {
            let stretches: Vec<_> = topics.iter().map(|topic| self.stretch(topic, from)).collect();
            let size = stretches.iter().flat_map(|stretch| stretch.clone().take(LONG)).take(cost).count();
            if size < cost {
                (best, cost) = (stretches, size);
            }
        };
        for (letter, values) in &filter.tags {
            consider(values.iter().map(|value| Topic::Tag(*letter, value)).collect());
        }
        if let Some(authors) = &filter.authors {
            consider(authors.iter().map(Topic::Author).collect());
        }
        if let Some(kinds) = &filter.kinds {
            consider(kinds.iter().map(|kind| Topic::Kind(*kind)).collect());
        }
        match best.len() {
            1 => Box::new(best.into_iter().flatten().map(|(_, event)| event)),
            _ => Box::new(Merge::new(best)),
        }
    }
}

/// About how much memory an event takes.
fn weight(event: &Event) -> usize {
    let places = if event.kind == DELETION { 2 } else { 1 };
    let tags: usize = event.tags.iter().map(|(_, value)| value.len() + TAG_OVERHEAD * places).sum();
    EVENT_OVERHEAD + event.text.len() + tags
}

/// A query that is under way.
#[derive(Debug)]
pub(super) struct Walk {
    from: Bound<Position>,
    /// Events with a higher number are left out: they have been delivered live.
    as_of: u64,
    now: u64,
    wanted: usize,
    pub(super) found: Vec<Arc<Event>>,
}

impl Walk {
    pub(super) fn new(as_of: u64, now: u64, wanted: usize) -> Self {
        Self { from: Bound::Unbounded, as_of, now, wanted, found: Vec::new() }
    }
}

/// Whether a walk has come to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    More,
    Done,
}

/// Several ordered stretches as one. An event in more than one of them comes once.
struct Merge<'a> {
    stretches: Vec<Range<'a, Key, Arc<Event>>>,
    /// The next event of each stretch; a heap gives the greatest, so the order is turned around.
    heads: BinaryHeap<(Reverse<Position>, usize)>,
    next: Vec<Option<&'a Arc<Event>>>,
    last: Option<Position>,
}

impl<'a> Merge<'a> {
    fn new(stretches: Vec<Range<'a, Key, Arc<Event>>>) -> Self {
        let next = vec![None; stretches.len()];
        let mut merge = Self { stretches, heads: BinaryHeap::new(), next, last: None };
        for index in 0..merge.stretches.len() {
            merge.advance(index);
        }
        merge
    }

    fn advance(&mut self, index: usize) {
        if let Some(((_, position), event)) = self.stretches[index].next() {
            self.heads.push((Reverse(*position), index));
            self.next[index] = Some(event);
        }
    }
}

impl<'a> Iterator for Merge<'a> {
    type Item = &'a Arc<Event>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (Reverse(position), index) = self.heads.pop()?;
            let event = self.next[index].take()?;
            self.advance(index);
            if self.last.replace(position) != Some(position) {
                return Some(event);
            }
        }
    }
}
