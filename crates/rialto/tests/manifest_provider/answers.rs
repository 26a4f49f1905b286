//! Answers: in kind, one for each request, with the tags that were promised and no others.

use serde_json::{Value, json};

use torture::nostr_side::desk::{Desk, UNLIMITED};
use torture::nostr_side::event::{Event, now};
use torture::nostr_side::fake_relay::FakeRelay;
use torture::nostr_side::message::{CHAT, MESSAGE};
use torture::nostr_side::messenger::{BOTH, Messenger, Way, request};
use torture::nostr_side::sealed::{self, WRAP};
use torture::nostr_side::world::World;
use torture::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] = &[
    case!(there_is_one_answer_and_nothing_before_it),
    case!(a_sealed_request_is_never_answered_in_another_form),
    case!(a_message_is_answered_by_a_message_that_only_the_customer_can_read),
    case!(every_wrap_has_a_key_of_its_own_and_a_time_in_the_past),
    case!(a_request_in_many_wraps_runs_once),
    case!(an_answer_is_never_empty_and_always_an_object),
    case!(results_that_are_too_large_are_an_error),
    case!(answers_keep_to_the_limit_of_the_relay),
    case!(messages_are_served_where_relays_demand_authentication),
    case!(tags_and_letters_that_clients_add_do_no_harm),
    case!(nothing_of_the_machine_is_told_in_errors),
];

fn there_is_one_answer_and_nothing_before_it() {
    let desk = Desk::unlimited();
    for way in BOTH {
        for (tool, arguments) in [
            ("note", json!({})),
            ("steps", json!({ "count": 3, "ms": 10 })),
            ("get_forecast", json!({ "city": "Venice" })),
            ("sulk", json!({})),
            ("get_forecast", json!({})),
            ("no_such_tool", json!({})),
        ] {
            let before = desk.sent().len();
            let id = desk.customer.post(way, &request(tool, &arguments));
            desk.customer.answer(way, &id);
            desk.customer.barrier();
            assert_eq!(desk.customer.answers(&id).len(), 1, "{way:?} {tool}");
            let more: Vec<Event> = desk.sent().into_iter().skip(before).collect();
            // Two of them answer the questions of the barrier.
            assert_eq!(more.len(), 3, "{way:?} {tool}: {more:#?}");
        }
    }
}

fn a_sealed_request_is_never_answered_in_another_form() {
    let desk = Desk::unlimited();
    for text in [
        request("note", &json!({ "text": "the secret word" })),
        request("get_forecast", &json!({ "city": "the secret word" })),
        request("get_forecast", &json!({ "city": "Errorton" })),
        request("crash", &json!({ "tag": "the secret word" })),
        request("the secret word", &json!({})),
        "{\"the secret word\"".to_owned(),
        "[\"the secret word\"]".to_owned(),
    ] {
        desk.customer.ask(Way::Sealed, &text);
    }
    let open: Vec<Event> = desk.sent().into_iter().filter(|event| event.kind != WRAP).collect();
    assert_eq!(open, []);
    let heard: String = desk.relay.heard().iter().map(|heard| heard.frame.to_string()).collect();
    assert!(!heard.contains("the secret word"));
    assert!(!heard.contains(&format!("[\"p\",\"{}\"],[\"e\"", desk.customer.pubkey())), "who talks to whom is hidden");
}

fn a_message_is_answered_by_a_message_that_only_the_customer_can_read() {
    let desk = Desk::unlimited();
    for tool in ["note", "sulk", "no_such_tool"] {
        let answer = desk.customer.call(Way::Message, tool, &json!({ "text": "the secret word" }));
        assert_eq!((answer.event.problem(), answer.event.kind), (None, MESSAGE));
        assert!((now() - answer.event.created_at).abs() < 30, "{:?}", answer.event);
        let (text, iv) = answer.event.content.split_once("?iv=").unwrap();
        assert!(!text.is_empty() && iv.len() == 24, "{:?}", answer.event);
    }
    assert!(desk.sent().iter().all(|event| event.kind == MESSAGE));
    let mut ivs: Vec<String> =
        desk.sent().iter().map(|event| event.content.split_once("?iv=").unwrap().1.to_owned()).collect();
    ivs.dedup();
    assert_eq!(ivs.len(), 3, "an initialization vector is used once");
    let heard: String = desk.relay.heard().iter().map(|heard| heard.frame.to_string()).collect();
    assert!(!heard.contains("the secret word"));
}

fn every_wrap_has_a_key_of_its_own_and_a_time_in_the_past() {
    let desk = Desk::unlimited();
    for _ in 0..5 {
        let answer = desk.customer.call(Way::Sealed, "note", &json!({}));
        assert_eq!(answer.event.kind, CHAT);
        assert!((now() - answer.event.created_at).abs() < 30, "the time inside is the true one: {answer:?}");
    }
    let wraps = desk.sent();
    let mut authors: Vec<&String> = wraps.iter().map(|wrap| &wrap.pubkey).collect();
    authors.sort();
    authors.dedup();
    assert_eq!((wraps.len(), authors.len()), (5, 5), "a key was used twice");
    for wrap in &wraps {
        assert_eq!((wrap.problem(), wrap.kind), (None, WRAP));
        assert_ne!(wrap.pubkey, desk.provider.pubkey);
        assert!(wrap.created_at <= now());
        assert_eq!(wrap.tags("p"), [[desk.customer.pubkey()]], "nobody else is named");
        assert!(wrap.tags("e").is_empty(), "{wrap:?}");
        let opened = sealed::open(&desk.customer.keys, wrap);
        assert!(opened.seal.created_at <= now());
        assert_eq!(opened.seal.pubkey, desk.provider.pubkey);
    }
}

