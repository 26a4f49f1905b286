//! `nostr_lists_edit`: what is in a list of one's own.

use crate::failure::Failure;
use crate::list::{Changes, ListEdit, Name};
use crate::profile;
use crate::replace::Target;
use crate::result::PublishResult;
use crate::shape::record;
use crate::tool::{self, About, Effect, Status, Turn};

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
        /// Items to add that only the owner can read (NIP-44)
        add_private: Option<Vec<Vec<String>>>,
        /// Such items to take away
        remove_private: Option<Vec<Vec<String>>>,
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
        summary: "Adds to and removes from a list of the active key (mute, bookmarks, sets): items that everybody sees, and private ones. All else stays.",
        effect: Effect::Replaces,
        example: r#"{"list":"bookmarks","add":[["t","nostr"]]}"#,
    };

    type Input = Input;
    type Output = PublishResult;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<PublishResult, Failure> {
        let identifier = input.list.identifier(input.identifier.as_deref())?;
        let public = Changes::read(input.add.as_deref(), input.remove.as_deref(), ["/add", "/remove"])?;
        let private = Changes::read(
            input.add_private.as_deref(),
            input.remove_private.as_deref(),
            ["/add_private", "/remove_private"],
        )?;
        if public.is_empty() && private.is_empty() {
            return Err(Failure::invalid("nothing is to be changed: give `add` or `remove`").at("/add"));
        }
        let signer = turn.session.keyring.signer().await?;
        let target = Target { identifier, ..Target::kind(input.list.kind(), input.force) };
        let edit = ListEdit { signer, public, private };
        Ok(profile::published(turn.replace(target, edit).await?))
    }
}
