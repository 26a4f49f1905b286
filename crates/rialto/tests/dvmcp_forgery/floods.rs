//! A hundred thousand events that are almost right, through the socket.

use serde_json::{Value, json};

use torture::nostr_side::customer::Customer;
use torture::nostr_side::event::{Event, sign};
use torture::nostr_side::fake_relay::FakeRelay;
use torture::nostr_side::random::Random;
use torture::nostr_side::scene::Scene;
use torture::nostr_side::sealed;
use torture::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] = &[case!(of_a_hundred_thousand_forged_events_none_is_run)];

const COUNT: usize = 100_000;

const FLAGS: [&str; 4] = ["--rate-per-key", "0", "--max-running", "100"];

/// Genuine requests that were never sent: whatever is changed in them, the original stays unknown to the provider.
fn genuine(customer: &Customer, count: usize) -> Vec<Event> {
    let draft = |number: usize| {
        let call = json!({ "name": "note", "parameters": { "tag": format!("forged {number}") } });
        customer.draft("execute-tool", &call)
    };
    (0..count)
        .map(|number| match number % 4 {
            0 => sealed::send(&customer.keys, &customer.provider, &draft(number)).1,
            _ => draft(number).sign(&customer.keys),
        })
        .collect()
}

fn flip_digit(text: &str, random: &mut Random) -> String {
    let place = random.below(text.len());
    let mut bytes = text.as_bytes().to_vec();
    let old = bytes[place];
    while bytes[place] == old {
        bytes[place] = b"0123456789abcdef"[random.below(16)];
    }
    String::from_utf8(bytes).unwrap()
}

/// The event with one thing changed, so that it is certainly wrong.
fn mutate(event: &Event, others: &[Event], stranger: &nostr::key::Keys, random: &mut Random) -> Event {
    let other = loop {
        let other = &others[random.below(others.len())];
        if other.id != event.id {
            break other;
        }
    };
    let mut forged = event.clone();
    match random.below(11) {
        0 => forged.sig = flip_digit(&event.sig, random),
        1 => forged.id = flip_digit(&event.id, random),
        2 => forged.pubkey = flip_digit(&event.pubkey, random),
        3 => forged.created_at += 1,
        4 => forged.content = format!("{} ", event.content),
        5 => forged.tags.push(vec!["x".to_owned()]),
        6 => forged.sig.clone_from(&other.sig),
        7 => forged.id.clone_from(&other.id),
        8 => forged.content.clone_from(&other.content),
        // Another content with the id that belongs to it, under the old signature.
        9 => {
            forged.content = format!("{} ", event.content);
            forged.id = forged.computed_id();
        }
        // Signed, but not by its author.
        _ => {
            forged = sign(forged, stranger);
            forged.content = format!("{} ", event.content);
        }
    }
    forged
}

fn of_a_hundred_thousand_forged_events_none_is_run() {
    let relay = FakeRelay::start();
    let mut scene = Scene::on(&relay, &FLAGS);
    let originals = genuine(&scene.customer, 40);
    let stranger = nostr::key::Keys::generate();
    let mut random = Random::new(59);
    for number in 0..COUNT / 2 {
        let original = &originals[number % originals.len()];
        let forged = mutate(original, &originals, &stranger, &mut random);
        // To check them all would take longer here than in the provider.
        assert!(number % 100 != 0 || forged.problem().is_some(), "this one is right: {forged:?}");
        // Twice: some clients believe what they have seen before.
        let text = forged.json();
        for _ in 0..2 {
            assert!(relay.inject_by_kind(5910, &text) > 0, "the provider has left");
        }
    }
    scene.customer.barrier();
    scene.customer.ask_sealed("list-tools", &json!(""));
    assert!(scene.world.effects().is_empty(), "{:?}", scene.world.effects());
    assert!(scene.provider.process.is_running());
    let said: Vec<Value> = relay
        .published()
        .iter()
        .filter(|event| event.pubkey == scene.provider.pubkey && [6910, 7000].contains(&event.kind))
        .map(Event::body)
        .collect();
    assert_eq!(said.len(), 1, "nothing was answered but the one question: {said:?}");
    // None of the lies has used up an original.
    for event in &originals {
        relay.publish(event);
    }
    for number in 0..originals.len() {
        scene.world.wait_for_effect(&format!("note forged {number}"));
    }
    assert_eq!(scene.world.effects().len(), originals.len());
}
