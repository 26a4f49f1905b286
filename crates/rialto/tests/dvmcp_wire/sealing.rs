//! The same wire, sealed.

use serde_json::json;

use torture::nostr_side::fake_relay::FakeRelay;
use torture::nostr_side::scene::Scene;
use torture::nostr_side::sealed;
use torture::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] = &[
    case!(a_sealed_call_is_answered_like_a_plain_one),
    case!(a_sealed_request_is_never_answered_in_the_open),
    case!(a_sealed_list_is_answered_sealed),
    case!(an_error_in_a_sealed_request_is_sealed),
    case!(every_wrap_has_a_key_of_its_own_and_a_time_in_the_past),
    case!(a_request_in_two_wraps_runs_once),
    case!(the_same_request_sealed_and_in_the_open_runs_once),
];

fn a_sealed_call_is_answered_like_a_plain_one() {
    let scene = Scene::new(&[]);
    let call = json!({ "name": "note", "parameters": { "text": "hello" } });
    let answers = scene.customer.ask_sealed("execute-tool", &call);
    let order: Vec<(u32, &str)> =
        answers.0.iter().map(|received| (received.event.kind, received.event.tag("status"))).collect();
    assert_eq!(order, [(7000, "processing"), (7000, "success"), (6910, "success")]);
    let response = answers.response();
    assert_eq!(response.tag("c"), "execute-tool-response");
    assert_eq!(response.tag("p"), scene.customer.pubkey());
    assert_eq!(response.pubkey, scene.provider.pubkey);
    assert_eq!(answers.text(), "hello");
    assert!(answers.0.iter().all(|received| received.sealed));
}

fn a_sealed_request_is_never_answered_in_the_open() {
    let relay = FakeRelay::start();
    let scene = Scene::on(&relay, &[]);
    for tool in ["note", "sulk", "no_such_tool"] {
        let call = json!({ "name": tool, "parameters": { "text": "the secret word" } });
        scene.customer.ask_sealed("execute-tool", &call);
    }
    scene.customer.ask_sealed("no-such-command", &json!(""));
    let open: Vec<_> = relay.published().into_iter().filter(|event| [6910, 7000].contains(&event.kind)).collect();
    assert_eq!(open, []);
    let heard = relay.heard().iter().map(|heard| heard.frame.to_string()).collect::<String>();
    assert!(!heard.contains("the secret word"));
}

fn a_sealed_list_is_answered_sealed() {
    let scene = Scene::new(&[]);
    let answers = scene.customer.ask_sealed("list-tools", &json!(""));
    assert!(answers.0.iter().all(|received| received.sealed));
    assert!(answers.body()["tools"][0]["inputSchema"].is_object());
}

fn an_error_in_a_sealed_request_is_sealed() {
    let scene = Scene::new(&[]);
    let answers = scene.customer.ask_sealed("execute-tool", &json!("no JSON"));
    assert_eq!(answers.error(), "invalid_request");
    assert!(answers.0.iter().all(|received| received.sealed));
}

fn every_wrap_has_a_key_of_its_own_and_a_time_in_the_past() {
    let relay = FakeRelay::start();
    let scene = Scene::on(&relay, &[]);
    let call = json!({ "name": "note", "parameters": {} });
    scene.customer.ask_sealed("execute-tool", &call);
    let me = scene.customer.pubkey();
    let wraps = relay.wait_for_events("wraps", 3, |event| event.kind == sealed::WRAP && event.has_tag("p", &me));
    let mut authors: Vec<&String> = wraps.iter().map(|wrap| &wrap.pubkey).collect();
    authors.sort();
    authors.dedup();
    assert_eq!(authors.len(), wraps.len(), "a key was used twice");
    for wrap in &wraps {
        assert_eq!(wrap.problem(), None);
        assert_ne!(wrap.pubkey, scene.provider.pubkey);
        assert!(wrap.created_at <= torture::nostr_side::event::now());
        assert_eq!(wrap.tags("p").len(), 1, "nobody else is named: {wrap:?}");
    }
}

fn a_request_in_two_wraps_runs_once() {
    let scene = Scene::new(&[]);
    let customer = &scene.customer;
    let draft = customer.draft("execute-tool", &json!({ "name": "note", "parameters": { "tag": "twice" } }));
    let ids: Vec<String> = (0..5).map(|_| customer.post_sealed(&draft)).collect();
    assert!(ids.iter().all(|id| *id == ids[0]));
    customer.answers(&ids[0]);
    customer.ask_sealed("list-tools", &json!(""));
    assert_eq!(scene.world.times("note twice"), 1);
    assert_eq!(customer.so_far(&ids[0]).responses().len(), 1, "not answered again at once");
}

fn the_same_request_sealed_and_in_the_open_runs_once() {
    let scene = Scene::new(&[]);
    let customer = &scene.customer;
    let draft = customer.draft("execute-tool", &json!({ "name": "note", "parameters": { "tag": "both" } }));
    let sealed = customer.post_sealed(&draft);
    let plain = customer.post(&draft);
    assert_eq!(sealed, plain);
    customer.answers(&plain);
    customer.barrier();
    assert_eq!(scene.world.times("note both"), 1);
}
