//! Many requests at once, out of order, over both wires, through many relays.

use std::collections::BTreeSet;

use serde_json::json;

use torture::nostr_side::customer::Customer;
use torture::nostr_side::desk::{Desk, UNLIMITED};
use torture::nostr_side::event::Event;
use torture::nostr_side::fake_relay::FakeRelay;
use torture::nostr_side::messenger::{BOTH, Messenger, Way, request};
use torture::nostr_side::random::Random;
use torture::nostr_side::sealed::{self, SEAL};
use torture::nostr_side::world::World;
use torture::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] = &[
    case!(fifty_requests_that_finish_out_of_order_get_their_own_answers),
    case!(both_wires_are_served_at_once),
    case!(a_request_through_several_relays_and_a_hundred_deliveries_runs_once),
];

fn fifty_requests_that_finish_out_of_order_get_their_own_answers() {
    let desk = Desk::unlimited();
    let mut waits: Vec<u64> = (0..50).map(|number| number * 20).collect();
    Random::new(4).shuffle(&mut waits);
    let ids: Vec<(Way, String, u64)> = waits
        .iter()
        .enumerate()
        .map(|(number, wait)| {
            let way = BOTH[number % 2];
            // Each has an answer of its own, which comes after a time of its own.
            let text = match number % 5 {
                0 => request("get_forecast", &json!({ "city": format!("city {wait}"), "tag": wait.to_string() })),
                1 => request("no_such_tool", &json!({})),
                _ => request("steps", &json!({ "count": 1, "ms": wait, "tag": wait.to_string() })),
            };
            (way, desk.customer.post(way, &text), *wait)
        })
        .collect();
    for (number, (way, id, wait)) in ids.iter().enumerate() {
        let answer = desk.customer.answer(*way, id);
        match number % 5 {
            0 => assert_eq!(answer.body()["forecast"], format!("Sunny in city {wait} for 1 days")),
            1 => assert_eq!(answer.error(), "unknown_tool"),
            _ => assert_eq!(answer.said(), "done"),
        }
    }
    desk.customer.barrier();
    for (_, id, _) in &ids {
        assert_eq!(desk.customer.answers(id).len(), 1);
    }
    assert_eq!(desk.world.effects().len(), 40);
}

fn both_wires_are_served_at_once() {
    let desk = Desk::unlimited();
    let dvmcp = Customer::with_keys(&desk.relay.url(), &desk.provider.pubkey, desk.customer.keys.clone());
    let mut ids = Vec::new();
    for number in 0..15 {
        let tag = |form: &str| format!("{form} {number}");
        let call = |form: &str| json!({ "name": "note", "parameters": { "text": tag(form), "tag": tag(form) } });
        let text = |form: &str| request("note", &json!({ "text": tag(form), "tag": tag(form) }));
        ids.push((tag("plain"), dvmcp.post(&dvmcp.draft("execute-tool", &call("plain")))));
        ids.push((tag("message"), desk.customer.post(Way::Message, &text("message"))));
        ids.push((tag("sealed"), dvmcp.post_sealed(&dvmcp.draft("execute-tool", &call("sealed")))));
        ids.push((tag("chat"), desk.customer.post(Way::Sealed, &text("chat"))));
    }
    for (tag, id) in &ids {
        let said = match tag.split_once(' ').unwrap().0 {
            "message" => desk.customer.answer(Way::Message, id).said(),
            "chat" => desk.customer.answer(Way::Sealed, id).said(),
            _ => dvmcp.answers(id).text(),
        };
        assert_eq!(said, *tag);
        assert_eq!(desk.world.times(&format!("note {tag}")), 1);
    }
    // Each in the form of its own wire, and in no other.
    dvmcp.barrier();
    desk.customer.barrier();
    for (tag, id) in &ids {
        let messages = desk.customer.answers(id).iter().filter(|answer| [4, 14].contains(&answer.event.kind)).count();
        let responses = dvmcp.so_far(id).responses().len();
        let own = matches!(tag.split_once(' ').unwrap().0, "message" | "chat");
        assert_eq!((messages, responses), if own { (1, 0) } else { (0, 1) }, "{tag}");
    }
    let distinct: BTreeSet<&String> = ids.iter().map(|(_, id)| id).collect();
    assert_eq!(distinct.len(), ids.len());
}

fn a_request_through_several_relays_and_a_hundred_deliveries_runs_once() {
    let relays: Vec<FakeRelay> = (0..3).map(|_| FakeRelay::start()).collect();
    let urls: Vec<String> = relays.iter().map(FakeRelay::url).collect();
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    let world = World::new();
    let mut provider = world.serve(&urls, &UNLIMITED);
    let customer = Messenger::new(urls[0], &provider.pubkey);
    let mut forms: Vec<(Way, String, Vec<Event>)> = Vec::new();
    for number in 0..10 {
        let way = BOTH[number % 2];
        let draft = customer.draft(way, &request("note", &json!({ "tag": number.to_string() })));
        let (id, event) = customer.finish(way, &draft);
        let rumor = draft.unsigned(&customer.pubkey());
        let rewrapped = |_| {
            let seal = sealed::seal(&customer.keys, &provider.pubkey, SEAL, &rumor.json());
            sealed::wrap(&provider.pubkey, &seal.json())
        };
        let all = if way == Way::Sealed { (0..10).map(rewrapped).collect() } else { vec![event] };
        forms.push((way, id, all));
    }
    let mine = format!("\"#p\":[\"{}\"]", provider.pubkey);
    relays.iter().for_each(|relay| relay.wait_for_subscription(&mine));
    let deliver = |round: usize| {
        for turn in 0..50 {
            for (number, (_, _, events)) in forms.iter().enumerate() {
                relays[(turn + number) % 3].inject(&mine, &events[(turn + round) % events.len()].json());
            }
        }
    };
    deliver(0);
    for (way, id, _) in &forms {
        customer.answer(*way, id);
    }
    provider.process.kill();
    provider = world.serve(&urls, &UNLIMITED);
    relays.iter().for_each(|relay| relay.wait_for_subscription(&mine));
    deliver(1);
    for relay in &relays {
        let (id, last) = customer.finish(Way::Message, &customer.draft(Way::Message, &request("none", &json!({}))));
        relay.inject(&mine, &last.json());
        customer.answer(Way::Message, &id);
    }
    for (number, (_, id, _)) in forms.iter().enumerate() {
        assert_eq!(world.times(&format!("note {number}")), 1, "request {number}");
        let distinct: BTreeSet<String> = customer.answers(id).into_iter().map(|answer| answer.event.id).collect();
        assert_eq!(distinct.len(), 1, "one answer, however often it is sent");
        // It can be heard on each relay, wherever the customer listens.
        if let Some(answer) = customer.answers(id).first().filter(|answer| answer.way == Way::Message) {
            for relay in &relays {
                relay.wait_for_event("the answer on each relay", |event| event.id == answer.event.id);
            }
        }
    }
    assert!(provider.process.is_running());
}
