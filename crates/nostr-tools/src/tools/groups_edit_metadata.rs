//! `nostr_groups_edit_metadata`: what a group is called, and who may do what in it.
//!
//! The event states everything about the group at once, and what it does not say is not so: without `private`, anybody may
//! read. So whatever the caller leaves out is taken from what the relay says now.

use crate::argument;
use crate::compose::group::{Group, METADATA, moderation};
use crate::compose::{Tags, tag};
use crate::failure::Failure;
use crate::network::{PATIENCE, Progress};
use crate::result::SendResult;
use crate::tool::{self, About, Effect, Status, Turn};
use nostr::prelude::{Event, Filter, Tag};

moderation! {
    struct Input {
        /// Name
        name: Option<String>,
        /// Description
        about: Option<String>,
        /// Picture URL
        picture: Option<String>,
        /// Anybody may read
        public: Option<bool>,
        /// Whoever asks is let in
        open: Option<bool>,
        /// Anybody may write
        unrestricted: Option<bool>,
        /// Anybody may see it
        visible: Option<bool>,
    }
}

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 43,
        name: "nostr_groups_edit_metadata",
        title: "Describe a group",
        status: Status::Stable,
        nips: &[29],
        summary: "Describes a group (kind 9002); what is not given stays as it is.",
        effect: Effect::Replaces,
        example: r#"{"group_id":"pizza","content":"","name":"Pizza lovers","about":"All about pizza","public":true,"open":true,"unrestricted":false,"visible":true}"#,
    };

    type Input = Input;
    type Output = SendResult;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<SendResult, Failure> {
        let group = Group::parse(&input.group_id)?;
        let known = known(&input, &group, turn).await?;
        let tags = input.metadata(known.as_ref())?;
        input.send(9002, tags, turn).await
    }
}

impl Input {
    /// The four properties: the words of their opposite, which is what is said, and of the property itself.
    fn flags(&self) -> [(&'static str, &'static str, Option<bool>); 4] {
        [
            ("private", "public", self.public),
            ("closed", "open", self.open),
            ("restricted", "unrestricted", self.unrestricted),
            ("hidden", "visible", self.visible),
        ]
    }

    /// All tags of the description.
    fn metadata(&self, known: Option<&Event>) -> Result<Vec<Tag>, Failure> {
        let mut tags = Tags::default();
        let before = |name: &str| known.and_then(|event| event.tags.iter().find(|tag| tag.kind() == name));
        let texts = [("name", &self.name), ("about", &self.about), ("picture", &self.picture)];
        for (name, value) in texts {
            match value {
                Some(value) => tags.add(tag(name, [value])),
                None => tags.add_all(before(name).cloned()),
            }
        }
        for (closed, open, value) in self.flags() {
            match (value, known) {
                (Some(false), _) => tags.add(tag(closed, [])),
                // The NIP says it by silence. Relays of earlier drafts take silence for "as before", and know this word.
                (Some(true), _) => tags.add(tag(open, [])),
                (None, Some(_)) => tags.add_all(before(closed).cloned()),
                (None, None) => {
                    let words = "what is so now cannot be read from the relay, and what is not said would be made open";
                    return Err(Failure::invalid(format!("{words}: say whether it is {open}")).at(format!("/{open}")));
                }
            }
        }
        let flags = self.flags();
        let is_ours = |tag: &&Tag| {
            let name = tag.kind();
            name == "d"
                || texts.iter().any(|(text, _)| *text == name)
                || flags.iter().any(|(closed, open, _)| *closed == name || *open == name)
        };
        // A parent, supported kinds, and whatever comes next.
        tags.add_all(known.iter().flat_map(|event| event.tags.iter()).filter(|tag| !is_ours(tag)).cloned());
        Ok(tags.into_vec())
    }
}

/// What the relay says about the group now; to whom it shows a hidden one, it must know who asks.
async fn known(input: &Input, group: &Group, turn: &Turn<'_>) -> Result<Option<Event>, Failure> {
    let signer = turn.session.keyring.signer().await?;
    let chosen = argument::relays(input.to_relays.as_deref().unwrap_or_default(), "/to_relays")?;
    let places = if chosen.is_empty() { group.places(turn)? } else { chosen };
    let filter = Filter::new().kind(METADATA).identifier(&group.id);
    let network = &turn.session.network;
    let answers = network.fetch_as(&signer, &[filter], &places, PATIENCE, &Progress::of(turn)).await?;
    Ok(answers.heard()?.into_iter().next())
}
