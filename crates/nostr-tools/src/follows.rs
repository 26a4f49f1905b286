//! Follow lists (kind 3) as changes: whom to add and whom to take away, whatever else is in the list.

use crate::argument;
use crate::failure::Failure;
use crate::replace::{Draft, Replaced, Target};
use crate::result::{FollowEntry, PublishResult};
use crate::shape::record;
use crate::store::Drafts;
use crate::tool::Turn;
use crate::{profile, store};
use nostr::prelude::{Event, Kind, PublicKey, Tag};
use std::collections::{BTreeMap, BTreeSet, HashSet};

record! {
    /// A follow list.
    struct FollowList {
        /// Whose list it is, in hex
        pubkey: String,
        /// Who is followed
        follows: Vec<FollowEntry>,
        /// How many
        count: u64,
    }
}

record! {
    /// A follow list after a change.
    struct Followed {
        /// Who is followed now
        follows: Vec<FollowEntry>,
        /// How many
        count: u64,
        /// How publishing went
        result: PublishResult,
    }
}

/// What is to be different.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Change {
    /// Whom to follow, with what stands after the key in the tag.
    pub(crate) add: BTreeMap<PublicKey, Vec<String>>,
    pub(crate) remove: BTreeSet<PublicKey>,
}

impl Change {
    /// What was kept for later.
    pub(crate) fn of(drafts: &Drafts) -> Self {
        Self { add: drafts.follow.clone(), remove: drafts.unfollow.iter().copied().collect() }
    }

    /// Both, the later one first where they differ.
    pub(crate) fn then(mut self, later: Change) -> Self {
        self.add.retain(|key, _| !later.remove.contains(key));
        self.remove.retain(|key| !later.add.contains_key(key));
        self.add.extend(later.add);
        self.remove.extend(later.remove);
        self
    }

    pub(crate) fn keep(self, drafts: &mut Drafts) {
        drafts.follow = self.add;
        drafts.unfollow = self.remove.into_iter().collect();
    }

    /// Makes the change to a list. Everything else stays: order, content, tags that we do not know.
    pub(crate) fn make(&self, base: Option<&Event>) -> Draft {
        let mut draft = Draft::of(base);
        draft.tags.retain(|tag| key(tag).is_none_or(|key| !self.remove.contains(&key)));
        let mut known = HashSet::new();
        for tag in &mut draft.tags {
            let Some(key) = key(tag) else { continue };
            known.insert(key);
            if let Some(rest) = self.add.get(&key) {
                *tag = updated(tag, rest);
            }
        }
        let new = self.add.iter().filter(|(key, _)| !known.contains(*key));
        draft.tags.extend(new.map(|(key, rest)| {
            let rest = rest.iter().map(String::as_str);
            Tag::custom("p", std::iter::once(key.to_hex().as_str()).chain(rest))
        }));
        draft
    }
}

/// The key in a `p` tag.
fn key(tag: &Tag) -> Option<PublicKey> {
    let key = tag.content().filter(|_| tag.kind() == "p")?;
    PublicKey::from_hex(key).ok()
}

/// The tag with what is known better now.
fn updated(tag: &Tag, rest: &[String]) -> Tag {
    let mut parts = tag.as_slice().to_vec();
    for (index, part) in rest.iter().enumerate().filter(|(_, part)| !part.is_empty()) {
        let place = index + 2;
        while parts.len() <= place {
            parts.push(String::new());
        }
        parts[place].clone_from(part);
    }
    Tag::parse(parts).unwrap_or_else(|_| tag.clone())
}

/// What stands after the key: a relay and a name, as far as they are given.
pub(crate) fn rest(relay: Option<&str>, petname: Option<&str>, pointer: &str) -> Result<Vec<String>, Failure> {
    let relay = match relay.map(str::trim).filter(|relay| !relay.is_empty()) {
        Some(relay) => {
            argument::relay(relay, &format!("{pointer}/relay_url"))?.as_str_without_trailing_slash().to_owned()
        }
        None => String::new(),
    };
    let petname = petname.map(str::trim).unwrap_or_default().to_owned();
    Ok(match (relay.is_empty(), petname.is_empty()) {
        (true, true) => Vec::new(),
        (false, true) => vec![relay],
        (_, false) => vec![relay, petname],
    })
}

