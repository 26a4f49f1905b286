//! Ten thousand deliveries of a hundred requests: over five relays, in many wraps, in any order, before and after the
//! provider is killed.

use std::time::Duration;

use serde_json::json;

use torture::nostr_side::PATIENCE;
use torture::nostr_side::customer::Customer;
use torture::nostr_side::event::Event;
use torture::nostr_side::fake_relay::FakeRelay;
use torture::nostr_side::log::until;
use torture::nostr_side::random::Random;
use torture::nostr_side::sealed::{self, SEAL, WRAP};
use torture::nostr_side::world::World;
use torture::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] = &[
    case!(ten_thousand_deliveries_of_a_hundred_requests_run_a_hundred_times),
    case!(a_repeat_ten_seconds_later_gets_the_same_answer),
];

const REQUESTS: usize = 100;
const DELIVERIES: usize = 10_000;
const RELAYS: usize = 5;
/// Different wraps of each sealed request.
const WRAPS: usize = 20;

const FLAGS: [&str; 6] = ["--rate-per-key", "0", "--max-running", "200", "--max-running-per-key", "200"];

fn ten_thousand_deliveries_of_a_hundred_requests_run_a_hundred_times() {
    let relays: Vec<FakeRelay> = (0..RELAYS).map(|_| FakeRelay::start()).collect();
    let urls: Vec<String> = relays.iter().map(FakeRelay::url).collect();
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    let world = World::new();
    let mut provider = world.serve(&urls, &FLAGS);
    let customer = Customer::new(urls[0], &provider.pubkey);
    // Half of them plain, which have one form, and half of them sealed, which have many.
    let mut forms: Vec<Vec<Event>> = Vec::new();
    let mut ids = Vec::new();
    for number in 0..REQUESTS {
        let call = json!({ "name": "note", "parameters": { "tag": number.to_string() } });
        let draft = customer.draft("execute-tool", &call);
        let rumor = draft.unsigned(&customer.pubkey());
        ids.push(rumor.id.clone());
        forms.push(if number % 2 == 0 {
            vec![draft.sign(&customer.keys)]
        } else {
            let text = rumor.json();
            let seal = |_| sealed::seal(&customer.keys, &provider.pubkey, SEAL, &text).json();
            (0..WRAPS).map(seal).map(|seal| sealed::wrap(&provider.pubkey, &seal)).collect()
        });
    }
    let mut deliveries: Vec<(usize, &Event)> = (0..DELIVERIES)
        .map(|turn| {
            let forms = &forms[turn % REQUESTS];
            (turn % RELAYS, &forms[(turn / REQUESTS) % forms.len()])
        })
        .collect();
    Random::new(7).shuffle(&mut deliveries);
    relays.iter().for_each(|relay| relay.wait_for_subscription("5910"));
    let mut delivered = 0;
    let rounds = DELIVERIES / 4;
    for (round, part) in deliveries.chunks(rounds).enumerate() {
        for (relay, event) in part {
            delivered += relays[*relay].inject_by_kind(5910, &event.json()).min(1);
        }
        match round {
            // Every subscription is made anew.
            0 => relays.iter().for_each(|relay| relay.hang_up_on("5910")),
            // The record is all that is left.
            1 => {
                ids.iter().for_each(|id| drop(customer.wait(id, "an answer", |event| event.kind == 6910)));
                provider.process.kill();
                provider = world.serve(&urls, &FLAGS);
            }
            _ => {}
        }
        relays.iter().for_each(|relay| relay.wait_for_subscription("5910"));
    }
    // Connections that were cut take some deliveries with them, so those are made up for.
    for (relay, event) in deliveries.iter().cycle().take(DELIVERIES - delivered) {
        relays[*relay].inject_by_kind(5910, &event.json());
    }
    for (number, id) in ids.iter().enumerate() {
        customer.wait(id, "an answer", |event| event.kind == 6910);
        assert_eq!(world.times(&format!("note {number}")), 1, "request {number}");
    }
    // Each relay has a last word, so that everything before it has been read.
    for relay in &relays {
        let last = customer.draft("list-tools", &json!("")).sign(&customer.keys);
        relay.inject_by_kind(5910, &last.json());
        customer.wait(&last.id, "the last answer", |event| event.kind == 6910);
    }
    assert_eq!(world.effects().len(), REQUESTS);
    let mut responses: Vec<(String, String)> = customer
        .everything()
        .into_iter()
        .filter(|received| received.event.kind == 6910)
        .filter_map(|received| {
            let request = received.event.tag("e").to_owned();
            ids.contains(&request).then_some((request, received.event.id))
        })
        .collect();
    responses.sort();
    responses.dedup();
    assert_eq!(responses.len(), REQUESTS, "each request has one response, however often it was sent");
}

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
