//! The stored events, in memory, with an index for each thing that a filter can ask for.
//!
//! Every index keeps its events in the order in which they are served, so a query walks the smallest index that covers
//! its filter and stops at its limit. A [`Walk`] can be left and taken up again: a long one is done in steps, between
//! which others get their turn.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap};
use std::hash::Hash;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use super::event::{Address, Bytes32, DELETION, Event, Position, Storage, parse_hex, to_hex};
use super::filter::Filter;

type Events = BTreeMap<Position, Arc<Event>>;

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
    by_time: Events,
    by_author: HashMap<Bytes32, Events>,
    by_kind: HashMap<u16, Events>,
    by_tag: HashMap<u8, HashMap<Box<str>, Events>>,
    by_address: HashMap<Address, Arc<Event>>,
    by_expiry: BTreeSet<(u64, Bytes32)>,
    /// Deletion requests by author and by what they name, so that what was deleted stays deleted.
    deletions: HashMap<(Bytes32, u8, Box<str>), Events>,
}

impl Store {
    pub(super) fn new(max_events: usize, max_bytes: usize) -> Self {
        Self {
            max_events,
            max_bytes,
            bytes: 0,
            serial: 0,
            by_id: HashMap::new(),
            by_time: Events::new(),
            by_author: HashMap::new(),
            by_kind: HashMap::new(),
            by_tag: HashMap::new(),
            by_address: HashMap::new(),
            by_expiry: BTreeSet::new(),
            deletions: HashMap::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(super) fn contains(&self, id: &Bytes32) -> bool {
        self.by_id.contains_key(id)
    }

    /// All events, oldest first.
    pub(super) fn all(&self) -> Vec<Arc<Event>> {
        self.by_time.values().rev().cloned().collect()
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
        let is_full = self.len() >= self.max_events || self.bytes + event.text.len() > self.max_bytes;
        if is_full && self.by_time.last_key_value().is_none_or(|(oldest, _)| *oldest < event.position()) {
            return Err(Refusal::Full);
        }
        Ok(())
    }

    fn is_deleted(&self, event: &Event, address: Option<&Address>) -> bool {
        if event.kind == DELETION || self.deletions.is_empty() {
            return false;
        }
        let by_id = (event.author, b'e', to_hex(&event.id).into_boxed_str());
        if self.deletions.contains_key(&by_id) {
            return true;
        }
        let Some(address) = address else { return false };
        let name = format!("{}:{}:{}", address.kind, to_hex(&address.author), address.identifier);
        let requests = self.deletions.get(&(event.author, b'a', name.into_boxed_str()));
        let newest = requests.and_then(Events::first_key_value);
        newest.is_some_and(|(_, request)| request.created_at >= event.created_at)
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
            let Some((oldest, _)) = self.by_time.last_key_value() else { break };
            let oldest = oldest.id;
            self.remove(&oldest);
        }
    }

    fn add_to_indexes(&mut self, event: &Arc<Event>) {
        let position = event.position();
        self.bytes += event.text.len();
        self.serial += 1;
        self.by_id.insert(event.id, (self.serial, event.clone()));
        self.by_time.insert(position, event.clone());
        self.by_author.entry(event.author).or_default().insert(position, event.clone());
        self.by_kind.entry(event.kind).or_default().insert(position, event.clone());
        for (letter, value) in &event.tags {
            let values = self.by_tag.entry(*letter).or_default();
            match values.get_mut(value) {
                Some(events) => {
                    events.insert(position, event.clone());
                }
                None => {
                    values.insert(value.clone(), Events::from([(position, event.clone())]));
                }
            }
            if event.kind == DELETION && matches!(letter, b'e' | b'a') {
                let name = (event.author, *letter, value.clone());
                self.deletions.entry(name).or_default().insert(position, event.clone());
            }
        }
        if let Some(expires) = event.expires {
            self.by_expiry.insert((expires, event.id));
        }
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
        let position = event.position();
        self.bytes -= event.text.len();
        self.by_time.remove(&position);
        take(&mut self.by_author, &event.author, &position);
        take(&mut self.by_kind, &event.kind, &position);
        for (letter, value) in &event.tags {
            if let Some(values) = self.by_tag.get_mut(letter) {
                take(values, value, &position);
            }
            if event.kind == DELETION {
                take(&mut self.deletions, &(event.author, *letter, value.clone()), &position);
            }
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

    /// Removes what has expired.
    pub(super) fn sweep(&mut self, now: u64) {
        while let Some((expires, id)) = self.by_expiry.first().copied()
            && expires <= now
        {
            self.by_expiry.pop_first();
            self.remove(&id);
        }
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
        let mut best: Vec<&Events> = vec![&self.by_time];
        let mut cost = self.by_time.len();
        let mut consider = |lists: Vec<&'a Events>| {
            let size = lists.iter().map(|list| list.len()).sum();
            if size < cost {
                (best, cost) = (lists, size);
            }
        };
        if let Some(authors) = &filter.authors {
            consider(authors.iter().filter_map(|author| self.by_author.get(author)).collect());
        }
        if let Some(kinds) = &filter.kinds {
            consider(kinds.iter().filter_map(|kind| self.by_kind.get(kind)).collect());
        }
        for (letter, wanted) in &filter.tags {
            let values = self.by_tag.get(letter);
            consider(wanted.iter().filter_map(|value| values?.get(value)).collect());
        }
        match best.as_slice() {
            [only] => Box::new(only.range((from, Bound::Unbounded)).map(|(_, event)| event)),
            _ => Box::new(Merge::new(&best, from)),
        }
    }
}

/// Removes an event from one list of an index, and the list when it was the last.
fn take<K: Hash + Eq>(index: &mut HashMap<K, Events>, key: &K, position: &Position) {
    if let Some(events) = index.get_mut(key) {
        events.remove(position);
        if events.is_empty() {
            index.remove(key);
        }
    }
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

/// Several ordered lists as one. An event in more than one of them comes once.
struct Merge<'a> {
    lists: Vec<std::collections::btree_map::Range<'a, Position, Arc<Event>>>,
    /// The next event of each list; a heap gives the greatest, so the order is turned around.
    heads: BinaryHeap<(Reverse<Position>, usize)>,
    events: HashMap<usize, &'a Arc<Event>>,
    last: Option<Position>,
}

impl<'a> Merge<'a> {
    fn new(lists: &[&'a Events], from: Bound<Position>) -> Self {
        let ranges = lists.iter().map(|list| list.range((from, Bound::Unbounded))).collect();
        let mut merge = Self { lists: ranges, heads: BinaryHeap::new(), events: HashMap::new(), last: None };
        for index in 0..merge.lists.len() {
            merge.advance(index);
        }
        merge
    }

    fn advance(&mut self, index: usize) {
        if let Some((position, event)) = self.lists[index].next() {
            self.heads.push((Reverse(*position), index));
            self.events.insert(index, event);
        }
    }
}

impl<'a> Iterator for Merge<'a> {
    type Item = &'a Arc<Event>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (position, index) = self.heads.pop()?;
            let event = self.events.remove(&index)?;
            self.advance(index);
            if self.last.replace(position.0) != Some(position.0) {
                return Some(event);
            }
        }
    }
}

impl Storage {
    pub(super) fn is_stored(self) -> bool {
        self != Storage::Ephemeral
    }
}
