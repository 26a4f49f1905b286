//! Lists (NIP-51): which kinds they are, and what is in them.

use crate::argument;
use crate::failure::Failure;
use crate::shape::choice;
use nostr::prelude::{Kind, Tag};

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
pub(crate) fn items(given: &[Vec<String>], pointer: &str) -> Result<Vec<Tag>, Failure> {
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
pub(crate) fn is_same(one: &Tag, other: &Tag) -> bool {
    one.kind() == other.kind() && one.content() == other.content()
}
