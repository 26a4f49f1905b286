//! Profiles (kind 0): what we show of them, and how one is changed without losing the fields that we do not know.

use crate::failure::Failure;
use crate::replace::{Draft, Replaced};
use crate::result::PublishResult;
use crate::shape::record;
use nostr::prelude::{Event, PublicKey};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

record! {
    /// A profile.
    struct ProfileMetadata {
        /// The short name
        name: Option<String>,
        /// The name to show
        display_name: Option<String>,
        /// About the person
        about: Option<String>,
        /// A picture's address
        picture: Option<String>,
        /// A wide picture's address
        banner: Option<String>,
        /// The name on the web
        nip05: Option<String>,
        /// LNURL
        lud06: Option<String>,
        /// Lightning address
        lud16: Option<String>,
        /// A website
        website: Option<String>,
    }
}

/// The content of a profile, if it is one.
pub(crate) fn content(event: &Event) -> Option<Map<String, Value>> {
    match serde_json::from_str(&event.content) {
        Ok(Value::Object(members)) => Some(members),
        _ if event.content.trim().is_empty() => Some(Map::new()),
        _ => None,
    }
}

/// The fields that everybody knows, as far as they are texts.
pub(crate) fn known_fields(members: &Map<String, Value>) -> ProfileMetadata {
    let text = |name: &str| members.get(name).and_then(Value::as_str).map(ToOwned::to_owned);
    ProfileMetadata {
        name: text("name"),
        display_name: text("display_name"),
        about: text("about"),
        picture: text("picture"),
        banner: text("banner"),
        nip05: text("nip05"),
        lud06: text("lud06"),
        lud16: text("lud16"),
        website: text("website"),
    }
}

/// Puts fields into a profile; null takes one away.
pub(crate) fn merge(members: &mut Map<String, Value>, fields: &Map<String, Value>) {
    for (name, value) in fields {
        match value {
            Value::Null => drop(members.remove(name)),
            value => drop(members.insert(name.clone(), value.clone())),
        }
    }
}

/// The change as it is made to one version.
pub(crate) fn edit(base: Option<&Event>, fields: &Map<String, Value>, force: bool) -> Result<Draft, Failure> {
    let mut draft = Draft::of(base);
    let before = base.map_or_else(|| Some(Map::new()), content);
    let Some(before) = before.or_else(|| force.then(Map::new)) else {
        let words = "the published profile is not JSON; set `force` to begin a new one";
        return Err(Failure::invalid(words).at("/force"));
    };
    let mut after = before.clone();
    merge(&mut after, fields);
    // A profile that has it all is left as it is written.
    if after != before || base.is_none() {
        draft.content = Value::Object(after).to_string();
    }
    Ok(draft)
}

/// How it went, for tools that save and publish.
pub(crate) fn published(replaced: Replaced) -> PublishResult {
    PublishResult {
        saved: true,
        published: true,
        success_relays: replaced.sent.success,
        failed_relays: replaced.sent.failed,
        event_id: Some(replaced.event.id.to_hex()),
        pubkey: Some(replaced.event.pubkey.to_hex()),
    }
}

/// That it is kept for later.
pub(crate) fn saved(who: &PublicKey) -> PublishResult {
    PublishResult {
        saved: true,
        published: false,
        success_relays: Vec::new(),
        failed_relays: BTreeMap::new(),
        event_id: None,
        pubkey: Some(who.to_hex()),
    }
}
