//! Kind 4 by somebody who is not who they say they are.

use nostr::key::Keys;
use serde_json::json;

use torture::nostr_side::desk::Desk;
use torture::nostr_side::event::{Draft, Event, hex_key, sign};
use torture::nostr_side::message::{self, MESSAGE};
use torture::nostr_side::messenger::{Messenger, Way, request};
use torture::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] = &[
    case!(forged_messages_are_neither_run_nor_answered),
    case!(a_copied_ciphertext_is_worth_nothing_under_another_key),
    case!(a_stranger_cannot_borrow_the_name_of_a_friend),
    case!(a_tampered_copy_under_a_known_id_changes_nothing),
    case!(frames_that_are_no_events_harm_nobody),
];

fn note(tag: &str) -> String {
    request("note", &json!({ "tag": tag }))
}

fn forged_messages_are_neither_run_nor_answered() {
    let desk = Desk::unlimited();
    let customer = &desk.customer;
    let good = customer.finish(Way::Message, &customer.draft(Way::Message, &note("good"))).1;
    let changed = |change: &dyn Fn(&mut Event)| {
        let mut event = good.clone();
        change(&mut event);
        event
    };
    let other = message::encrypt(&customer.keys, &customer.provider, &note("other"));
    let by_another = sign(customer.draft(Way::Message, &note("x")).unsigned(&customer.pubkey()), &Keys::generate());
    let events = [
        ("other content under the id", changed(&|event| event.content.clone_from(&other))),
        (
            "other content with its own id",
            changed(&|event| {
                event.content.clone_from(&other);
                event.id = event.computed_id();
            }),
        ),
        ("other author", changed(&|event| event.pubkey = hex_key(&Keys::generate()))),
        ("other time", changed(&|event| event.created_at += 1)),
        ("one tag more", changed(&|event| event.tags.push(vec!["x".to_owned()]))),
        ("no signature", changed(&|event| event.sig = String::new())),
        ("a signature of zeros", changed(&|event| event.sig = "0".repeat(128))),
        ("half a signature", changed(&|event| event.sig.truncate(64))),
        ("wrong id", changed(&|event| event.id = "0".repeat(64))),
        ("signed by another", by_another),
    ];
    desk.is_silent_about(&events);
    // The genuine one is served, although its id came with lies before.
    desk.relay.publish(&good);
    assert_eq!(customer.answer(Way::Message, &good.id).said(), "noted");
    assert_eq!(desk.world.effects(), ["note good"]);
}

fn a_copied_ciphertext_is_worth_nothing_under_another_key() {
    let desk = Desk::unlimited();
    let good = desk.customer.finish(Way::Message, &desk.customer.draft(Way::Message, &note("good"))).1;
    let thieves: Vec<(&str, Event)> = (0..20)
        .map(|_| {
            let draft = Draft::new(MESSAGE, good.content.as_str()).tag(&["p", &desk.provider.pubkey]);
            ("a copy", draft.sign(&Keys::generate()))
        })
        .collect();
    // With another key it decrypts to noise, which now and then looks like text, but not like a request.
    desk.is_silent_about(&thieves);
    desk.relay.publish(&good);
    assert_eq!(desk.customer.answer(Way::Message, &good.id).said(), "noted");
}

fn a_stranger_cannot_borrow_the_name_of_a_friend() {
    let friend = Keys::generate();
    let desk = Desk::new(&["--private", &hex_key(&friend)]);
    let stranger = Keys::generate();
    let mut stolen = message::send(&stranger, &desk.provider.pubkey, &note("stolen"));
    stolen.pubkey = hex_key(&friend);
    let signed = sign(stolen.clone(), &stranger);
    desk.inject(&stolen);
    desk.inject(&signed);
    let friend = Messenger::with_keys(&desk.relay.url(), &desk.provider.pubkey, friend);
    friend.barrier();
    assert!(desk.world.effects().is_empty(), "{:?}", desk.world.effects());
    assert_eq!(friend.everything().len(), 2, "the friend hears nothing of it");
}

fn a_tampered_copy_under_a_known_id_changes_nothing() {
    let desk = Desk::unlimited();
    let customer = &desk.customer;
    let text = request("gate", &json!({ "name": "g", "tag": "good" }));
    let good = customer.finish(Way::Message, &customer.draft(Way::Message, &text)).1;
    desk.relay.publish(&good);
    desk.world.wait_for_effect("gate good");
    let other = Keys::generate();
    for round in 0..20 {
        let mut bad = good.clone();
        bad.content = message::encrypt(&customer.keys, &customer.provider, &note(&format!("bad {round}")));
        desk.inject(&bad);
        // The answer to the first must go to its author, not to whom a copy names.
        bad = good.clone();
        bad.pubkey = hex_key(&other);
        desk.inject(&bad);
    }
    customer.barrier();
    desk.world.open_gate("g");
    assert_eq!(customer.answer(Way::Message, &good.id).said(), "through");
    assert_eq!(desk.world.effects(), ["gate good"]);
    assert!(!desk.relay.published().iter().any(|event| event.has_tag("p", &hex_key(&other))));
}

fn frames_that_are_no_events_harm_nobody() {
    let mut desk = Desk::unlimited();
    let good = desk.customer.finish(Way::Message, &desk.customer.draft(Way::Message, &note("frame"))).1;
    let text = good.json();
    let mine = format!("\"#p\":[\"{}\"]", desk.provider.pubkey);
    for frame in [
        "null".to_owned(),
        "{}".to_owned(),
        "{\"kind\":4}".to_owned(),
        text.replace("\"kind\":4", "\"kind\":\"4\""),
        text.replace("\"kind\":4", "\"kind\":4.5"),
        text.replace("\"tags\":[", "\"tags\":[[],[[]],"),
        text.replace("\"content\":", "\"content\":null,\"content\":"),
        text.replace("\"tags\":[", &format!("\"tags\":[{}", "[\"p\",\"x\"],".repeat(20_000))),
        text.replace(&good.sig, "zz"),
        text.replace("\"created_at\":", "\"created_at\":-"),
        text.replace("\"created_at\":", "\"created_at\":99999999999999999999"),
        format!("{}{}", "[".repeat(100_000), "]".repeat(100_000)),
    ] {
        assert!(desk.relay.inject(&mine, &frame) > 0, "the provider has left before {frame:.80}");
        desk.relay.wait_for_subscription(&mine);
    }
    desk.customer.barrier();
    assert!(desk.world.effects().is_empty(), "{:?}", desk.world.effects());
    assert!(desk.provider.process.is_running());
}
