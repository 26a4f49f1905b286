//! What strangers put into events: requests, answers and announcements. Never a panic, and what is read back is what was
//! written.

#![no_main]

use libfuzzer_sys::fuzz_target;
use nostr::prelude::{Event, Kind, PublicKey, Signature, Tag, Timestamp, UnsignedEvent};
use rialto_wire::dvmcp::request::OpenJobs;
use rialto_wire::dvmcp::{announcement, answer, request};
use rialto_wire::request::{Body, Command, Reading, expiration};

const KINDS: [u16; 4] = [5910, 6910, 7000, 31990];

// The first byte chooses the kind and the command; of the rest, each line but the last is a tag with words between `|`.
fuzz_target!(|data: &[u8]| {
    let Some((choice, rest)) = data.split_first() else { return };
    let Ok(text) = std::str::from_utf8(rest) else { return };
    let (head, content) = text.rsplit_once('\n').unwrap_or(("", text));
    let me = PublicKey::from_byte_array([2; 32]);
    let command = Command::ALL[usize::from(choice >> 2) % Command::ALL.len()];
    let mut tags = vec![Tag::custom("p", [me.to_hex()]), Tag::custom("c", [command.name()])];
    tags.extend(head.lines().filter_map(|line| Tag::parse(line.split('|')).ok()));
    let author = PublicKey::from_byte_array([1; 32]);
    let kind = Kind::from(KINDS[usize::from(choice & 3)]);
    let mut event = UnsignedEvent::new(author, Timestamp::from(1), kind, tags, content);
    event.id = Some(event.compute_id());
    if let Reading::Request(read) = request::read(&event, &me, OpenJobs::Taken)
        && let Body::Execute(execution) = &read.body
    {
        let again: serde_json::Value = serde_json::from_str(&execution.arguments).expect("arguments are JSON");
        assert_eq!(again, execution.value, "what is passed on is what was checked");
    }
    let _ = expiration(&event);
    if let Some((_, answer::Answer::Response { content, .. })) = answer::read(&event)
        && let Ok(value) = serde_json::from_str(&content)
    {
        let _ = answer::read_failure(&value);
        let _ = answer::repaired(value);
    }
    if content.starts_with('{') {
        let _ = answer::completed(content.as_bytes(), 1.0);
        let _ = answer::complaint(content.as_bytes());
    }
    let id = event.compute_id();
    let UnsignedEvent { created_at, kind, tags, content, .. } = event;
    let signed = Event::new(id, author, created_at, kind, tags, content, Signature::from_byte_array([1; 64]));
    let _ = announcement::read(&signed);
});
