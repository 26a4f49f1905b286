//! Tags, read and written.

use nostr::prelude::{Tag, Tags};

/// The first value of the first tag with this name.
pub(crate) fn value<'a>(tags: &'a Tags, name: &str) -> Option<&'a str> {
    tags.iter().find(|tag| tag.kind() == name).and_then(Tag::content)
}

pub(crate) fn tag<const N: usize>(name: &str, values: [&str; N]) -> Tag {
    Tag::custom(name, values)
}
