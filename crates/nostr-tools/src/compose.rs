//! What the tools that write events have in common: the tags by which events name other events, people, groups and topics.
//!
//! Tags are complete where the NIPs leave it open, because whoever reads the event later cannot ask back: authors stand beside
//! ids, relays where the event may be found beside both, and what has an address is named by it. What the caller does not
//! say is looked up; what cannot be looked up is left out, unless the event would make no sense without it.

pub(crate) mod address;
pub(crate) mod comment;
pub(crate) mod group;
pub(crate) mod note;
pub(crate) mod target;
pub(crate) mod text;

use crate::failure::Failure;
use nostr::prelude::{Kind, RelayUrl, Tag};

/// The input of a tool that publishes: its own members, and those that all of them have.
macro_rules! publication {
    (struct $name:ident { $($(#[doc = $doc:literal])+ $field:ident: $type:ty,)* }) => {
        $crate::shape::record! {
            struct $name {
                $($(#[doc = $doc])+ $field: $type,)*
                /// Bits of work (NIP-13)
                pow: Option<u8>,
                /// Publish only there
                to_relays: Option<Vec<String>>,
            }
        }

        impl $name {
            fn wishes(&self) -> $crate::publish::Wishes {
                $crate::publish::Wishes { pow: self.pow, to_relays: self.to_relays.clone() }
            }
        }
    };
}

pub(crate) use publication;

/// Tags in order. What is named twice stands once.
#[derive(Debug, Default)]
pub(crate) struct Tags(Vec<Tag>);

impl Tags {
    /// Adds a tag, unless there is one of the same name and value.
    pub(crate) fn add(&mut self, tag: Tag) {
        if !self.0.iter().any(|known| known.as_slice().iter().take(2).eq(tag.as_slice().iter().take(2))) {
            self.0.push(tag);
        }
    }

    pub(crate) fn add_all(&mut self, tags: impl IntoIterator<Item = Tag>) {
        tags.into_iter().for_each(|tag| self.add(tag));
    }

    pub(crate) fn into_vec(self) -> Vec<Tag> {
        self.0
    }
}

/// A tag. Empty values at its end say nothing, apart from the first.
pub(crate) fn tag<const N: usize>(name: &str, values: [&str; N]) -> Tag {
    let end = values.iter().rposition(|value| !value.is_empty()).map_or(1, |last| last + 1);
    Tag::custom(name, values.into_iter().take(end))
}

/// How a relay is written in a tag.
pub(crate) fn hint(relay: Option<&RelayUrl>) -> &str {
    relay.map_or("", RelayUrl::as_str_without_trailing_slash)
}

/// Whether only the newest event of this kind counts, by author or by author and `d`.
pub(crate) fn has_address(kind: Kind) -> bool {
    matches!(kind.as_u16(), 0 | 3 | 10_000..=19_999) || kind.is_addressable()
}

/// A value that must not be empty; spaces around it go.
pub(crate) fn filled<'a>(text: &'a str, pointer: &str) -> Result<&'a str, Failure> {
    match text.trim() {
        "" => Err(Failure::invalid(format!("`{}` must not be empty", pointer.trim_start_matches('/'))).at(pointer)),
        text => Ok(text),
    }
}

/// Topics, as `t` tags: in small letters and without `#`, because they are compared letter by letter.
pub(crate) fn topics(hashtags: &[String], pointer: &str) -> Result<Vec<Tag>, Failure> {
    let topic = |(index, text): (usize, &String)| {
        let pointer = format!("{pointer}/{index}");
        let bare = filled(text.trim().trim_start_matches('#'), &pointer)?;
        Ok(tag("t", [&bare.to_lowercase()]))
    };
    hashtags.iter().enumerate().map(topic).collect()
}

#[cfg(test)]
mod tests {
    use super::{Tags, has_address, tag, topics};
    use nostr::prelude::{Kind, Tag};

    #[test]
    fn empty_values_at_the_end_go_but_for_the_first() {
        let cases = [
            (tag("e", ["id", "", "author"]), vec!["e", "id", "", "author"]),
            (tag("p", ["key", ""]), vec!["p", "key"]),
            (tag("d", [""]), vec!["d", ""]),
            (tag("private", []), vec!["private"]),
        ];
        for (tag, expected) in cases {
            assert_eq!(tag.as_slice(), expected);
        }
    }

    #[test]
    fn what_is_named_twice_stands_once() {
        let mut tags = Tags::default();
        tags.add_all([tag("p", ["a", "wss://x"]), tag("p", ["a"]), tag("e", ["a"]), tag("p", ["b"])]);
        let names: Vec<String> = tags.into_vec().iter().map(|tag: &Tag| tag.as_slice().join(" ")).collect();
        assert_eq!(names, ["p a wss://x", "e a", "p b"]);
    }

    #[test]
    fn channel_metadata_is_an_ordinary_event() {
        let addressed = [0, 3, 10_002, 30_023].map(Kind::from_u16);
        let ordinary = [1, 7, 41, 1111, 9021, 20_001].map(Kind::from_u16);
        assert!(addressed.into_iter().all(has_address) && !ordinary.into_iter().any(has_address));
    }

    #[test]
    fn topics_are_small_and_bare() {
        let tags = topics(&["#Nostr".into(), " rust ".into()], "/hashtags").unwrap();
        assert_eq!(tags, [tag("t", ["nostr"]), tag("t", ["rust"])]);
        assert!(topics(&["#".into()], "/hashtags").is_err());
    }
}
