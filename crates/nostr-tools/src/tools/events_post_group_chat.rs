//! `nostr_events_post_group_chat`: a message in a group.

use crate::argument;
use crate::compose::address::{Name, Reference};
use crate::compose::group::Group;
use crate::compose::{self, Tags, hint, publication, tag, text};
use crate::failure::Failure;
use crate::result::SendResult;
use crate::tool::{self, About, Effect, Status, Turn};
use nostr::nips::nip19::{Nip19Event, ToBech32};
use nostr::prelude::{Kind, PublicKey, RelayUrl};

const CHAT: u16 = 9;

publication! {
    struct Input {
        /// Its id, naddr1 or host'id
        group_id: String,
        /// The message
        content: String,
        /// Message to answer
        reply_to_id: Option<String>,
        /// Its author
        reply_to_pubkey: Option<String>,
        /// A relay that has it
        reply_to_relay: Option<String>,
        /// Recent event ids there
        previous_refs: Option<Vec<String>>,
    }
}

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 33,
        name: "nostr_events_post_group_chat",
        title: "Write in a group",
        status: Status::Stable,
        nips: &[29],
        summary: "Publishes a chat message (kind 9) in a group. Give its relay in to_relays, unless group_id says it.",
        effect: Effect::Publishes,
        example: r#"{"group_id":"pizza","content":"Who is hungry?"}"#,
    };

    type Input = Input;
    type Output = SendResult;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<SendResult, Failure> {
        compose::filled(&input.content, "/content")?;
        let group = Group::parse(&input.group_id)?;
        let mut tags = Tags::default();
        let mut content = input.content.clone();
        if let Some(answered) = answered(&input, &group)? {
            let author = answered.author.as_ref().map(PublicKey::to_hex).unwrap_or_default();
            let id = answered.event_id.to_hex();
            // A reply in a chat is a quotation: the text has it as well, unless it is there already.
            let mut cited = Tags::default();
            text::mention(&mut cited, &content);
            if !cited.into_vec().iter().any(|tag| tag.kind() == "q" && tag.content() == Some(&id)) {
                let name = answered.to_bech32().map_err(|error| Failure::internal(error.to_string()))?;
                content = format!("nostr:{name}\n{content}");
            }
            tags.add(tag("q", [&id, hint(answered.relays.first()), &author]));
        }
        text::mention(&mut tags, &content);
        let tags = group.tags(tags.into_vec(), input.previous_refs.as_deref().unwrap_or_default())?;
        group.send(turn, CHAT, tags, content, input.wishes()).await
    }
}

/// The message that is answered. What was said in the group is where the group is.
fn answered(input: &Input, group: &Group) -> Result<Option<Nip19Event>, Failure> {
    let author = input.reply_to_pubkey.as_deref();
    let author = author.map(|text| argument::public_key(text, "/reply_to_pubkey")).transpose()?;
    let relay = input.reply_to_relay.as_deref().map(|text| argument::relay(text, "/reply_to_relay")).transpose()?;
    let pointer = "/reply_to_id";
    let Some(text) = &input.reply_to_id else { return Ok(None) };
    let Reference { name: Name::Id(id), author: named, relays, .. } = Reference::parse(text, pointer)? else {
        return Err(Failure::invalid("a message has an id, not an address").at(pointer));
    };
    let places: Vec<RelayUrl> = relay.into_iter().chain(relays).chain(group.relays.clone()).take(1).collect();
    let event = Nip19Event::new(id).kind(Kind::from_u16(CHAT)).relays(places);
    Ok(Some(match author.or(named) {
        Some(author) => event.author(author),
        None => event,
    }))
}
