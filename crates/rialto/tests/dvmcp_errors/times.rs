//! Requests from another time.

use serde_json::json;

use torture::nostr_side::event::now;
use torture::nostr_side::fake_relay::FakeRelay;
use torture::nostr_side::scene::Scene;
use torture::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] = &[case!(stale_requests_of_one_key_are_answered_once)];

fn note(tag: &str) -> serde_json::Value {
    json!({ "name": "note", "parameters": { "tag": tag } })
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
