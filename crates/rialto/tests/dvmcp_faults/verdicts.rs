//! Relays that refuse subscriptions, deliver too much, or too late.

use std::time::{Duration, Instant};

use serde_json::json;

use torture::nostr_side::customer::Customer;
use torture::nostr_side::fake_relay::FakeRelay;
use torture::nostr_side::world::World;
use torture::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] = &[
    case!(a_relay_that_refuses_subscriptions_is_left_in_peace),
    case!(a_relay_that_delivers_everything_four_times_runs_nothing_twice),
    case!(a_slow_relay_delays_only_itself),
];

fn a_relay_that_refuses_subscriptions_is_left_in_peace() {
    let (good, bad) = (FakeRelay::start(), FakeRelay::start());
    bad.rules(|rules| rules.closes = Some("restricted: members only"));
    let world = World::new();
    let provider = world.serve(&[&bad.url(), &good.url()], &[]);
    let customer = Customer::new(&good.url(), &provider.pubkey);
    for _ in 0..10 {
        customer.call("note", &json!({}));
    }
    let asked = bad.heard().iter().filter(|heard| heard.frame[0] == "REQ").count();
    assert!(asked <= 10, "it was asked {asked} times");
}

fn a_relay_that_delivers_everything_four_times_runs_nothing_twice() {
    let relay = FakeRelay::start();
    let world = World::new();
    let provider = world.serve(&[&relay.url()], &["--rate-per-key", "0"]);
    let customer = Customer::new(&relay.url(), &provider.pubkey);
    relay.rules(|rules| rules.copies = 4);
    for round in 0..5 {
        let tag = round.to_string();
        let call = json!({ "name": "note", "parameters": { "tag": tag } });
        let id = customer.post(&customer.draft("execute-tool", &call));
        customer.wait(&id, "the response", |event| event.kind == 6910);
        let id = customer.post_sealed(&customer.draft("execute-tool", &call));
        customer.wait(&id, "the sealed response", |event| event.kind == 6910);
        assert_eq!(world.times(&format!("note {round}")), 2);
    }
    let mut ids: Vec<String> = relay.published().into_iter().filter(|event| event.kind == 6910).map(|e| e.id).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 5, "one plain response to each plain request");
}

fn a_slow_relay_delays_only_itself() {
    let (good, slow) = (FakeRelay::start(), FakeRelay::start());
    slow.rules(|rules| rules.delay = Duration::from_secs(2));
    let world = World::new();
    let provider = world.serve(&[&slow.url(), &good.url()], &[]);
    let customer = Customer::new(&good.url(), &provider.pubkey);
    let event =
        customer.draft("execute-tool", &json!({ "name": "note", "parameters": { "tag": "one" } })).sign(&customer.keys);
    let begun = Instant::now();
    slow.publish(&event);
    good.publish(&event);
    customer.answers(&event.id);
    assert!(begun.elapsed() < Duration::from_millis(1900), "it took {:?}", begun.elapsed());
    // The slow copy is on its way; a later request behind it shows that it has arrived.
    let later = customer.draft("list-tools", &json!("")).sign(&customer.keys);
    slow.publish(&later);
    slow.wait_for_event("the answer to the later request", |answer| answer.has_tag("e", &later.id));
    assert_eq!(world.effects(), ["note one"]);
}
