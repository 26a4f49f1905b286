//! `nostr_handlers_recommend`: apps for a kind of event.

use crate::argument;
use crate::compose::address::address_of;
use crate::compose::{hint, publication, tag};
use crate::failure::Failure;
use crate::result::SendResult;
use crate::shape::record;
use crate::tool::{self, About, Effect, Status, Turn};
use nostr::prelude::{Kind, Tag};

const RECOMMENDATION: Kind = Kind::Custom(31_989);
const HANDLER: Kind = Kind::Custom(31_990);

record! {
    struct Handler {
        /// 31990:pubkey:d or naddr1
        address: String,
        /// A relay that has it
        relay: Option<String>,
        /// Such as web or ios
        platform: Option<String>,
    }
}

publication! {
    struct Input {
        /// Kind that they are for
        supported_kind: u16,
        /// All recommended apps
        handlers: Vec<Handler>,
        /// A few words
        content: Option<String>,
    }
}

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 22,
        name: "nostr_handlers_recommend",
        title: "Recommend apps",
        status: Status::Stable,
        nips: &[89],
        summary: "Publishes which apps the active key recommends for a kind of event (kind 31989).",
        effect: Effect::Replaces,
        example: r#"{"supported_kind":30023,"handlers":[{"address":"31990:79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798:reader","relay":"wss://relay.example.com","platform":"web"}]}"#,
    };

    type Input = Input;
    type Output = SendResult;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<SendResult, Failure> {
        if input.handlers.is_empty() {
            return Err(Failure::invalid("recommend at least one app").at("/handlers"));
        }
        let mut tags = vec![tag("d", [&input.supported_kind.to_string()])];
        for (index, handler) in input.handlers.iter().enumerate() {
            tags.push(recommended(handler, &format!("/handlers/{index}"))?);
        }
        let wishes = input.wishes();
        turn.publish(RECOMMENDATION, tags, input.content.unwrap_or_default(), wishes).await
    }
}

/// `["a", address, relay, platform]`
fn recommended(handler: &Handler, pointer: &str) -> Result<Tag, Failure> {
    let found = address_of(HANDLER, "an app", &handler.address, &format!("{pointer}/address"))?;
    let relay = handler.relay.as_deref().map(|text| argument::relay(text, &format!("{pointer}/relay"))).transpose()?;
    let relay = relay.as_ref().or(found.relays.first());
    let platform = handler.platform.as_deref().unwrap_or_default().trim();
    Ok(tag("a", [&found.coordinate.to_string(), hint(relay), platform]))
}
