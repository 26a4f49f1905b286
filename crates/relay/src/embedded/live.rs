//! Open subscriptions, found by what they ask for.
//!
//! Each filter stands in the index under the field that lets the fewest events through: ids, then tags, then authors,
//! then kinds. An event is compared only with filters that stand under one of its own values, so thousands of
//! subscriptions of other people cost it nothing.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::sync::Arc;

use super::event::{Bytes32, Event};
use super::filter::Filter;
use super::outbox::Outbox;

/// Names one subscription of one connection, for as long as it is open.
pub(super) type Ticket = u64;

#[derive(Debug)]
pub(super) struct Subscription {
    /// What every message of the subscription begins with: `["EVENT","name",`.
    pub(super) opening: Arc<str>,
    pub(super) outbox: Arc<Outbox>,
    pub(super) filters: Vec<Filter>,
}

/// A filter in the index: whose it is, and its place in the subscription.
type Entry = (Ticket, usize);

#[derive(Debug, Default)]
pub(super) struct Live {
    last_ticket: Ticket,
    open: HashMap<Ticket, Arc<Subscription>>,
    by_id: HashMap<Bytes32, Vec<Entry>>,
    by_tag: HashMap<u8, HashMap<Box<str>, Vec<Entry>>>,
    by_author: HashMap<Bytes32, Vec<Entry>>,
    by_kind: HashMap<u16, Vec<Entry>>,
    /// Filters without any of these.
    by_nothing: HashSet<Entry>,
}

impl Live {
    pub(super) fn open(&mut self, subscription: Arc<Subscription>) -> Ticket {
        self.last_ticket += 1;
        let ticket = self.last_ticket;
        for (number, filter) in subscription.filters.iter().enumerate() {
            self.enter(filter, (ticket, number));
        }
        self.open.insert(ticket, subscription);
        ticket
    }

    pub(super) fn close(&mut self, ticket: Ticket) {
        let Some(subscription) = self.open.remove(&ticket) else { return };
        for (number, filter) in subscription.filters.iter().enumerate() {
            self.leave(filter, (ticket, number));
        }
    }

    fn enter(&mut self, filter: &Filter, entry: Entry) {
        if let Some(ids) = &filter.ids {
            ids.iter().for_each(|id| self.by_id.entry(*id).or_default().push(entry));
        } else if let Some((letter, wanted)) = rarest_tag(filter) {
            let values = self.by_tag.entry(letter).or_default();
            wanted.iter().for_each(|value| values.entry(value.clone()).or_default().push(entry));
        } else if let Some(authors) = &filter.authors {
            authors.iter().for_each(|author| self.by_author.entry(*author).or_default().push(entry));
        } else if let Some(kinds) = &filter.kinds {
            kinds.iter().for_each(|kind| self.by_kind.entry(*kind).or_default().push(entry));
        } else {
            self.by_nothing.insert(entry);
        }
    }

    fn leave(&mut self, filter: &Filter, entry: Entry) {
        if let Some(ids) = &filter.ids {
            ids.iter().for_each(|id| take(&mut self.by_id, id, entry));
        } else if let Some((letter, wanted)) = rarest_tag(filter) {
            let values = self.by_tag.entry(letter).or_default();
            wanted.iter().for_each(|value| take(values, value, entry));
        } else if let Some(authors) = &filter.authors {
            authors.iter().for_each(|author| take(&mut self.by_author, author, entry));
        } else if let Some(kinds) = &filter.kinds {
            kinds.iter().for_each(|kind| take(&mut self.by_kind, kind, entry));
        } else {
            self.by_nothing.remove(&entry);
        }
    }

    /// Hands an event to every subscription that asks for it, once each.
    pub(super) fn deliver(&self, event: &Arc<Event>) {
        let mut entries: Vec<Entry> = self.by_nothing.iter().copied().collect();
        entries.extend(self.by_id.get(&event.id).into_iter().flatten());
        entries.extend(self.by_author.get(&event.author).into_iter().flatten());
        entries.extend(self.by_kind.get(&event.kind).into_iter().flatten());
        for (letter, value) in &event.tags {
            let Some(values) = self.by_tag.get(letter) else { continue };
            entries.extend(values.get(value).into_iter().flatten());
        }
        // In the order of opening, and the filters of one subscription next to each other.
        entries.sort_unstable();
        let mut served = None;
        for (ticket, number) in entries {
            if served == Some(ticket) {
                continue;
            }
            let Some(subscription) = self.open.get(&ticket) else { continue };
            if subscription.filters.get(number).is_some_and(|filter| filter.matches(event)) {
                subscription.outbox.push(&subscription.opening, event);
                served = Some(ticket);
            }
        }
    }
}

/// Of several tags the one with the fewest values.
fn rarest_tag(filter: &Filter) -> Option<(u8, &[Box<str>])> {
    let fewest = filter.tags.iter().min_by_key(|(_, values)| values.len());
    fewest.map(|(letter, values)| (*letter, values.as_slice()))
}

fn take<K: Hash + Eq>(index: &mut HashMap<K, Vec<Entry>>, key: &K, entry: Entry) {
    if let Some(entries) = index.get_mut(key) {
        // Tickets only grow, so the list is in order.
        if let Ok(place) = entries.binary_search(&entry) {
            entries.remove(place);
        }
        if entries.is_empty() {
            index.remove(key);
        }
    }
}