fn a_request_in_many_wraps_runs_once() {
    let desk = Desk::unlimited();
    let draft = desk.customer.draft(Way::Sealed, &request("note", &json!({ "tag": "many" })));
    let ids: Vec<String> = (0..10).map(|_| desk.customer.post_draft(Way::Sealed, &draft)).collect();
    assert!(ids.iter().all(|id| *id == ids[0]));
    desk.customer.answer(Way::Sealed, &ids[0]);
    desk.customer.barrier();
    assert_eq!(desk.world.times("note many"), 1);
    assert_eq!(desk.customer.answers(&ids[0]).len(), 1, "not answered again at once");
}

fn an_answer_is_never_empty_and_always_an_object() {
    let desk = Desk::unlimited();
    for way in BOTH {
        for (tool, arguments) in [
            ("note", json!({ "text": "" })),
            ("large", json!({ "size": 0 })),
            ("ask", json!({})),
            ("meta", json!({})),
            ("rich", json!({})),
        ] {
            let body: Value = desk.customer.call(way, tool, &arguments).body();
            assert!(body.is_object() && body != json!({}), "{tool}: {body}");
        }
    }
}

fn results_that_are_too_large_are_an_error() {
    let desk = Desk::unlimited();
    for (way, fits, too_large) in [(Way::Message, 30_000, 100_000), (Way::Sealed, 15_000, 70_000)] {
        assert_eq!(desk.customer.call(way, "large", &json!({ "size": fits })).said().len(), fits, "{way:?}");
        let answer = desk.customer.call(way, "large", &json!({ "size": too_large }));
        assert_eq!(answer.error(), "result_too_large", "{way:?}");
    }
    assert_eq!(desk.world.times("large"), 4);
    let longest = desk.sent().iter().map(|event| event.json().len()).max().unwrap();
    assert!(longest <= 64 * 1024, "{longest} bytes in one event");
}

fn answers_keep_to_the_limit_of_the_relay() {
    let (relay, world) = (FakeRelay::start(), World::new());
    relay.rules(|rules| rules.information = Some(json!({ "limitation": { "max_message_length": 16_384 } })));
    let provider = world.serve(&[&relay.url()], &UNLIMITED);
    let customer = Messenger::new(&relay.url(), &provider.pubkey);
    for way in BOTH {
        assert_eq!(customer.call(way, "large", &json!({ "size": 3000 })).said().len(), 3000, "{way:?}");
        // It would not get through.
        let answer = customer.call(way, "large", &json!({ "size": 30_000 }));
        assert_eq!(answer.error(), "result_too_large", "{way:?}");
    }
    let me = &provider.pubkey;
    let longest = relay
        .published()
        .iter()
        .filter(|event| event.kind == WRAP || (event.kind == MESSAGE && event.pubkey == *me))
        .map(|event| json!(["EVENT", event]).to_string().len())
        .max();
    assert!(longest.is_some_and(|length| length <= 16_384), "{longest:?} bytes");
}

fn messages_are_served_where_relays_demand_authentication() {
    let (relay, world) = (FakeRelay::start(), World::new());
    relay.rules(|rules| rules.wants_auth = true);
    let provider = world.serve(&[&relay.url()], &UNLIMITED);
    relay.wait_for_frame("authentication", |heard| heard.frame[0] == "AUTH");
    relay.rules(|rules| rules.wants_auth = false);
    let customer = Messenger::new(&relay.url(), &provider.pubkey);
    for way in BOTH {
        assert_eq!(customer.call(way, "note", &json!({ "text": "in" })).said(), "in");
    }
}

fn tags_and_letters_that_clients_add_do_no_harm() {
    let desk = Desk::unlimited();
    // The name of the tool is `note`, however it is written.
    let text = r#"{"tool\u005fname":"n\u006fte","arguments":{"text":"\u0078"}}"#;
    for way in BOTH {
        let draft = desk.customer.draft(way, text).without("p");
        let draft = draft
            .tag(&["p", &desk.provider.pubkey, "wss://relay.example", "the weather"])
            .tag(&["subject", "weather"])
            .tag(&["alt", "a request"])
            .tag(&["client", "somebody"]);
        let id = desk.customer.post_draft(way, &draft);
        assert_eq!(desk.customer.answer(way, &id).said(), "x", "{way:?}");
    }
}

fn nothing_of_the_machine_is_told_in_errors() {
    let desk = Desk::unlimited();
    let directory = desk.world.path().to_str().unwrap().to_owned();
    for (tool, arguments) in [
        ("crash", json!({})),
        ("get_forecast", json!({ "city": "Wrongham" })),
        ("get_forecast", json!({ "city": 7 })),
        ("broken", json!({})),
        ("no_such_tool", json!({})),
    ] {
        let answer = desk.customer.call(Way::Message, tool, &arguments);
        answer.error();
        for secret in [directory.as_str(), "panicked", ".rs:", "127.0.0.1"] {
            assert!(!answer.text.contains(secret), "{tool}: {}", answer.text);
        }
    }
}
