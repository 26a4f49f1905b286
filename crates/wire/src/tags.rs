//! Tags, read and written.

use nostr::prelude::{Tag, Tags};

/// The first value of the first tag with this name.
pub(crate) fn value<'a>(tags: &'a Tags, name: &str) -> Option<&'a str> {
    tags.iter().find(|tag| tag.kind() == name).and_then(Tag::content)
}

/// Mints that are looked at, and the longest address of one.
const MAX_MINTS: usize = 16;
const MAX_MINT: usize = 512;

/// Addresses of mints that a provider names, as far as they can be some.
pub(crate) fn mints<'a>(named: impl Iterator<Item = &'a str>) -> Vec<String> {
    let is_likely = |mint: &&str| mint.len() <= MAX_MINT && mint.bytes().all(|byte| byte.is_ascii_graphic());
    named.filter(is_likely).take(MAX_MINTS).map(ToOwned::to_owned).collect()
}

pub(crate) fn tag<const N: usize>(name: &str, values: [&str; N]) -> Tag {
    Tag::custom(name, values)
}
