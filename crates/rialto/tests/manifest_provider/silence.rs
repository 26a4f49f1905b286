//! What is no request gets no answer: people talk to each other in the same kinds, and an answer to an answer never ends.

use nostr::key::Keys;
use serde_json::json;

use torture::nostr_side::desk::{Desk, UNLIMITED, key_of};
use torture::nostr_side::event::{Draft, Event, hex_key, now};
use torture::nostr_side::message::{self, CHAT, MESSAGE};
use torture::nostr_side::messenger::{BOTH, Way, request, salt};
use torture::nostr_side::sealed::{self, SEAL, WRAP, seal, wrap};
use torture::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] = &[
    case!(chat_is_not_answered),
    case!(much_chat_is_not_answered_either),
    case!(chat_of_those_who_may_not_ask_is_not_answered_either),
    case!(what_cannot_be_decrypted_is_not_answered),
    case!(a_message_that_answers_something_is_not_answered),
    case!(answers_without_tags_are_not_answered),
    case!(messages_to_others_are_not_answered),
    case!(our_own_messages_are_not_answered),
    case!(expired_requests_are_not_answered),
    case!(other_kinds_are_not_answered),
    case!(two_providers_never_talk_to_each_other),
];

/// The text in each of the two forms.
fn forms(desk: &Desk, text: &str) -> [Event; 2] {
    BOTH.map(|way| desk.customer.finish(way, &desk.customer.draft(way, text)).1)
}

#[track_caller]
fn are_ignored(desk: &Desk, texts: &[&str]) {
    let events: Vec<(&str, Event)> =
        texts.iter().flat_map(|text| forms(desk, text).map(|event| (*text, event))).collect();
    desk.is_silent_about(&events);
}

fn note() -> String {
    request("note", &json!({ "tag": "silent" }))
}

fn chat_is_not_answered() {
    let desk = Desk::unlimited();
    are_ignored(
        &desk,
        &[
            "hello",
            "",
            " ",
            "What is the weather in Venice?",
            "tool_name: note",
            "\"tool_name\"",
            "7",
            "null",
            "true",
            "lnbc210n1pjexample",
            "cashuAeyJ0b2tlbiI6W119",
            "nostr:npub1xyz",
            "\u{1f44b}",
            "(a note) {\"tool_name\":\"note\",\"arguments\":{\"tag\":\"silent\"}}",
            "```json\n{\"tool_name\":\"note\",\"arguments\":{\"tag\":\"silent\"}}\n```",
        ],
    );
}

