//! `nostr_events_publish_signed`: an event that somebody signed elsewhere.

use crate::argument;
use crate::failure::Failure;
use crate::publish::Route;
use crate::result::SendResult;
use crate::shape::record;
use crate::tool::{self, About, Effect, Status, Turn};

record! {
    struct Input {
        /// The signed event, as JSON text
        event_json: String,
        /// Publish to these relays instead of the usual ones
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
        example: r#"{"event_json":"{\"id\":\"…\",\"pubkey\":\"…\",\"created_at\":1700000000,\"kind\":1,\"tags\":[],\"content\":\"Hello\",\"sig\":\"…\"}"}"#,
    };

    type Input = Input;
    type Output = SendResult;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<SendResult, Failure> {
        let event = argument::signed_event(&input.event_json, "/event_json")?;
        turn.publish_signed(&event, input.to_relays, Route::Usual).await
    }
}
