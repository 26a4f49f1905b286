//! `nostr_lists_edit`: what is in a list of one's own.

use crate::failure::Failure;
use crate::list::{self, Name};
use crate::profile;
use crate::replace::{Draft, Target};
use crate::result::PublishResult;
use crate::shape::record;
use crate::tool::{self, About, Effect, Status, Turn};
use nostr::prelude::Event;

record! {
    struct Input {
        /// Which list
        list: Name,
        /// The name of a set (d tag)
        identifier: Option<String>,
        /// Items to add, such as ["p", "npub1…"], ["e", "note1…"], ["t", "topic"], ["word", "spam"]
        add: Option<Vec<Vec<String>>>,
        /// Items to take away
        remove: Option<Vec<Vec<String>>>,
        /// Publish even if the present list cannot be read, and lose it (default false)
        force: Option<bool>,
    }
}

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 109,
        name: "nostr_lists_edit",
        title: "Edit a list",
        status: Status::Experimental,
        nips: &[51],
        summary: "Adds to and removes from a public list of the active key (mute, bookmarks, sets). All else stays, private items too.",
        effect: Effect::Replaces,
        example: r#"{"list":"bookmarks","add":[["t","nostr"]]}"#,
    };

    type Input = Input;
    type Output = PublishResult;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<PublishResult, Failure> {
        let identifier = input.list.identifier(input.identifier.as_deref())?;
        let add = list::items(input.add.as_deref().unwrap_or_default(), "/add")?;
        let remove = list::items(input.remove.as_deref().unwrap_or_default(), "/remove")?;
        if add.is_empty() && remove.is_empty() {
            return Err(Failure::invalid("nothing is to be changed: give `add` or `remove`").at("/add"));
        }
        let edit = |base: Option<&Event>| {
            let mut draft = Draft::of(base);
            draft.tags.retain(|tag| !remove.iter().any(|gone| list::is_same(gone, tag)));
            for item in &add {
                if !draft.tags.iter().any(|tag| list::is_same(tag, item)) {
                    draft.tags.push(item.clone());
                }
            }
            Ok(draft)
        };
        let target = Target { identifier, ..Target::kind(input.list.kind(), input.force) };
        Ok(profile::published(turn.replace(target, edit).await?))
    }
}
