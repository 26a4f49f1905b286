//! Who may ask, and how much.

use std::time::Duration;

use nostr::key::Keys;
use serde_json::json;

use torture::nostr_side::PATIENCE;
use torture::nostr_side::customer::{Answers, Customer};
use torture::nostr_side::event::{Draft, hex_key};
use torture::nostr_side::fake_relay::FakeRelay;
use torture::nostr_side::log::until;
use torture::nostr_side::scene::Scene;
use torture::nostr_side::world::World;
use torture::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] = &[
    case!(strangers_may_not_use_a_private_service),
    case!(every_request_of_a_stranger_is_told_that_it_is_unauthorized),
    case!(a_denied_key_is_unauthorized),
    case!(too_many_requests_of_one_key_are_limited_without_an_answer_to_each),
    case!(the_limit_of_one_key_does_not_touch_others),
    case!(calls_beyond_the_limit_of_one_key_wait_and_hold_up_nobody_else),
    case!(calls_beyond_the_limit_of_all_wait),
    case!(more_than_can_wait_is_busy),
    case!(a_request_refused_as_busy_does_not_run_later),
    case!(a_request_refused_by_the_rate_limit_does_not_run_later),
];

/// How many of these were told that they failed.
fn refusals(all: &[Answers]) -> usize {
    all.iter().filter(|answers| answers.statuses().contains(&"error")).count()
}

fn strangers_may_not_use_a_private_service() {
    let relay = FakeRelay::start();
    let (world, friend) = (World::new(), Keys::generate());
    let provider = world.serve(&[&relay.url()], &["--private", &hex_key(&friend)]);
    let stranger = Customer::new(&relay.url(), &provider.pubkey);
    let call = json!({ "name": "note", "parameters": { "tag": "stranger" } });
    assert_eq!(stranger.ask("execute-tool", &call).error(), "unauthorized");
    let friend = Customer::with_keys(&relay.url(), &provider.pubkey, friend);
    assert_eq!(friend.call("note", &json!({ "text": "hello" })).text(), "hello");
    assert_eq!(world.effects(), ["note"]);
}

