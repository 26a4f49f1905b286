//! Requests that are sent again because their answer was lost.

use std::time::Duration;

use serde_json::json;

use torture::nostr_side::PATIENCE;
use torture::nostr_side::customer::Customer;
use torture::nostr_side::event::Event;
use torture::nostr_side::fake_relay::FakeRelay;
use torture::nostr_side::log::until;
use torture::nostr_side::sealed::WRAP;
use torture::nostr_side::world::World;
use torture::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] = &[case!(a_repeat_ten_seconds_later_gets_the_same_answer)];

fn a_repeat_ten_seconds_later_gets_the_same_answer() {
    let relay = FakeRelay::start();
    let world = World::new();
    let provider = world.serve(&[&relay.url()], &["--rate-per-key", "0"]);
    let customer = Customer::new(&relay.url(), &provider.pubkey);
    let call = |tag: &str| customer.draft("execute-tool", &json!({ "name": "note", "parameters": { "tag": tag } }));
    let plain = call("plain").sign(&customer.keys);
    relay.publish(&plain);
    let first = customer.answers(&plain.id).response().clone();
    let draft = call("sealed");
    let sealed = customer.post_sealed(&draft);
    let first_sealed = customer.answers(&sealed).response().clone();
    let sent = || relay.published().iter().filter(|answer| answer.id == first.id).count();
    let me = customer.pubkey();
    let sent_sealed = || relay.published().iter().filter(|wrap| wrap.kind == WRAP && wrap.has_tag("p", &me)).count();
    let before = (sent(), sent_sealed());
    // Repeats at once get nothing, repeats later get what was said before.
    until("both answers are sent again", PATIENCE, || {
        relay.inject_by_kind(5910, &plain.json());
        customer.post_sealed(&draft);
        std::thread::sleep(Duration::from_millis(200));
        sent() > before.0 && sent_sealed() > before.1
    });
    assert_eq!((world.times("note plain"), world.times("note sealed")), (1, 1));
    let is_other = |answer: &Event| answer.kind == 6910 && answer.has_tag("e", &plain.id) && answer.id != first.id;
    assert!(!relay.published().iter().any(is_other), "a repeat has the very same answer");
    let again = customer.so_far(&sealed);
    assert!(again.responses().iter().all(|answer| **answer == first_sealed), "{again:#?}");
    assert!(again.0.iter().all(|received| received.sealed));
}
