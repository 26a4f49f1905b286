//! `nostr_groups_get`: what a group is, and who is in it.

use crate::compose::group::Group;
use crate::failure::Failure;
use crate::network::{Route, newest_of, patience};
use crate::shape::record;
use crate::tool::{self, About, Effect, Status, Turn};
use nostr::prelude::{Event, Filter, Kind};

record! {
    struct Input {
        /// The group: host'id, naddr1…, or an id on the relays in use
        group_id: String,
        /// Seconds to wait
        timeout_secs: Option<u64>,
    }
}

record! {
    struct Admin {
        /// Who, in hex
        pubkey: String,
        /// As what
        roles: Vec<String>,
    }
}

record! {
    struct Output {
        /// The group's id
        group_id: String,
        /// Its name
        name: Option<String>,
        /// What it is about
        about: Option<String>,
        /// A picture's address
        picture: Option<String>,
        /// Whether only members can read
        private: bool,
        /// Whether joining needs an invitation
        closed: bool,
        /// Who runs it
        admins: Vec<Admin>,
        /// Members as far as the relay tells, in hex
        members: Vec<String>,
        /// Who signed this: the relay's key, in hex
        signed_by: String,
    }
}

const METADATA: u16 = 39_000;
const ADMINS: u16 = 39_001;
const MEMBERS: u16 = 39_002;

/// A relay could name any number.
const MAX_PEOPLE: usize = 1_000;

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 110,
        name: "nostr_groups_get",
        title: "Show a group",
        status: Status::Experimental,
        nips: &[29],
        summary: "Fetches what a relay-based group is: name, flags, admins and members.",
        effect: Effect::ReadsThere,
        example: r#"{"group_id":"relay.example.com'cats"}"#,
    };

    type Input = Input;
    type Output = Output;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<Output, Failure> {
        let group = Group::parse(&input.group_id)?;
        let places = group.places(turn)?;
        let kinds = [METADATA, ADMINS, MEMBERS].map(Kind::from);
        let filter = Filter::new().kinds(kinds).identifier(&group.id);
        let found = turn.fetch(&[filter], Route::Only(&places), patience(input.timeout_secs)).await?;
        let of = |kind: u16| found.iter().filter(move |event| event.kind.as_u16() == kind);
        let missing = || Failure::not_found("no relay that was asked has this group").at("/group_id");
        let about = newest_of(of(METADATA)).ok_or_else(missing)?;
        // The relay signs all of it; what others have put there is not about this group.
        let same = |kind: u16| newest_of(of(kind).filter(|event| event.pubkey == about.pubkey));
        let text = |name: &str| {
            about.tags.iter().find(|tag| tag.kind() == name).and_then(|tag| tag.content()).map(ToOwned::to_owned)
        };
        let has = |name: &str| about.tags.iter().any(|tag| tag.kind() == name);
        let admin = |tag: &[String]| {
            Some(Admin { pubkey: tag.get(1)?.clone(), roles: tag.get(2..).unwrap_or_default().to_vec() })
        };
        Ok(Output {
            name: text("name"),
            about: text("about"),
            picture: text("picture"),
            private: has("private"),
            closed: has("closed"),
            admins: same(ADMINS).map(people).unwrap_or_default().into_iter().filter_map(admin).collect(),
            members: same(MEMBERS)
                .map(people)
                .unwrap_or_default()
                .iter()
                .filter_map(|tag| tag.get(1).cloned())
                .collect(),
            signed_by: about.pubkey.to_hex(),
            group_id: group.id,
        })
    }
}

fn people(event: &Event) -> Vec<&[String]> {
    event.tags.iter().filter(|tag| tag.kind() == "p").take(MAX_PEOPLE).map(|tag| tag.as_slice()).collect()
}
