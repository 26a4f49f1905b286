//! Lists (NIP-51): which kinds they are, and what is in them.

use crate::argument;
use crate::failure::Failure;
use crate::replace::{Draft, Edit, Making};
use crate::shape::choice;
use crate::signer::Signer;
use nostr::nips::nip04;
use nostr::prelude::{Event, Kind, Tag};

choice! {
    enum Name {
        Mute = "mute",
        Pinned = "pinned",
        Bookmarks = "bookmarks",
        BlockedRelays = "blocked_relays",
        SearchRelays = "search_relays",
        Interests = "interests",
        FollowSet = "follow_set",
        RelaySet = "relay_set",
        BookmarkSet = "bookmark_set",
        ArticleSet = "article_set",
        InterestSet = "interest_set",
    }
}

impl Name {
    pub(crate) fn kind(self) -> Kind {
        Kind::from(match self {
            Name::Mute => 10_000,
            Name::Pinned => 10_001,
            Name::Bookmarks => 10_003,
            Name::BlockedRelays => 10_006,
            Name::SearchRelays => 10_007,
            Name::Interests => 10_015,
            Name::FollowSet => 30_000,
            Name::RelaySet => 30_002,
            Name::BookmarkSet => 30_003,
            Name::ArticleSet => 30_004,
            Name::InterestSet => 30_015,
        })
    }

    /// The `d` tag, which sets need and other lists do not have.
    pub(crate) fn identifier(self, given: Option<&str>) -> Result<String, Failure> {
        match (self.kind().is_addressable(), given) {
            (true, Some(identifier)) => Ok(identifier.to_owned()),
            (true, None) => Err(Failure::invalid("a set needs an `identifier`").at("/identifier")),
            (false, None) => Ok(String::new()),
            (false, Some(_)) => Err(Failure::invalid("only sets have an `identifier`").at("/identifier")),
        }
    }
}

/// What may be in a list: people, events, addresses, topics, words and relays, written in any form.
fn items(given: &[Vec<String>], pointer: &str) -> Result<Vec<Tag>, Failure> {
    let read = |(index, parts): (usize, &Vec<String>)| {
        let place = format!("{pointer}/{index}");
        let [name, value, rest @ ..] = parts.as_slice() else {
            return Err(Failure::invalid("an item is a name and a value, such as [\"p\", \"npub1…\"]").at(place));
        };
        let value = match name.as_str() {
            "p" => argument::public_key(value, &format!("{place}/1"))?.to_hex(),
            "e" => argument::event_id(value, &format!("{place}/1"))?.to_hex(),
            "r" | "relay" => argument::relay(value, &format!("{place}/1"))?.as_str_without_trailing_slash().to_owned(),
            "t" => value.trim().trim_start_matches('#').to_lowercase(),
            "word" => value.to_lowercase(),
            "a" => value.clone(),
            _ => return Err(Failure::invalid("an item is p, e, a, t, word, r or relay").at(format!("{place}/0"))),
        };
        let parts = [name.clone(), value].into_iter().chain(rest.iter().cloned());
        Tag::parse(parts).map_err(|_| Failure::invalid("not a tag").at(place))
    };
    given.iter().enumerate().map(read).collect()
}

/// Whether two tags name the same thing.
fn is_same(one: &Tag, other: &Tag) -> bool {
    one.kind() == other.kind() && one.content() == other.content()
}

/// What is to be added and taken away.
#[derive(Debug, Clone, Default)]
pub(crate) struct Changes {
    pub(crate) add: Vec<Tag>,
    pub(crate) remove: Vec<Tag>,
}

impl Changes {
    pub(crate) fn read(
        add: Option<&[Vec<String>]>,
        remove: Option<&[Vec<String>]>,
        [add_at, remove_at]: [&str; 2],
    ) -> Result<Self, Failure> {
        let add = items(add.unwrap_or_default(), add_at)?;
        Ok(Self { add, remove: items(remove.unwrap_or_default(), remove_at)? })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.add.is_empty() && self.remove.is_empty()
    }

    /// Makes them; what is there already is not added again.
    fn apply(&self, tags: &mut Vec<Tag>) {
        tags.retain(|tag| !self.remove.iter().any(|gone| is_same(gone, tag)));
        for item in &self.add {
            if !tags.iter().any(|tag| is_same(tag, item)) {
                tags.push(item.clone());
            }
        }
    }
}

/// Changes to what everybody sees and to what only the owner sees.
pub(crate) struct ListEdit {
    pub(crate) signer: Signer,
    pub(crate) public: Changes,
    pub(crate) private: Changes,
}

impl Edit for ListEdit {
    fn make<'a>(&'a mut self, base: Option<&'a Event>) -> Making<'a> {
        Box::pin(async move {
            let mut draft = Draft::of(base);
            self.public.apply(&mut draft.tags);
            if self.private.is_empty() {
                return Ok(draft);
            }
            let before = match base {
                Some(event) => private_items(event, &self.signer).await?,
                None => Vec::new(),
            };
            let mut after = before.clone();
            self.private.apply(&mut after);
            // What is encrypted again is never the same, and would look like a change.
            if after != before {
                draft.content = match after.is_empty() {
                    true => String::new(),
                    false => self.signer.encrypt(&self.signer.public_key(), &written(&after)).await?,
                };
            }
            Ok(draft)
        })
    }
}

fn written(tags: &[Tag]) -> String {
    let items: Vec<&[String]> = tags.iter().map(Tag::as_slice).collect();
    serde_json::json!(items).to_string()
}

/// What only the owner of a list sees. A list that cannot be read is an error: it must not be taken for an empty one.
pub(crate) async fn private_items(event: &Event, signer: &Signer) -> Result<Vec<Tag>, Failure> {
    let sealed = event.content.trim();
    if sealed.is_empty() {
        return Ok(Vec::new());
    }
    let unreadable = || Failure::internal("the private items of the list cannot be read, so they are left alone");
    let text = match (sealed.contains("?iv="), signer) {
        (false, _) => signer.decrypt(&event.pubkey, sealed).await.map_err(|_| unreadable())?,
        // As it was done before NIP-44; it is not written any more.
        (true, Signer::Local(keys)) => {
            nip04::decrypt(keys.secret_key(), &event.pubkey, sealed).map_err(|_| unreadable())?
        }
        (true, Signer::Remote(remote)) => remote.ask("nip04_decrypt", &[&event.pubkey.to_hex(), sealed]).await?,
    };
    let items: Vec<Vec<String>> = serde_json::from_str(&text).map_err(|_| unreadable())?;
    items.into_iter().map(|parts| Tag::parse(parts).map_err(|_| unreadable())).collect()
}