/// Who is followed, each once.
pub(crate) fn entries<'a>(tags: impl IntoIterator<Item = &'a Tag>) -> Vec<FollowEntry> {
    let mut seen = HashSet::new();
    let entry = |tag: &Tag| {
        let key = key(tag).filter(|key| seen.insert(*key))?;
        let part = |index: usize| tag.as_slice().get(index).filter(|text| !text.is_empty()).cloned();
        Some(FollowEntry { pubkey: key.to_hex(), relay_url: part(2), petname: part(3) })
    };
    tags.into_iter().filter_map(entry).collect()
}

/// The keys in a list.
pub(crate) fn keys(base: Option<&Event>) -> BTreeSet<PublicKey> {
    base.into_iter().flat_map(|event| event.tags.iter()).filter_map(key).collect()
}

impl Turn<'_> {
    /// The list as it is known here, with what is kept for later.
    pub(crate) fn local_follows(&self, who: &PublicKey) -> Result<Vec<FollowEntry>, Failure> {
        let store: &store::Store = &self.session.network.store;
        let known = store.known(who, Kind::ContactList, "")?;
        Ok(entries(&Change::of(&store.drafts(who)?).make(known.as_ref()).tags))
    }

    /// Changes the list, on relays or for later. `change` is told the list that it is first made to.
    pub(crate) async fn change_follows(
        &self,
        publish: Option<bool>,
        force: Option<bool>,
        mut change: impl FnMut(Option<&Event>) -> Change + Send,
    ) -> Result<Followed, Failure> {
        let who = self.me()?;
        let store = &self.session.network.store;
        if publish == Some(false) {
            let known = store.known(&who, Kind::ContactList, "")?;
            let change = change(known.as_ref());
            store.change_drafts(&who, |drafts| Change::of(drafts).then(change).keep(drafts))?;
            let follows = self.local_follows(&who)?;
            return Ok(Followed { count: follows.len() as u64, follows, result: profile::saved(&who) });
        }
        let earlier = Change::of(&store.drafts(&who)?);
        let mut whole = None;
        let target = Target::kind(Kind::ContactList, force);
        // What is meant is settled by the first version; to later ones the same is done.
        let edit = |base: Option<&Event>| {
            let whole = whole.get_or_insert_with(|| earlier.clone().then(change(base)));
            Ok(whole.make(base))
        };
        let replaced: Replaced = self.replace(target, edit).await?;
        store.change_drafts(&who, |drafts| Change::default().keep(drafts))?;
        let follows = entries(replaced.event.tags.iter());
        Ok(Followed { count: follows.len() as u64, follows, result: profile::published(replaced) })
    }
}

#[cfg(test)]
mod tests {
    use super::{Change, entries};
    use nostr::prelude::{Keys, Kind, Tag, Timestamp, UnsignedEvent};
    use rialto_relay::sign::sign;
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn a_change_leaves_everything_else_as_it_is() {
        let keys = Keys::generate();
        let [stays, goes, comes] = [(); 3].map(|()| Keys::generate().public_key());
        let tags = [
            Tag::parse(["p", &stays.to_hex(), "wss://a", "friend", "more"]).unwrap(),
            Tag::parse(["p", "not a key"]).unwrap(),
            Tag::parse(["p", &goes.to_hex()]).unwrap(),
            Tag::parse(["t", "topic"]).unwrap(),
        ];
        let unsigned =
            UnsignedEvent::new(keys.public_key(), Timestamp::from(1), Kind::ContactList, tags, "{\"wss://r\":{}}");
        let base = sign(&keys, unsigned);
        let change = Change {
            add: BTreeMap::from([(comes, vec![String::new(), "new".into()]), (stays, vec!["wss://b".into()])]),
            remove: BTreeSet::from([goes]),
        };
        let draft = change.make(Some(&base));
        let lists: Vec<Vec<String>> = draft.tags.iter().map(|tag| tag.as_slice().to_vec()).collect();
        let strings = |parts: &[&str]| parts.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(
            lists,
            [
                strings(&["p", &stays.to_hex(), "wss://b", "friend", "more"]),
                strings(&["p", "not a key"]),
                strings(&["t", "topic"]),
                strings(&["p", &comes.to_hex(), "", "new"]),
            ]
        );
        assert_eq!(draft.content, base.content);
        assert_eq!(entries(&draft.tags).len(), 2);
    }
}
