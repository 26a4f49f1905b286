//! Comments on anything but notes (NIP-22): large letters name what the discussion is about, small ones what is answered.

use crate::compose::target::Target;
use crate::compose::text::{self, person};
use crate::compose::{Tags, tag};
use crate::failure::Failure;
use nostr::prelude::{Event, Kind, PublicKey, Tag};

/// The tags that say what a discussion is about. `pointer` is where the author of an event that nobody has can be given.
pub(crate) fn about(root: &Target, pointer: &str) -> Result<Vec<Tag>, Failure> {
    scope(root, ["A", "E", "K", "P"], pointer)
}

/// The same, as a comment has them: that may be about a web page, or anything else that is no event.
pub(crate) fn inherited(comment: &Event) -> Option<Vec<Tag>> {
    let named = |name: &str| comment.tags.iter().find(|tag| tag.kind() == name).cloned();
    // Some name an article by its address and by the id of the version that they read.
    let scope: Vec<Tag> = ["A", "E", "I"].into_iter().filter_map(named).collect();
    if scope.is_empty() {
        return None;
    }
    Some(scope.into_iter().chain([named("K")?]).chain(named("P")).collect())
}

/// All tags of a comment.
pub(crate) fn comment(
    about: Vec<Tag>,
    parent: &Target,
    pointer: &str,
    mentioned: &[PublicKey],
    content: &str,
) -> Result<Tags, Failure> {
    let mut tags = Tags::default();
    tags.add_all(about);
    tags.add_all(scope(parent, ["a", "e", "k", "p"], pointer)?);
    // The version of an article that was read.
    tags.add_all(parent.event_tag("e"));
    tags.add_all(mentioned.iter().map(|key| person(key, None)));
    text::mention(&mut tags, content);
    Ok(tags)
}

/// Address or id, kind, author; the names are in this order.
fn scope(target: &Target, [address, event, kind, author]: [&str; 4], pointer: &str) -> Result<Vec<Tag>, Failure> {
    let missing = || target.missing("no relay that was asked has this event; say who wrote it", pointer);
    let what = target.address_tag(address).or_else(|| target.event_tag(event));
    let kind = tag(kind, [&target.kind.unwrap_or(Kind::Comment).to_string()]);
    Ok(what.into_iter().chain([kind, target.author_tag(author).ok_or_else(missing)?]).collect())
}
