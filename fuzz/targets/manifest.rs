//! What strangers put into manifests and messages. Never a panic; what is passed on is what was checked; and a tool that was
//! read can be written and read again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use nostr::prelude::{Event, Kind, PublicKey, Signature, Tag, Timestamp, UnsignedEvent};
use rialto_wire::manifest::answer::{self, Answer};
use rialto_wire::manifest::description::{self, Offer};
use rialto_wire::manifest::request;
use rialto_wire::request::{Body, Reading};
use serde_json::Value;

fn manifest(event: UnsignedEvent) -> Event {
    let id = event.compute_id();
    let UnsignedEvent { pubkey, created_at, kind, tags, content, .. } = event;
    Event::new(id, pubkey, created_at, kind, tags, content, Signature::from_byte_array([1; 64]))
}

// The first byte chooses the kind; the rest is the content.
fuzz_target!(|data: &[u8]| {
    let Some((choice, rest)) = data.split_first() else { return };
    let Ok(text) = std::str::from_utf8(rest) else { return };
    let (me, author) = (PublicKey::from_byte_array([2; 32]), PublicKey::from_byte_array([1; 32]));
    let kind = Kind::from([4, 14, 30200][usize::from(choice % 3)]);
    let mut event = UnsignedEvent::new(author, Timestamp::from(1), kind, [Tag::custom("p", [me.to_hex()])], text);
    event.id = Some(event.compute_id());
    if let Reading::Request(read) = request::read(&event, &me)
        && let Body::Execute(execution) = &read.body
    {
        let again: Value = serde_json::from_str(&execution.arguments).expect("arguments are JSON");
        assert_eq!(again, execution.value, "what is passed on is what was checked");
    }
    let _ = answer::read(&event, &me);
    for is_structured in [true, false] {
        if let Answer::Result(result) = Answer::read(text, is_structured) {
            assert!(serde_json::from_str::<Value>(&result).is_ok_and(|result| result.is_object()), "{result}");
        }
    }
    let Some(service) = description::read(&manifest(event)) else { return };
    let tools: Vec<Vec<u8>> = service.tools.iter().map(|tool| tool.clone().into_bytes()).collect();
    let offer = Offer { id: "a", name: "a", about: "", tools: &tools, relays: &[] };
    let (events, left_out) = offer.write(description::MAX_WRITTEN, author, Timestamp::from(1));
    let again: Vec<String> = events
        .into_iter()
        .flat_map(|event| description::read(&manifest(event)).expect("it is a manifest").tools)
        .collect();
    assert_eq!(again.len() + left_out.len(), tools.len());
});
