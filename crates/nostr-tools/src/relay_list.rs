//! Relay lists (NIP-65) as they are shown and changed.

use crate::replace::Draft;
use crate::shape::record;
use nostr::nips::nip65::{RelayMetadata, extract_relay_list};
use nostr::prelude::{Event, RelayUrl, Tag};
use std::collections::BTreeSet;

record! {
    /// A relay in somebody's list.
    struct RelayEntry {
        /// Its address
        url: String,
        /// Whether they read there
        read: bool,
        /// Whether they write there
        write: bool,
    }
}

/// A list could name any number.
const MAX_SHOWN: usize = 100;

pub(crate) fn entries(event: &Event) -> Vec<RelayEntry> {
    let entry = |(url, metadata): (RelayUrl, Option<RelayMetadata>)| RelayEntry {
        url: url.as_str_without_trailing_slash().to_owned(),
        read: metadata != Some(RelayMetadata::Write),
        write: metadata != Some(RelayMetadata::Read),
    };
    extract_relay_list(event).take(MAX_SHOWN).map(entry).collect()
}

/// What is to be different.
#[derive(Debug)]
pub(crate) struct Change {
    wanted: Vec<(RelayUrl, bool, bool)>,
    gone: BTreeSet<RelayUrl>,
}

impl Change {
    pub(crate) fn new(wanted: &[(RelayUrl, bool, bool)], base: Option<&Event>) -> Self {
        let present = base.into_iter().flat_map(extract_relay_list).map(|(url, _)| url);
        let gone = present.filter(|url| !wanted.iter().any(|(one, ..)| one == url)).collect();
        Self { wanted: wanted.to_vec(), gone }
    }

    pub(crate) fn make(&self, base: Option<&Event>) -> Draft {
        let mut draft = Draft::of(base);
        let url = |tag: &Tag| tag.content().filter(|_| tag.kind() == "r").and_then(|text| RelayUrl::parse(text).ok());
        let is_ours = |url: &RelayUrl| self.wanted.iter().any(|(one, ..)| one == url);
        draft.tags.retain(|tag| url(tag).is_none_or(|url| !self.gone.contains(&url) && !is_ours(&url)));
        draft.tags.extend(self.wanted.iter().map(|(url, read, write)| {
            let flag = match (read, write) {
                (true, false) => Some("read"),
                (false, true) => Some("write"),
                _ => None,
            };
            Tag::custom("r", std::iter::once(url.as_str_without_trailing_slash()).chain(flag))
        }));
        draft
    }
}
