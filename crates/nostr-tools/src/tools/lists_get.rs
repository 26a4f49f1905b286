//! `nostr_lists_get`: what is in a list.

use crate::argument;
use crate::failure::Failure;
use crate::list::{Name, private_items};
use crate::network::{Route, patience};
use crate::shape::record;
use crate::tool::{self, About, Effect, Status, Turn};
use nostr::prelude::{Event, Filter, Tag};

record! {
    struct Input {
        /// Which list
        list: Name,
        /// The name of a set (d tag)
        identifier: Option<String>,
        /// Whose (npub or hex; default the active key)
        pubkey: Option<String>,
        /// Decrypt the private items of an own list (default false)
        include_private: Option<bool>,
        /// Seconds to wait
        timeout_secs: Option<u64>,
    }
}

record! {
    struct Output {
        /// Whose, in hex
        pubkey: String,
        /// Whether there is such a list
        found: bool,
        /// The items that everybody sees
        items: Vec<Vec<String>>,
        /// The items that only the owner sees
        private_items: Option<Vec<Vec<String>>>,
        /// How many in all
        count: u64,
    }
}

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 108,
        name: "nostr_lists_get",
        title: "Get a list",
        status: Status::Experimental,
        nips: &[51],
        summary: "Fetches a list (mute, pinned, bookmarks, sets and others) of anybody from relays.",
        effect: Effect::ReadsThere,
        example: r#"{"list":"bookmarks"}"#,
    };

    type Input = Input;
    type Output = Output;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<Output, Failure> {
        let identifier = input.list.identifier(input.identifier.as_deref())?;
        let who = match &input.pubkey {
            Some(text) => argument::public_key(text, "/pubkey")?,
            None => turn.me()?,
        };
        let mut filter = Filter::new().author(who).kind(input.list.kind()).limit(1);
        if input.list.kind().is_addressable() {
            filter = filter.identifier(identifier);
        }
        let found = turn.fetch(&[filter], Route::Usual, patience(input.timeout_secs)).await?;
        let event = found.first();
        let tags = |event: &Event| event.tags.iter().filter(|tag| tag.kind() != "d").map(parts).collect();
        let items: Vec<Vec<String>> = event.map(tags).unwrap_or_default();
        let private_items = match event.filter(|_| input.include_private.unwrap_or(false)) {
            Some(event) => Some(private(turn, event).await?),
            None => None,
        };
        let count = items.len() + private_items.as_ref().map_or(0, Vec::len);
        Ok(Output { pubkey: who.to_hex(), found: event.is_some(), items, private_items, count: count as u64 })
    }
}

fn parts(tag: &Tag) -> Vec<String> {
    tag.as_slice().to_vec()
}

async fn private(turn: &Turn<'_>, event: &Event) -> Result<Vec<Vec<String>>, Failure> {
    if event.content.trim().is_empty() {
        return Ok(Vec::new());
    }
    let signer = turn.session.keyring.signer().await?;
    if signer.public_key() != event.pubkey {
        return Err(Failure::invalid("private items are for the owner of the list").at("/include_private"));
    }
    Ok(private_items(event, &signer).await?.iter().map(parts).collect())
}
