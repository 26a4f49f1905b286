//! Comments on anything but notes (NIP-22): large letters name what the discussion is about, small ones what is answered.

use crate::compose::target::Target;
use crate::compose::text::{self, person};
use crate::compose::{Tags, tag};
use crate::failure::Failure;
use nostr::prelude::{Event, Kind, PublicKey, Tag};

/// What a discussion is about.
#[derive(Debug)]
pub(crate) enum Root {
    Event(Target),
    /// As the comment that is answered has it: that may be a web page, or anything else that is no event.
    Inherited(Vec<Tag>),
}

impl Root {
    /// What a comment says that it is about.
    pub(crate) fn of(comment: &Event) -> Option<Self> {
        let named = |names: &[&str]| comment.tags.iter().find(|tag| names.contains(&tag.kind())).cloned();
        let (scope, kind) = (named(&["E", "A", "I"])?, named(&["K"])?);
        Some(Root::Inherited([Some(scope), Some(kind), named(&["P"])].into_iter().flatten().collect()))
    }
}

/// The tags of a comment. `pointer` is where the author of an event that is nowhere to be found can be given.
pub(crate) fn comment(
    root: &Root,
    parent: &Target,
    pointer: &str,
    mentioned: &[PublicKey],
    content: &str,
) -> Result<Tags, Failure> {
    let mut tags = Tags::default();
    match root {
        Root::Event(root) => tags.add_all(scope(root, ["A", "E", "K", "P"], pointer)?),
        Root::Inherited(root) => tags.add_all(root.iter().cloned()),
    }
    tags.add_all(scope(parent, ["a", "e", "k", "p"], pointer)?);
    // The version of an article that was read.
    tags.add_all(parent.event_tag("e"));
    tags.add_all(mentioned.iter().map(|key| person(key, None)));
    text::mention(&mut tags, content);
    Ok(tags)
}

/// Address or id, kind, author; the names are in this order.
fn scope(target: &Target, [address, event, kind, author]: [&str; 4], pointer: &str) -> Result<Vec<Tag>, Failure> {
    let missing = || Failure::not_found("no relay that was asked has this event; say who wrote it").at(pointer);
    let what = target.address_tag(address).or_else(|| target.event_tag(event));
    let kind = tag(kind, [&target.kind.unwrap_or(Kind::Comment).to_string()]);
    Ok(what.into_iter().chain([kind, target.author_tag(author).ok_or_else(missing)?]).collect())
}
