//! The envelope parser: agrees with an independent JSON reader about what is JSON, and passes on what it accepts.

#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use rialto_mcp::id::Id;
use rialto_mcp::json::{self, FlawKind};
use rialto_mcp::message::{self, Incoming, Message};
use serde_json::value::RawValue;

fuzz_target!(|input: &[u8]| {
    let ours = json::check(input);
    let theirs = serde_json::from_slice::<&RawValue>(input).is_ok();
    match &ours {
        // Deep nesting is refused on purpose, which a mere grammar takes; bytes that are no UTF-8 are not ours to see.
        Err(flaw) if flaw.kind == FlawKind::Depth => {}
        _ if std::str::from_utf8(input).is_err() => {}
        _ => assert_eq!(ours.is_ok(), theirs),
    }
    if let Ok(place) = ours
        && std::str::from_utf8(input).is_ok()
    {
        // Whatever passes can be read by recursive readers behind us, but for what no Rust type can hold.
        let value = serde_json::from_slice::<serde_json::Value>(&input[place]);
        let is_out_of_range = value.as_ref().is_err_and(|error| error.to_string().contains("number out of range"));
        assert!(value.is_ok() || is_out_of_range || json::has_lone_surrogate(input));
    }
    message::salvage(&Bytes::copy_from_slice(input));
    message::salvage_end(input);
    // Raw line breaks between tokens become spaces; nothing else changes.
    let input: Vec<u8> = input.iter().map(|byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { *byte }).collect();
    let members = match message::parse(Bytes::from(input.clone())) {
        Incoming::Single(member) => vec![member],
        Incoming::Batch(members) => members,
    };
    for member in members {
        let mut same = Vec::new();
        match member {
            Ok(Message::Request(request)) => {
                request.write(&mut same, request.id.as_json(), &[]);
                assert!(input.windows(same.len()).any(|window| window == same));
                let mut other = Vec::new();
                request.write(&mut other, b"\"x\"", &[]);
                let Incoming::Single(Ok(Message::Request(read))) = message::parse(Bytes::from(other)) else {
                    panic!("what is passed on must be a request")
                };
                assert_eq!(
                    (read.method(), read.params(), read.id.as_json()),
                    (request.method(), request.params(), &b"\"x\""[..])
                );
            }
            Ok(Message::Response(response)) => {
                response.write(&mut same, &Id::number(7));
                let Incoming::Single(Ok(Message::Response(read))) = message::parse(Bytes::from(same)) else {
                    panic!("what is passed on must be a response")
                };
                assert_eq!((read.result(), read.error()), (response.result(), response.error()));
                let exchanged = response.with_result(b"{}");
                assert!(exchanged.result().or(exchanged.error()) == Some(b"{}"));
            }
            Ok(Message::Notification(note)) => {
                note.write(&mut same, &[]);
                assert_eq!(same, note.as_json());
            }
            Err(_) => {}
        }
    }
});
