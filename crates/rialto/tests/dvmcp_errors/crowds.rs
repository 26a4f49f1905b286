//! Who may ask, and how much.

use nostr::key::Keys;
use serde_json::json;

use crate::nostr_side::customer::{Answers, Customer};
use crate::nostr_side::event::hex_key;
use crate::nostr_side::fake_relay::FakeRelay;
use crate::nostr_side::scene::Scene;
use crate::nostr_side::world::World;
use crate::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] = &[
    case!(strangers_may_not_use_a_private_service),
    case!(a_denied_key_is_unauthorized),
    case!(too_many_requests_of_one_key_are_limited_without_an_answer_to_each),
    case!(the_limit_of_one_key_does_not_touch_others),
    case!(too_many_running_calls_of_one_key_are_limited),
    case!(too_many_running_calls_of_all_are_busy),
    case!(a_refused_request_does_not_run_later),
];

/// The codes of all errors among these.
fn codes(all: &[Answers]) -> Vec<String> {
    all.iter()
        .filter(|answers| !answers.0.is_empty() && answers.body()["isError"] == true)
        .map(Answers::error)
        .collect()
}

fn strangers_may_not_use_a_private_service() {
    let relay = FakeRelay::start();
    let (world, friend) = (World::new(), Keys::generate());
    let provider = world.serve(&[&relay.url()], &["--private", &hex_key(&friend)]);
    let stranger = Customer::new(&relay.url(), &provider.pubkey);
    let call = json!({ "name": "note", "parameters": { "tag": "stranger" } });
    assert_eq!(stranger.ask("execute-tool", &call).error(), "unauthorized");
    assert_eq!(stranger.ask_sealed("execute-tool", &call).error(), "unauthorized");
    assert_eq!(stranger.ask("list-tools", &json!("")).error(), "unauthorized");
    let friend = Customer::with_keys(&relay.url(), &provider.pubkey, friend);
    assert_eq!(friend.call("note", &json!({ "text": "hello" })).text(), "hello");
    assert_eq!(world.effects(), ["note"]);
}

fn a_denied_key_is_unauthorized() {
    let relay = FakeRelay::start();
    let (world, denied) = (World::new(), Keys::generate());
    let provider = world.serve(&[&relay.url()], &["--deny", &hex_key(&denied)]);
    let customer = Customer::with_keys(&relay.url(), &provider.pubkey, denied);
    assert_eq!(customer.call("note", &json!({})).error(), "unauthorized");
    let other = Customer::new(&relay.url(), &provider.pubkey);
    assert_eq!(other.call("note", &json!({ "text": "hello" })).text(), "hello");
    assert_eq!(world.effects(), ["note"]);
}

fn too_many_requests_of_one_key_are_limited_without_an_answer_to_each() {
    let scene = Scene::new(&["--rate-per-key", "3"]);
    let customer = &scene.customer;
    let call = json!({ "name": "note", "parameters": {} });
    let ids: Vec<String> = (0..12).map(|_| customer.post(&customer.draft("execute-tool", &call))).collect();
    let refused = customer.wait_for_error(&ids);
    assert_eq!(refused.error(), "rate_limited");
    // Another customer's answer shows that all twelve have been looked at.
    scene.another_customer().barrier();
    let all: Vec<Answers> = ids.iter().map(|id| customer.so_far(id)).collect();
    assert!(codes(&all).len() <= 2, "at most one such answer in ten seconds: {:?}", codes(&all));
    let served = scene.world.times("note");
    assert!((3..=4).contains(&served), "{served} were run");
}

fn the_limit_of_one_key_does_not_touch_others() {
    let scene = Scene::new(&["--rate-per-key", "2"]);
    let call = json!({ "name": "note", "parameters": {} });
    let customer = &scene.customer;
    let ids: Vec<String> = (0..6).map(|_| customer.post(&customer.draft("execute-tool", &call))).collect();
    assert_eq!(customer.wait_for_error(&ids).error(), "rate_limited");
    assert_eq!(scene.another_customer().call("note", &json!({ "text": "mine" })).text(), "mine");
}

fn too_many_running_calls_of_one_key_are_limited() {
    let scene = Scene::new(&["--max-running-per-key", "2", "--rate-per-key", "0"]);
    let customer = &scene.customer;
    let call = json!({ "name": "gate", "parameters": { "name": "g" } });
    let ids: Vec<String> = (0..3).map(|_| customer.post(&customer.draft("execute-tool", &call))).collect();
    assert_eq!(customer.answers(&ids[2]).error(), "rate_limited");
    let other = scene.another_customer();
    assert_eq!(other.call("note", &json!({ "text": "mine" })).text(), "mine");
    scene.world.open_gate("g");
    for id in &ids[..2] {
        assert_eq!(customer.answers(id).text(), "through");
    }
    assert_eq!(customer.call("note", &json!({ "text": "room" })).text(), "room");
    assert_eq!(scene.world.times("gate"), 2);
}

fn too_many_running_calls_of_all_are_busy() {
    let scene = Scene::new(&["--max-running", "2", "--rate-per-key", "0"]);
    let call = json!({ "name": "gate", "parameters": { "name": "g" } });
    let customers: Vec<Customer> = (0..3).map(|_| scene.another_customer()).collect();
    let ids: Vec<String> =
        customers.iter().map(|customer| customer.post(&customer.draft("execute-tool", &call))).collect();
    assert_eq!(customers[2].answers(&ids[2]).error(), "busy");
    scene.world.open_gate("g");
    for (customer, id) in customers.iter().zip(&ids).take(2) {
        assert_eq!(customer.answers(id).text(), "through");
    }
    assert_eq!(customers[2].call("note", &json!({ "text": "room" })).text(), "room");
}

fn a_refused_request_does_not_run_later() {
    let scene = Scene::new(&["--max-running", "1", "--rate-per-key", "0"]);
    let customer = &scene.customer;
    let gate = json!({ "name": "gate", "parameters": { "name": "g" } });
    let first = customer.post(&customer.draft("execute-tool", &gate));
    scene.world.wait_for_effect("gate");
    let note = customer.draft("execute-tool", &json!({ "name": "note", "parameters": { "tag": "refused" } }));
    let refused = customer.post(&note);
    assert_eq!(customer.answers(&refused).error(), "busy");
    scene.world.open_gate("g");
    customer.answers(&first);
    // The same event again is a repeat, not a new request.
    customer.link.send(&json!(["EVENT", note.sign(&customer.keys)]));
    customer.barrier();
    assert_eq!(scene.world.times("note refused"), 0);
}
