//! `nostr_metadata_set`: one's own profile.

use crate::argument;
use crate::failure::Failure;
use crate::profile;
use crate::replace::Target;
use crate::result::PublishResult;
use crate::shape::record;
use crate::tool::{self, About, Effect, Status, Turn};
use nostr::nips::nip05::Nip05Address;
use nostr::prelude::{Event, Kind};
use nostr::types::url::Url;
use serde_json::{Map, Value};

record! {
    struct Input {
        /// The short name
        name: Option<String>,
        /// The name to show
        display_name: Option<String>,
        /// About the person
        about: Option<String>,
        /// A picture's address (https://…)
        picture: Option<String>,
        /// A wide picture's address
        banner: Option<String>,
        /// The name on the web (name@domain)
        nip05: Option<String>,
        /// LNURL
        lud06: Option<String>,
        /// Lightning address (name@domain)
        lud16: Option<String>,
        /// A website
        website: Option<String>,
        /// Publish now (default true)
        publish: Option<bool>,
        /// Publish even if the present profile cannot be read, and lose it (default false)
        force: Option<bool>,
    }
}

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 50,
        name: "nostr_metadata_set",
        title: "Change the profile",
        status: Status::Stable,
        nips: &[1],
        summary: "Changes the given fields of the active key's profile; all others stay. An empty text removes a field.",
        effect: Effect::Replaces,
        example: r#"{"name":"alice","about":"Hello"}"#,
    };

    type Input = Input;
    type Output = PublishResult;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<PublishResult, Failure> {
        let (publish, force) = (input.publish.unwrap_or(true), input.force);
        let new = fields(input)?;
        let who = turn.me()?;
        let store = &turn.session.network.store;
        if !publish {
            store.change_drafts(&who, |drafts| drafts.profile.extend(new))?;
            return Ok(profile::saved(&who));
        }
        let mut all = store.drafts(&who)?.profile;
        all.extend(new);
        if all.is_empty() {
            return Err(Failure::invalid("nothing is to be changed: name at least one field"));
        }
        let target = Target::kind(Kind::Metadata, force);
        let replaced =
            turn.replace(target, |base: Option<&Event>| profile::edit(base, &all, force.unwrap_or(false))).await?;
        store.change_drafts(&who, |drafts| drafts.profile.clear())?;
        Ok(profile::published(replaced))
    }
}

/// The fields that were given, once it is clear that they can be what they should be.
fn fields(input: Input) -> Result<Map<String, Value>, Failure> {
    let Input { name, display_name, about, picture, banner, nip05, lud06, lud16, website, .. } = input;
    let mut fields = Map::new();
    let all = [
        ("name", name),
        ("display_name", display_name),
        ("about", about),
        ("picture", picture),
        ("banner", banner),
        ("nip05", nip05),
        ("lud06", lud06),
        ("lud16", lud16),
        ("website", website),
    ];
    for (field, value) in all {
        let Some(value) = value else { continue };
        if value.trim().is_empty() {
            fields.insert(field.to_owned(), Value::Null);
            continue;
        }
        let is_right = match field {
            "picture" | "banner" | "website" => {
                Url::parse(&value).is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
            }
            "nip05" => Nip05Address::parse(&value).is_ok(),
            "lud16" => {
                value.split_once('@').is_some_and(|(name, domain)| !name.is_empty() && domain.contains(['.', ':']))
            }
            "lud06" => argument::bare(&value).to_lowercase().starts_with("lnurl1"),
            _ => true,
        };
        if !is_right {
            let words = match field {
                "nip05" | "lud16" => format!("`{field}` must be name@domain"),
                "lud06" => "`lud06` must be lnurl1…".to_owned(),
                _ => format!("`{field}` must be a web address (https://…)"),
            };
            return Err(Failure::invalid(words).at(format!("/{field}")));
        }
        fields.insert(field.to_owned(), value.trim().into());
    }
    Ok(fields)
}
