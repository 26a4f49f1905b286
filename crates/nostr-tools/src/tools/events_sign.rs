//! `nostr_events_sign`: the signature of the active key.

use crate::failure::Failure;
use crate::shape::record;
use crate::tool::{self, About, Effect, Status, Turn};
use nostr::prelude::UnsignedEvent;
use serde_json::{Value, json};

record! {
    struct Input {
        /// The event as JSON: kind, content, tags, created_at
        unsigned_event_json: String,
    }
}

record! {
    struct Output {
        /// The id, in hex
        event_id: String,
        /// The author, in hex
        pubkey: String,
        /// The signed event as JSON, for nostr_events_publish_signed
        event_json: String,
    }
}

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 71,
        name: "nostr_events_sign",
        title: "Sign an event",
        status: Status::Stable,
        nips: &[1],
        summary: "Signs an event with the active key, without publishing it.",
        effect: Effect::Signs,
        example: r#"{"unsigned_event_json":"{\"kind\":1,\"created_at\":1700000000,\"tags\":[],\"content\":\"Hello\"}"}"#,
    };

    type Input = Input;
    type Output = Output;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<Output, Failure> {
        let pointer = "/unsigned_event_json";
        let invalid = |words: String| Failure::invalid(words).at(pointer);
        let mut draft: Value = serde_json::from_str(&input.unsigned_event_json)
            .ok()
            .filter(Value::is_object)
            .ok_or_else(|| invalid("it is no JSON object".to_owned()))?;
        let session = turn.session;
        let signer = session.keyring.signer().await?;
        if draft.get("pubkey").is_none() {
            draft["pubkey"] = signer.public_key().to_hex().into();
        }
        if draft.get("created_at").is_none() {
            draft["created_at"] = session.clock.now().as_secs().into();
        }
        if draft.get("tags").is_none() {
            draft["tags"] = json!([]);
        }
        let draft: UnsignedEvent =
            serde_json::from_value(draft).map_err(|error| invalid(format!("it is no event: {error}")))?;
        if draft.pubkey != signer.public_key() {
            return Err(invalid(format!("its author is {}, which is not the active key", draft.pubkey.to_hex())));
        }
        if draft.id.is_some_and(|id| id != draft.compute_id()) {
            return Err(invalid("its id does not fit its content; leave the id out".to_owned()));
        }
        session.guard.admit_event(draft.kind, &[])?;
        let event = signer.sign(draft).await?;
        let event_json = serde_json::to_string(&event).map_err(|error| Failure::internal(error.to_string()))?;
        Ok(Output { event_id: event.id.to_hex(), pubkey: event.pubkey.to_hex(), event_json })
    }
}
