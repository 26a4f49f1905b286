//! Relays that go away and come back.

use std::time::{Duration, Instant};

use serde_json::json;

use torture::nostr_side::PATIENCE;
use torture::nostr_side::customer::Customer;
use torture::nostr_side::fake_relay::FakeRelay;
use torture::nostr_side::log::until;
use torture::nostr_side::scene::Scene;
use torture::nostr_side::world::World;
use torture::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] = &[
    case!(a_call_whose_relay_goes_away_is_answered_when_it_is_back),
    case!(one_relay_of_three_is_enough),
    case!(a_request_through_three_relays_runs_once_and_is_answered_on_each),
    case!(a_relay_that_is_down_at_the_start_is_used_when_it_comes),
    case!(a_relay_that_lost_everything_gets_the_announcement_again),
    case!(a_relay_of_ours_that_lost_everything_gets_the_announcement_again),
    case!(a_relay_that_never_answers_holds_up_nobody),
];

const LISTENS: &str = "5910";

fn call(tag: &str) -> serde_json::Value {
    json!({ "name": "note", "parameters": { "tag": tag } })
}

fn a_call_whose_relay_goes_away_is_answered_when_it_is_back() {
    let relay = FakeRelay::start();
    let scene = Scene::on(&relay, &[]);
    let customer = &scene.customer;
    let gate = json!({ "name": "gate", "parameters": { "name": "g" } });
    let id = customer.post(&customer.draft("execute-tool", &gate));
    scene.world.wait_for_effect("gate");
    relay.stop();
    scene.world.open_gate("g");
    let stopped = relay.connected();
    // The tool finishes while there is no relay to tell.
    scene.world.wait_until_finished("gate");
    relay.come_back();
    let back = Instant::now();
    relay.wait_for_connections(stopped + 1);
    let answer = relay.wait_for_event("the answer", |event| event.kind == 6910 && event.has_tag("e", &id));
    assert!(back.elapsed() < Duration::from_secs(20), "it took {:?}", back.elapsed());
    assert_eq!(answer.body()["content"][0]["text"], "through");
    assert_eq!(scene.world.times("gate"), 1);
}

fn one_relay_of_three_is_enough() {
    let relays = [FakeRelay::start(), FakeRelay::start(), FakeRelay::start()];
    let world = World::new();
    let urls = relays.each_ref().map(FakeRelay::url);
    let provider = world.serve(&[&urls[0], &urls[1], &urls[2]], &[]);
    let customer = Customer::new(&urls[2], &provider.pubkey);
    relays[0].stop();
    relays[1].stop();
    for round in 0..5 {
        assert_eq!(customer.call("note", &json!({ "text": "up", "tag": round.to_string() })).text(), "up");
    }
    assert_eq!(world.effects().len(), 5);
}

fn a_request_through_three_relays_runs_once_and_is_answered_on_each() {
    let relays = [FakeRelay::start(), FakeRelay::start(), FakeRelay::start()];
    let world = World::new();
    let urls = relays.each_ref().map(FakeRelay::url);
    let provider = world.serve(&[&urls[0], &urls[1], &urls[2]], &[]);
    let customer = Customer::new(&urls[0], &provider.pubkey);
    let event = customer.draft("execute-tool", &call("three")).sign(&customer.keys);
    relays.iter().for_each(|relay| relay.wait_for_subscription(LISTENS));
    relays.iter().for_each(|relay| relay.publish(&event));
    customer.answers(&event.id);
    let answers = relays.each_ref().map(|relay| {
        relay.wait_for_event("the answer", |answer| answer.kind == 6910 && answer.has_tag("e", &event.id))
    });
    assert!(answers.iter().all(|answer| *answer == answers[0]), "one answer, the same on each relay");
    assert_eq!(world.effects(), ["note three"]);
}

fn a_relay_that_is_down_at_the_start_is_used_when_it_comes() {
    let (up, down) = (FakeRelay::start(), FakeRelay::start());
    down.stop();
    let world = World::new();
    let provider = world.serve(&[&up.url(), &down.url()], &["--name", "late"]);
    down.come_back();
    down.wait_for_event("the announcement", |event| event.kind == 31990);
    let customer = Customer::new(&down.url(), &provider.pubkey);
    assert_eq!(customer.call("note", &json!({ "text": "late" })).text(), "late");
}

fn a_relay_that_lost_everything_gets_the_announcement_again() {
    let relay = FakeRelay::start();
    let scene = Scene::on(&relay, &["--name", "keeper"]);
    relay.wait_for_event("the announcement", |event| event.kind == 31990);
    relay.stop();
    relay.forget();
    relay.come_back();
    until("the announcement is there again", PATIENCE, || {
        relay.stored().iter().any(|event| event.kind == 31990 && event.pubkey == scene.provider.pubkey)
    });
    assert!(relay.stored().iter().any(|event| event.kind == 10002), "and so is the list of relays");
}

fn a_relay_of_ours_that_lost_everything_gets_the_announcement_again() {
    let world = World::new();
    let (mut first, url) = world.relay();
    let provider = world.serve(&[&url], &["--name", "keeper"]);
    first.kill();
    let listen = torture::nostr_side::client::address(&url);
    let second = world.rialto("another-relay", &["relay", "--listen", &listen, "--json"]);
    second.json_line("url");
    until("the announcement is there again", PATIENCE, || {
        let log = torture::nostr_side::log::Log::default();
        let kept = log.clone();
        let client = torture::nostr_side::client::Client::connect(&url, move |_, event| kept.push(event));
        client.subscribe("all", &[json!({ "kinds": [31990], "authors": [provider.pubkey] })]);
        log.look(|all| !all.is_empty())
    });
    let customer = Customer::new(&url, &provider.pubkey);
    assert_eq!(customer.call("note", &json!({ "text": "again" })).text(), "again");
}

fn a_relay_that_never_answers_holds_up_nobody() {
    let (good, deaf) = (FakeRelay::start(), FakeRelay::start());
    deaf.rules(|rules| rules.deaf = true);
    let world = World::new();
    let provider = world.serve(&[&deaf.url(), &good.url()], &[]);
    let customer = Customer::new(&good.url(), &provider.pubkey);
    let begun = Instant::now();
    for round in 0..5 {
        assert_eq!(customer.call("note", &json!({ "text": "on", "tag": round.to_string() })).text(), "on");
    }
    assert!(begun.elapsed() < Duration::from_secs(8), "it took {:?}", begun.elapsed());
}
