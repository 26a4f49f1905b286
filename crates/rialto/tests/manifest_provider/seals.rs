//! Seals that lie about their author, and wraps around the wrong things.

use nostr::key::Keys;
use serde_json::json;

use torture::nostr_side::desk::Desk;
use torture::nostr_side::event::{Event, hex_key, sign};
use torture::nostr_side::messenger::{Messenger, Way, request};
use torture::nostr_side::sealed::{SEAL, WRAP, seal, wrap};
use torture::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] = &[
    case!(a_seal_by_another_than_the_author_is_dropped),
    case!(a_stranger_cannot_borrow_the_name_of_a_friend),
    case!(a_forged_seal_is_dropped),
    case!(wraps_in_wraps_are_dropped),
    case!(an_inner_event_with_a_wrong_id_cannot_take_the_id_of_another),
    case!(an_inner_event_under_many_ids_runs_at_most_once),
    case!(a_seal_of_another_kind_is_dropped),
];

/// A chat message with a request, by this author, who has not signed it.
fn rumor(customer: &Messenger, tag: &str) -> Event {
    customer.draft(Way::Sealed, &request("note", &json!({ "tag": tag }))).unsigned(&customer.pubkey())
}

fn a_seal_by_another_than_the_author_is_dropped() {
    let desk = Desk::unlimited();
    let provider = &desk.provider.pubkey;
    let inside = rumor(&desk.customer, "borrowed");
    let wraps: Vec<(&str, Event)> = (0..10)
        .map(|_| ("by another", wrap(provider, &seal(&Keys::generate(), provider, SEAL, &inside.json()).json())))
        .collect();
    desk.is_silent_about(&wraps);
    // The real author can still use it.
    desk.relay.publish(&wrap(provider, &seal(&desk.customer.keys, provider, SEAL, &inside.json()).json()));
    assert_eq!(desk.customer.answer(Way::Sealed, &inside.id).said(), "noted");
}

fn a_stranger_cannot_borrow_the_name_of_a_friend() {
    let friend = Keys::generate();
    let desk = Desk::new(&["--private", &hex_key(&friend)]);
    let friend = Messenger::with_keys(&desk.relay.url(), &desk.provider.pubkey, friend);
    let inside = rumor(&friend, "stolen");
    let provider = &desk.provider.pubkey;
    desk.inject(&wrap(provider, &seal(&Keys::generate(), provider, SEAL, &inside.json()).json()));
    friend.barrier();
    assert!(desk.world.effects().is_empty(), "{:?}", desk.world.effects());
    assert!(friend.answers(&inside.id).is_empty());
}

fn a_forged_seal_is_dropped() {
    let desk = Desk::unlimited();
    let (customer, provider) = (&desk.customer, &desk.provider.pubkey);
    let inside = rumor(customer, "forged");
    let good = seal(&customer.keys, provider, SEAL, &inside.json());
    let mut unsigned = good.clone();
    unsigned.sig = "0".repeat(128);
    let mut wrong_id = good.clone();
    wrong_id.id = "0".repeat(64);
    // The text is readable with the attacker's key, and the seal says that the customer wrote it.
    let attacker = Keys::generate();
    let mut renamed = seal(&attacker, provider, SEAL, &inside.json());
    renamed.pubkey = customer.pubkey();
    let renamed_and_signed = sign(renamed.clone(), &attacker);
    let wrapped = |event: &Event| wrap(provider, &event.json());
    let events = [
        ("no signature", wrapped(&unsigned)),
        ("wrong id", wrapped(&wrong_id)),
        ("renamed", wrapped(&renamed)),
        ("renamed and signed by the attacker", wrapped(&renamed_and_signed)),
    ];
    desk.is_silent_about(&events);
}

fn wraps_in_wraps_are_dropped() {
    let desk = Desk::unlimited();
    let (customer, provider) = (&desk.customer, &desk.provider.pubkey);
    let inside = rumor(customer, "nested");
    let sealed = seal(&customer.keys, provider, SEAL, &inside.json());
    let inner = wrap(provider, &sealed.json());
    let seal_around = |text: &str| wrap(provider, &seal(&customer.keys, provider, SEAL, text).json());
    let events = [
        ("a wrap in a wrap", wrap(provider, &inner.json())),
        ("a wrap in a seal", seal_around(&inner.json())),
        ("a seal in a seal", seal_around(&sealed.json())),
        ("no seal", wrap(provider, &inside.json())),
        ("signed, without a seal", wrap(provider, &sign(inside.clone(), &customer.keys).json())),
    ];
    desk.is_silent_about(&events);
}

fn an_inner_event_with_a_wrong_id_cannot_take_the_id_of_another() {
    let desk = Desk::unlimited();
    let (customer, provider) = (&desk.customer, &desk.provider.pubkey);
    let victim = rumor(customer, "victim");
    let mut liar = rumor(customer, "liar");
    liar.id.clone_from(&victim.id);
    let wrapped = |event: &Event| wrap(provider, &seal(&customer.keys, provider, SEAL, &event.json()).json());
    // It may be dropped or go by its true id, but the other's is not its own.
    desk.relay.publish(&wrapped(&liar));
    customer.barrier();
    assert!(customer.answers(&victim.id).is_empty());
    desk.relay.publish(&wrapped(&victim));
    assert_eq!(customer.answer(Way::Sealed, &victim.id).said(), "noted");
    assert_eq!(desk.world.times("note victim"), 1);
}

fn an_inner_event_under_many_ids_runs_at_most_once() {
    let desk = Desk::unlimited();
    let (customer, provider) = (&desk.customer, &desk.provider.pubkey);
    let mut inside = rumor(customer, "many");
    for number in 0..20 {
        inside.id = format!("{number:064x}");
        desk.relay.publish(&wrap(provider, &seal(&customer.keys, provider, SEAL, &inside.json()).json()));
    }
    customer.barrier();
    assert!(desk.world.times("note many") <= 1, "{:?}", desk.world.effects());
}

fn a_seal_of_another_kind_is_dropped() {
    let desk = Desk::unlimited();
    let (customer, provider) = (&desk.customer, &desk.provider.pubkey);
    let inside = rumor(customer, "kind");
    let events: Vec<(&str, Event)> = [1, 4, 14, 5910, WRAP]
        .map(|kind| ("another kind", wrap(provider, &seal(&customer.keys, provider, kind, &inside.json()).json())))
        .into();
    desk.is_silent_about(&events);
}
