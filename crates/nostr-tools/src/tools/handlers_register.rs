//! `nostr_handlers_register`: an app that shows kinds of events.

use crate::compose::{filled, publication, tag};
use crate::failure::Failure;
use crate::result::SendResult;
use crate::shape::{choice, record};
use crate::tool::{self, About, Effect, Status, Turn};
use nostr::prelude::{Kind, Tag};
use serde_json::{Map, Value};

const HANDLER: Kind = Kind::Custom(31_990);

choice! {
    enum Entity {
        Npub = "npub",
        Nprofile = "nprofile",
        Note = "note",
        Nevent = "nevent",
        Naddr = "naddr",
        Nrelay = "nrelay",
    }
}

impl Entity {
    fn word(self) -> &'static str {
        match self {
            Entity::Npub => "npub",
            Entity::Nprofile => "nprofile",
            Entity::Note => "note",
            Entity::Nevent => "nevent",
            Entity::Naddr => "naddr",
            Entity::Nrelay => "nrelay",
        }
    }
}

record! {
    struct Link {
        /// Such as web or ios
        platform: String,
        /// URL with <bech32> in it
        url: String,
        /// For this only
        entity: Option<Entity>,
    }
}

publication! {
    struct Input {
        /// Its lasting name; the same name replaces
        identifier: String,
        /// Kinds that it shows
        kinds: Vec<u16>,
        /// How it opens
        links: Vec<Link>,
        /// Profile as JSON text (default: that of the key)
        content: Option<String>,
    }
}

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 23,
        name: "nostr_handlers_register",
        title: "Register an app",
        status: Status::Stable,
        nips: &[89],
        summary: "Publishes how an app that shows certain kinds of events is opened (kind 31990).",
        effect: Effect::Replaces,
        example: r#"{"identifier":"reader","kinds":[30023],"links":[{"platform":"web","url":"https://reader.example.com/a/<bech32>","entity":"naddr"}]}"#,
    };

    type Input = Input;
    type Output = SendResult;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<SendResult, Failure> {
        let mut tags = vec![tag("d", [filled(&input.identifier, "/identifier")?])];
        if input.kinds.is_empty() {
            return Err(Failure::invalid("say which kinds the app shows").at("/kinds"));
        }
        if input.links.is_empty() {
            return Err(Failure::invalid("say how the app is opened").at("/links"));
        }
        tags.extend(input.kinds.iter().map(|kind| tag("k", [&kind.to_string()])));
        for (index, link) in input.links.iter().enumerate() {
            tags.push(opened(link, &format!("/links/{index}"))?);
        }
        let content = input.content.as_deref().unwrap_or_default().trim();
        if !content.is_empty() && serde_json::from_str::<Map<String, Value>>(content).is_err() {
            return Err(Failure::invalid("`content` is a JSON object, like a profile").at("/content"));
        }
        turn.publish(HANDLER, tags, content.to_owned(), input.wishes()).await
    }
}

/// `[platform, url, entity]`
fn opened(link: &Link, pointer: &str) -> Result<Tag, Failure> {
    let platform = filled(&link.platform, &format!("{pointer}/platform"))?;
    // The platform is the name of the tag: `d`, `k` and the like would mean something else.
    if platform.len() < 2 {
        let words = "a platform is a word such as web, ios or android";
        return Err(Failure::invalid(words).at(format!("{pointer}/platform")));
    }
    let url = filled(&link.url, &format!("{pointer}/url"))?;
    if !url.contains("<bech32>") {
        let words = "`url` must have <bech32> where the event or profile is put in";
        return Err(Failure::invalid(words).at(format!("{pointer}/url")));
    }
    Ok(tag(platform, [url, link.entity.map_or("", Entity::word)]))
}
