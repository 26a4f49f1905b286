//! `nostr_events_publish_signed`: an event that somebody signed elsewhere.

use crate::argument;
use crate::failure::Failure;
use crate::publish::Route;
use crate::result::SendResult;
use crate::shape::record;
use crate::tool::{self, About, Effect, Status, Turn};

record! {
    struct Input {
        /// Signed event, as JSON text
        event_json: String,
        /// Publish only there
        to_relays: Option<Vec<String>>,
    }
}

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 35,
        name: "nostr_events_publish_signed",
        title: "Publish a signed event",
        status: Status::Stable,
        nips: &[1],
        summary: "Publishes an event that is signed already, after checking its id and signature. Needs no key.",
        effect: Effect::Publishes,
        example: r#"{"event_json":"{\"id\":\"879591f74393559901841d62e2ec1c722f32221183e999de06d71b066c36baff\",\"pubkey\":\"79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798\",\"created_at\":1700000000,\"kind\":1,\"tags\":[],\"content\":\"Hello\",\"sig\":\"84d28646338130779b68c0d423dca4a2dc74f1a885b149d369bcd0a0693bf511cc12ddeb8457c931051a8a668f6041332c2ceaa6ee9a4e861dd17ed409aa9468\"}"}"#,
    };

    type Input = Input;
    type Output = SendResult;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<SendResult, Failure> {
        let event = argument::signed_event(&input.event_json, "/event_json")?;
        turn.publish_signed(&event, input.to_relays, Route::Usual).await
    }
}
