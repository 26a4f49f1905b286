//! Requests from another time.

use serde_json::json;

use torture::nostr_side::event::now;
use torture::nostr_side::fake_relay::FakeRelay;
use torture::nostr_side::scene::Scene;
use torture::nostr_side::sealed;
use torture::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] = &[
    case!(a_request_outside_of_the_window_is_stale),
    case!(stale_requests_of_one_key_are_answered_once),
    case!(a_request_inside_of_the_window_is_served),
    case!(a_sealed_request_counts_by_the_time_inside),
    case!(an_expired_request_is_not_answered),
    case!(a_request_that_expires_later_is_served),
];

fn note(tag: &str) -> serde_json::Value {
    json!({ "name": "note", "parameters": { "tag": tag } })
}

fn a_request_outside_of_the_window_is_stale() {
    let relay = FakeRelay::start();
    let scene = Scene::on(&relay, &[]);
    for offset in [-15 * 60 - 5, -86_400, 75, 86_400, -i64::from(u32::MAX)] {
        // Each by somebody else, as one customer is told only once in a while.
        let customer = scene.another_customer();
        let event = customer.draft("execute-tool", &note("old")).at((now() + offset).max(1)).sign(&customer.keys);
        // Whatever was subscribed to: a hostile relay sends it anyway.
        assert!(relay.inject_by_kind(5910, &event.json()) > 0);
        assert_eq!(customer.answers(&event.id).error(), "stale_request", "{offset}");
        assert!(scene.world.effects().is_empty(), "{offset}");
    }
}

fn stale_requests_of_one_key_are_answered_once() {
    let relay = FakeRelay::start();
    let scene = Scene::on(&relay, &[]);
    let customer = &scene.customer;
    let ids: Vec<String> = (0..20)
        .map(|number| {
            let event = customer.draft("execute-tool", &note("old")).at(now() - 4000 - number).sign(&customer.keys);
            relay.inject_by_kind(5910, &event.json());
            event.id
        })
        .collect();
    customer.barrier();
    let answered = ids.iter().filter(|id| !customer.so_far(id).0.is_empty()).count();
    assert!((1..=2).contains(&answered), "{answered} of 20 were answered");
    assert!(scene.world.effects().is_empty());
}

fn a_request_inside_of_the_window_is_served() {
    let relay = FakeRelay::start();
    let scene = Scene::on(&relay, &[]);
    for offset in [-14 * 60, 45] {
        let draft = scene.customer.draft("execute-tool", &note("window")).at(now() + offset);
        let id = scene.customer.post(&draft);
        assert_eq!(scene.customer.answers(&id).text(), "noted", "{offset}");
    }
}

fn a_sealed_request_counts_by_the_time_inside() {
    let relay = FakeRelay::start();
    let scene = Scene::on(&relay, &[]);
    let customer = &scene.customer;
    // The wrap and the seal are hours old, as NIP-59 wants.
    assert_eq!(customer.ask_sealed("execute-tool", &note("now")).text(), "noted");
    let old = customer.post_sealed(&customer.draft("execute-tool", &note("old")).at(now() - 4000));
    let answers = customer.answers(&old);
    assert_eq!(answers.error(), "stale_request");
    assert!(answers.0.iter().all(|received| received.sealed));
    assert_eq!(scene.world.times("note old"), 0);
}

fn an_expired_request_is_not_answered() {
    let relay = FakeRelay::start();
    let scene = Scene::on(&relay, &[]);
    let customer = &scene.customer;
    let past = (now() - 10).to_string();
    let expired = customer.draft("execute-tool", &note("expired")).tag(&["expiration", &past]);
    let plain = customer.post(&expired);
    let (rumor, wrap) = sealed::send(&customer.keys, &customer.provider, &expired);
    customer.link.publish(&wrap);
    customer.barrier();
    customer.ask_sealed("list-tools", &json!(""));
    assert_eq!(customer.so_far(&plain).0.len(), 0);
    assert_eq!(customer.so_far(&rumor.id).0.len(), 0);
    assert_eq!(scene.world.times("note expired"), 0);
}

fn a_request_that_expires_later_is_served() {
    let relay = FakeRelay::start();
    let scene = Scene::on(&relay, &[]);
    let later = (now() + 600).to_string();
    let draft = scene.customer.draft("execute-tool", &note("later")).tag(&["expiration", &later]);
    let id = scene.customer.post(&draft);
    assert_eq!(scene.customer.answers(&id).text(), "noted");
}