fn much_chat_is_not_answered_either() {
    // Not even to say that it is too much, or too long.
    let desk = Desk::new(&["--rate-per-key", "3"]);
    let talker = desk.another_customer();
    for number in 0..30 {
        let way = BOTH[number % 2];
        desk.inject(&talker.finish(way, &talker.draft(way, &format!("hello {number}"))).1);
        let answer = talker.draft(way, r#"{"error":{"code":"x","message":"y"}}"#);
        desk.inject(&talker.finish(way, &answer).1);
        let garbage = Draft::new(MESSAGE, format!("garbage {number}")).tag(&["p", &desk.provider.pubkey]);
        desk.inject(&garbage.sign(&talker.keys));
    }
    let long = "a long story ".repeat(20_000);
    desk.inject(&talker.finish(Way::Message, &talker.draft(Way::Message, &long)).1);
    desk.customer.barrier();
    assert!(talker.everything().is_empty(), "{:#?}", talker.everything());
}

fn chat_of_those_who_may_not_ask_is_not_answered_either() {
    let denied = Keys::generate();
    let desk = Desk::new(&["--deny", &hex_key(&denied)]);
    let denied = torture::nostr_side::messenger::Messenger::with_keys(&desk.relay.url(), &desk.provider.pubkey, denied);
    for way in BOTH {
        denied.post(way, "hello");
        denied.post(way, r#"{"content":[]}"#);
        let reply = denied.draft(way, &note()).tag(&["e", &"ab".repeat(32)]);
        denied.post_draft(way, &reply);
    }
    desk.customer.barrier();
    assert!(denied.everything().is_empty(), "{:#?}", denied.everything());
}

fn what_cannot_be_decrypted_is_not_answered() {
    let desk = Desk::unlimited();
    let (customer, provider) = (&desk.customer, &desk.provider.pubkey);
    let raw = |content: &str| Draft::new(MESSAGE, content).tag(&["p", provider]).sign(&customer.keys);
    let for_another = message::encrypt(&customer.keys, &hex_key(&Keys::generate()), &note());
    let good = message::encrypt(&customer.keys, provider, &note());
    let (text, iv) = good.split_once("?iv=").unwrap();
    let latin = message::encrypt_bytes(&customer.keys, provider, b"{\"tool_name\":\"\xe9\"}", [7; 16]);
    let nip44 = sealed::encrypt(&customer.keys, provider, &note());
    let events = [
        ("plain text", raw(&note())),
        ("empty", raw("")),
        ("for another", raw(&for_another)),
        ("no iv", raw(text)),
        ("empty iv", raw(&format!("{text}?iv="))),
        ("short iv", raw(&format!("{text}?iv=AAAA"))),
        ("long iv", raw(&format!("{text}?iv={}", "A".repeat(44)))),
        ("two ivs", raw(&format!("{text}?iv={iv}?iv={iv}"))),
        ("iv alone", raw(&format!("?iv={iv}"))),
        ("no base64", raw(&format!("!!!!?iv={iv}"))),
        ("half a block", raw(&format!("AAAAAAAA?iv={iv}"))),
        ("not UTF-8", raw(&latin)),
        ("NIP-44 in kind 4", raw(&nip44)),
        ("no ciphertext in a wrap", Draft::new(WRAP, "nothing").tag(&["p", provider]).sign(&Keys::generate())),
        ("NIP-04 in a wrap", Draft::new(WRAP, good.as_str()).tag(&["p", provider]).sign(&Keys::generate())),
        ("garbage in a seal", wrap(provider, &seal(&customer.keys, provider, SEAL, "nothing").json())),
        ("chat without a seal", wrap(provider, &customer.draft(Way::Sealed, &note()).unsigned("00").json())),
    ];
    desk.is_silent_about(&events);
}

fn a_message_that_answers_something_is_not_answered() {
    let desk = Desk::unlimited();
    let first = desk.customer.post(Way::Message, &request("note", &json!({})));
    desk.customer.answer(Way::Message, &first);
    let mut events = Vec::new();
    for way in BOTH {
        for id in [first.as_str(), &"ab".repeat(32)] {
            let draft = desk.customer.draft(way, &note());
            let marked = draft.clone().tag(&["e", id, "", "reply"]);
            events.push(("a request with an e", desk.customer.finish(way, &draft.tag(&["e", id])).1));
            events.push(("a request with a marked e", desk.customer.finish(way, &marked).1));
        }
    }
    desk.is_silent_about(&events);
}

fn answers_without_tags_are_not_answered() {
    let desk = Desk::unlimited();
    are_ignored(
        &desk,
        &[
            r#"{"error":{"code":"invalid_input","message":"no"}}"#,
            r#"{"error":"no"}"#,
            r#"{"error":null}"#,
            r#"{"content":[{"type":"text","text":"hello"}]}"#,
            r#"{"content":[]}"#,
            r#"{"content":"x","arguments":{}}"#,
            r#"{"error":{},"content":[]}"#,
        ],
    );
    // With the name of a tool it is a request.
    let body = json!({ "tool_name": "note", "arguments": { "text": "x" }, "error": {}, "content": [] });
    assert_eq!(desk.customer.ask(Way::Message, &body.to_string()).said(), "x");
}

fn messages_to_others_are_not_answered() {
    let desk = Desk::unlimited();
    let (customer, provider, other) = (&desk.customer, &desk.provider.pubkey, hex_key(&Keys::generate()));
    // Readable for the provider, but not addressed to it.
    let readable = message::encrypt(&customer.keys, provider, &note());
    let kind4 = |tags: &[&[&str]]| {
        tags.iter().fold(Draft::new(MESSAGE, readable.as_str()), |draft, tag| draft.tag(tag)).sign(&customer.keys)
    };
    let chat = |to: &str| Draft::new(CHAT, note()).tag(&["p", to]).tag(&["salt", &salt()]);
    let events = [
        ("to another", kind4(&[&["p", &other]])),
        ("to nobody", kind4(&[])),
        ("to a part of us", kind4(&[&["p", &provider[..32]]])),
        ("to an empty name", kind4(&[&["p", ""]])),
        ("a p without a value", kind4(&[&["p"]])),
        ("encrypted for another", message::send(&customer.keys, &other, &note())),
        ("sealed for another", sealed::send(&customer.keys, &other, &chat(provider)).1),
        ("sealed for us, to another", sealed::send(&customer.keys, provider, &chat(&other)).1),
    ];
    desk.is_silent_about(&events);
}

fn our_own_messages_are_not_answered() {
    let desk = Desk::unlimited();
    let me = key_of(&desk.world, "provider", &desk.provider.pubkey);
    let provider = &desk.provider.pubkey;
    let to_other = message::send(&me, &desk.customer.pubkey(), &note());
    let chat = Draft::new(CHAT, note()).tag(&["p", provider]);
    let events = [
        ("to ourselves", message::send(&me, provider, &note())),
        ("to the customer", to_other),
        ("sealed to ourselves", sealed::send(&me, provider, &chat).1),
        ("an error to ourselves", message::send(&me, provider, "{}")),
    ];
    desk.is_silent_about(&events);
    // Its answers come back to it from the relay, and are not read as requests either.
    let answer = desk.customer.call(Way::Message, "note", &json!({})).event;
    desk.is_silent_about(&[("our own answer", answer)]);
}

fn expired_requests_are_not_answered() {
    let desk = Desk::unlimited();
    let mut events = Vec::new();
    for way in BOTH {
        for time in [now() - 10, 1] {
            let draft = desk.customer.draft(way, &note()).tag(&["expiration", &time.to_string()]);
            events.push(("expired", desk.customer.finish(way, &draft).1));
        }
    }
    desk.is_silent_about(&events);
    for way in BOTH {
        let draft = desk.customer.draft(way, &request("note", &json!({ "text": "in time" })));
        let id = desk.customer.post_draft(way, &draft.tag(&["expiration", &(now() + 600).to_string()]));
        assert_eq!(desk.customer.answer(way, &id).said(), "in time");
    }
}

fn other_kinds_are_not_answered() {
    let desk = Desk::unlimited();
    let (customer, provider) = (&desk.customer, &desk.provider.pubkey);
    let secret = message::encrypt(&customer.keys, provider, &note());
    let of = |kind: u32, content: &str| Draft::new(kind, content).tag(&["p", provider]).sign(&customer.keys);
    let inside = |kind: u32, content: &str| {
        let draft = Draft::new(kind, content).tag(&["p", provider]).tag(&["salt", &salt()]);
        sealed::send(&customer.keys, provider, &draft).1
    };
    let events = [
        ("kind 14 in the open", of(CHAT, &note())),
        ("kind 1", of(1, &note())),
        ("kind 13 in the open", seal(&customer.keys, provider, SEAL, &note())),
        ("kind 44", of(44, &secret)),
        ("kind 5000", of(5000, &note())),
        ("kind 4 in a seal", inside(MESSAGE, &secret)),
        ("kind 4 in a seal, readable", inside(MESSAGE, &note())),
        ("kind 15 in a seal", inside(15, &note())),
        ("kind 1 in a seal", inside(1, &note())),
        ("kind 30200 in a seal", inside(30200, &note())),
    ];
    desk.is_silent_about(&events);
}

fn two_providers_never_talk_to_each_other() {
    let desk = Desk::unlimited();
    let program = std::env::current_exe().unwrap();
    let server =
        [program.to_str().unwrap(), torture::nostr_side::actor::ACTOR, desk.world.path().to_str().unwrap(), "weather"];
    let other = desk.world.serve_command("other", &[&desk.relay.url()], &UNLIMITED, &server);
    let first = key_of(&desk.world, "provider", &desk.provider.pubkey);
    // One of them has written to the other, in every form and with every mistake.
    for text in [request("note", &json!({})), "{}".to_owned(), "[]".to_owned(), request("none", &json!({}))] {
        desk.relay.publish(&message::send(&first, &other.pubkey, &text));
        let chat = Draft::new(CHAT, text).tag(&["p", &other.pubkey]).tag(&["salt", &salt()]);
        desk.relay.publish(&sealed::send(&first, &other.pubkey, &chat).1);
    }
    let by = |event: &Event, author: &str| event.kind == MESSAGE && event.pubkey == author;
    desk.relay.wait_for_events("answers", 4, |event| by(event, &other.pubkey));
    let sealed_answers = |event: &Event| event.kind == WRAP && event.has_tag("p", &desk.provider.pubkey);
    desk.relay.wait_for_events("sealed answers", 4, sealed_answers);
    std::thread::sleep(std::time::Duration::from_millis(500));
    desk.customer.barrier();
    let published = desk.relay.published();
    assert_eq!(published.iter().filter(|event| by(event, &other.pubkey)).count(), 4, "one answer to each");
    let to_other = published.iter().filter(|event| event.has_tag("p", &other.pubkey)).count();
    assert_eq!(to_other, 0, "nothing is said to the other");
    assert_eq!(desk.world.times("note"), 2);
}