fn every_request_of_a_stranger_is_told_that_it_is_unauthorized() {
    let relay = FakeRelay::start();
    let world = World::new();
    let provider = world.serve(&[&relay.url()], &["--private", &hex_key(&Keys::generate())]);
    let stranger = Customer::new(&relay.url(), &provider.pubkey);
    let call = json!({ "name": "note", "parameters": {} });
    let ids = [
        stranger.post(&stranger.draft("execute-tool", &call)),
        stranger.post(&stranger.draft("list-tools", &json!(""))),
        stranger.post_sealed(&stranger.draft("execute-tool", &call)),
    ];
    for id in ids {
        assert_eq!(stranger.answers_within(&id, Duration::from_secs(5)).error(), "unauthorized");
    }
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
    assert!(refusals(&all) <= 2, "at most one such answer in ten seconds: {}", refusals(&all));
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

fn gate() -> serde_json::Value {
    json!({ "name": "gate", "parameters": { "name": "g" } })
}

fn calls_beyond_the_limit_of_one_key_wait_and_hold_up_nobody_else() {
    let scene = Scene::new(&["--max-running-per-key", "2", "--rate-per-key", "0"]);
    let customer = &scene.customer;
    let ids: Vec<String> = (0..4).map(|_| customer.post(&customer.draft("execute-tool", &gate()))).collect();
    let other = scene.another_customer();
    assert_eq!(other.call("note", &json!({ "text": "mine" })).text(), "mine");
    until("two have begun", PATIENCE, || scene.world.times("gate") >= 2);
    customer.barrier();
    assert_eq!(scene.world.times("gate"), 2, "no more than two at once");
    let begun = ids.iter().filter(|id| customer.so_far(id).statuses().contains(&"processing")).count();
    assert_eq!(begun, 2, "what waits is not being processed");
    scene.world.open_gate("g");
    for id in &ids {
        assert_eq!(customer.answers(id).text(), "through");
    }
}

fn calls_beyond_the_limit_of_all_wait() {
    let scene = Scene::new(&["--max-running", "2", "--rate-per-key", "0"]);
    let customers: Vec<Customer> = (0..4).map(|_| scene.another_customer()).collect();
    let ids: Vec<String> =
        customers.iter().map(|customer| customer.post(&customer.draft("execute-tool", &gate()))).collect();
    scene.customer.barrier();
    assert!(scene.world.times("gate") <= 2, "{} at once", scene.world.times("gate"));
    scene.world.open_gate("g");
    for (customer, id) in customers.iter().zip(&ids) {
        assert_eq!(customer.answers(id).text(), "through");
    }
    assert_eq!(scene.world.times("gate"), 4);
}

/// One call runs and as many as can are waiting; gives the draft and the id of one that was refused.
fn crowd(scene: &Scene) -> (Vec<Draft>, String) {
    const MANY: usize = 400;
    let customer = &scene.customer;
    let first = customer.post(&customer.draft("execute-tool", &gate()));
    scene.world.wait_for_effect("gate");
    let drafts: Vec<Draft> = (0..MANY)
        .map(|number| {
            customer.draft("execute-tool", &json!({ "name": "note", "parameters": { "tag": number.to_string() } }))
        })
        .collect();
    let ids: Vec<String> = drafts.iter().map(|draft| customer.post(draft)).collect();
    let refused = customer.wait_for_error(&ids);
    assert_eq!(refused.error(), "busy");
    let id = refused.response().tag("e").to_owned();
    scene.world.open_gate("g");
    assert_eq!(customer.answers(&first).text(), "through");
    (drafts, id)
}

fn more_than_can_wait_is_busy() {
    let scene = Scene::new(&["--max-running", "1", "--rate-per-key", "0"]);
    let (drafts, refused) = crowd(&scene);
    let customer = &scene.customer;
    // Those who waited are served, and then there is room again.
    let first = drafts[0].sign(&customer.keys).id;
    assert_eq!(customer.answers(&first).text(), "noted");
    assert_eq!(customer.call("note", &json!({ "text": "room" })).text(), "room");
    assert_eq!(customer.so_far(&refused).error(), "busy");
}

fn a_request_refused_as_busy_does_not_run_later() {
    let relay = FakeRelay::start();
    let flags = ["--max-running", "1", "--rate-per-key", "0"];
    let scene = Scene::on(&relay, &flags);
    let (drafts, refused) = crowd(&scene);
    does_not_run_later(scene, &relay, &drafts, &refused, &flags);
}

fn a_request_refused_by_the_rate_limit_does_not_run_later() {
    let relay = FakeRelay::start();
    // One more each second.
    let flags = ["--rate-per-key", "60"];
    let scene = Scene::on(&relay, &flags);
    let customer = &scene.customer;
    let drafts: Vec<Draft> = (0..70)
        .map(|number| {
            customer.draft("execute-tool", &json!({ "name": "note", "parameters": { "tag": number.to_string() } }))
        })
        .collect();
    let ids: Vec<String> = drafts.iter().map(|draft| customer.post(draft)).collect();
    let refused = customer.wait_for_error(&ids);
    assert_eq!(refused.error(), "rate_limited");
    let id = refused.response().tag("e").to_owned();
    does_not_run_later(scene, &relay, &drafts, &id, &flags);
}

/// Who was told that a request failed may have asked again; the relay still has the first one, and gives it out again
/// whenever the provider connects.
#[track_caller]
fn does_not_run_later(mut scene: Scene, relay: &FakeRelay, drafts: &[Draft], refused: &str, flags: &[&str]) {
    let customer = &scene.customer;
    let number = drafts.iter().position(|draft| draft.sign(&customer.keys).id == refused).unwrap();
    let other = scene.another_customer();
    for _ in 0..3 {
        let connected = relay.connected();
        relay.hang_up_on("5910");
        relay.wait_for_connections(connected + 1);
        relay.wait_for_subscription("5910");
        other.barrier();
    }
    assert_eq!(scene.world.times(&format!("note {number}")), 0, "it failed, and then it was run");
    scene.provider.process.stop();
    scene.provider = scene.world.serve(&[&relay.url()], flags);
    other.barrier();
    other.call("note", &json!({}));
    assert_eq!(scene.world.times(&format!("note {number}")), 0, "it failed, and then it was run after a restart");
}
