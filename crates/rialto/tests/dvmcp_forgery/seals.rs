//! Seals that lie about their author, and wraps around the wrong things.

use nostr::key::Keys;
use serde_json::json;

use torture::nostr_side::customer::Customer;
use torture::nostr_side::event::{Event, hex_key, sign};
use torture::nostr_side::fake_relay::FakeRelay;
use torture::nostr_side::scene::Scene;
use torture::nostr_side::sealed::{SEAL, WRAP, encrypt, open, seal, send, wrap};
use torture::nostr_side::world::World;
use torture::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] = &[
    case!(a_seal_by_another_than_the_author_is_dropped),
    case!(a_stranger_cannot_borrow_the_name_of_a_friend),
    case!(an_inner_event_with_a_wrong_id_cannot_take_the_id_of_another),
    case!(an_inner_event_under_many_ids_runs_at_most_once),
    case!(a_seal_of_another_kind_is_dropped),
    case!(a_forged_seal_is_dropped),
    case!(wraps_in_wraps_are_dropped),
    case!(an_inner_event_to_another_provider_is_dropped),
    case!(an_inner_event_of_another_kind_is_dropped),
    case!(a_bomb_of_wraps_ends_and_harms_nobody),
];

fn note(customer: &Customer, tag: &str) -> torture::nostr_side::event::Draft {
    customer.draft("execute-tool", &json!({ "name": "note", "parameters": { "tag": tag } }))
}

/// Sends wraps that must have no effect and get no answer.
fn dropped(scene: &Scene, relay: &FakeRelay, wraps: &[Event]) {
    let before = relay.published().len();
    for event in wraps {
        relay.publish(event);
    }
    scene.customer.ask_sealed("list-tools", &json!(""));
    scene.customer.barrier();
    assert!(scene.world.effects().is_empty(), "{:?}", scene.world.effects());
    let said = relay.published().into_iter().skip(before).filter(|event| event.kind == WRAP);
    let said = said.filter(|event| event.tag("p") != scene.provider.pubkey).count();
    assert_eq!(said, 1, "one sealed question, one sealed answer");
}

fn a_seal_by_another_than_the_author_is_dropped() {
    let relay = FakeRelay::start();
    let scene = Scene::on(&relay, &[]);
    let (customer, provider) = (&scene.customer, &scene.provider.pubkey);
    let rumor = note(customer, "borrowed").unsigned(&customer.pubkey());
    let wraps: Vec<Event> =
        (0..20).map(|_| wrap(provider, &seal(&Keys::generate(), provider, SEAL, &rumor.json()).json())).collect();
    dropped(&scene, &relay, &wraps);
    // The real author can still use it.
    relay.publish(&wrap(provider, &seal(&customer.keys, provider, SEAL, &rumor.json()).json()));
    assert_eq!(customer.answers(&rumor.id).text(), "noted");
}

fn a_stranger_cannot_borrow_the_name_of_a_friend() {
    let relay = FakeRelay::start();
    let (world, friend) = (World::new(), Keys::generate());
    let provider = world.serve(&[&relay.url()], &["--private", &hex_key(&friend)]);
    let friend = Customer::with_keys(&relay.url(), &provider.pubkey, friend);
    let rumor = note(&friend, "stolen").unsigned(&friend.pubkey());
    // The plain inner event says "friend"; the one who can be proved to have written it is a stranger.
    relay.publish(&wrap(&provider.pubkey, &seal(&Keys::generate(), &provider.pubkey, SEAL, &rumor.json()).json()));
    friend.ask_sealed("list-tools", &json!(""));
    assert_eq!(world.times("note stolen"), 0);
    assert_eq!(friend.so_far(&rumor.id).0.len(), 0);
}

fn an_inner_event_with_a_wrong_id_cannot_take_the_id_of_another() {
    let relay = FakeRelay::start();
    let scene = Scene::on(&relay, &[]);
    let (customer, provider) = (&scene.customer, &scene.provider.pubkey);
    let victim = note(&scene.another_customer(), "victim").unsigned(&customer.pubkey());
    let mut liar = note(customer, "liar").unsigned(&customer.pubkey());
    liar.id.clone_from(&victim.id);
    let wrapped = |event: &Event| wrap(provider, &seal(&customer.keys, provider, SEAL, &event.json()).json());
    // It may be dropped or go by its true id, but the other's is not its own.
    relay.publish(&wrapped(&liar));
    customer.ask_sealed("list-tools", &json!(""));
    assert_eq!(customer.so_far(&victim.id).0.len(), 0);
    relay.publish(&wrapped(&victim));
    assert_eq!(customer.answers(&victim.id).text(), "noted");
    assert_eq!(scene.world.times("note victim"), 1);
}

fn an_inner_event_under_many_ids_runs_at_most_once() {
    let relay = FakeRelay::start();
    let scene = Scene::on(&relay, &[]);
    let (customer, provider) = (&scene.customer, &scene.provider.pubkey);
    let mut rumor = note(customer, "many").unsigned(&customer.pubkey());
    for number in 0..20 {
        rumor.id = format!("{number:064x}");
        relay.publish(&wrap(provider, &seal(&customer.keys, provider, SEAL, &rumor.json()).json()));
    }
    customer.ask_sealed("list-tools", &json!(""));
    customer.call("note", &json!({}));
    assert!(scene.world.times("note many") <= 1, "{:?}", scene.world.effects());
}

fn a_seal_of_another_kind_is_dropped() {
    let relay = FakeRelay::start();
    let scene = Scene::on(&relay, &[]);
    let (customer, provider) = (&scene.customer, &scene.provider.pubkey);
    let rumor = note(customer, "kind").unsigned(&customer.pubkey());
    let wraps: Vec<Event> = [1, 4, 14, 5910, WRAP]
        .map(|kind| wrap(provider, &seal(&customer.keys, provider, kind, &rumor.json()).json()))
        .into();
    dropped(&scene, &relay, &wraps);
}

fn a_forged_seal_is_dropped() {
    let relay = FakeRelay::start();
    let scene = Scene::on(&relay, &[]);
    let (customer, provider) = (&scene.customer, &scene.provider.pubkey);
    let rumor = note(customer, "forged").unsigned(&customer.pubkey());
    let good = seal(&customer.keys, provider, SEAL, &rumor.json());
    let mut unsigned = good.clone();
    unsigned.sig = "0".repeat(128);
    let mut wrong_id = good.clone();
    wrong_id.id = "0".repeat(64);
    // The text is readable with the attacker's key, and the seal says that the customer wrote it.
    let attacker = Keys::generate();
    let mut renamed = seal(&attacker, provider, SEAL, &rumor.json());
    renamed.pubkey = customer.pubkey();
    let renamed_and_signed = sign(renamed.clone(), &attacker);
    let wraps = [unsigned, wrong_id, renamed, renamed_and_signed].map(|seal| wrap(provider, &seal.json()));
    dropped(&scene, &relay, &wraps);
}

fn wraps_in_wraps_are_dropped() {
    let relay = FakeRelay::start();
    let scene = Scene::on(&relay, &[]);
    let (customer, provider) = (&scene.customer, &scene.provider.pubkey);
    let inner = send(&customer.keys, provider, &note(customer, "nested")).1;
    let twice = wrap(provider, &inner.json());
    let sealed_wrap = wrap(provider, &seal(&customer.keys, provider, SEAL, &inner.json()).json());
    let plain = note(customer, "nested").sign(&customer.keys);
    let wrapped_plain = wrap(provider, &plain.json());
    dropped(&scene, &relay, &[twice, sealed_wrap, wrapped_plain]);
}

fn an_inner_event_to_another_provider_is_dropped() {
    let relay = FakeRelay::start();
    let scene = Scene::on(&relay, &[]);
    let (customer, provider) = (&scene.customer, &scene.provider.pubkey);
    let draft = note(customer, "other").without("p").tag(&["p", &hex_key(&Keys::generate())]);
    let sealed = |draft| send(&customer.keys, provider, draft).1;
    dropped(&scene, &relay, &[sealed(&draft)]);
}

fn an_inner_event_of_another_kind_is_dropped() {
    let relay = FakeRelay::start();
    let scene = Scene::on(&relay, &[]);
    let (customer, provider) = (&scene.customer, &scene.provider.pubkey);
    let wraps: Vec<Event> = [13, 15, 6910, 7000, 25910]
        .map(|kind| {
            let content = json!({ "name": "note", "parameters": { "tag": "kind" } }).to_string();
            let draft =
                torture::nostr_side::event::Draft::new(kind, content).tag(&["c", "execute-tool"]).tag(&["p", provider]);
            send(&customer.keys, provider, &draft).1
        })
        .into();
    dropped(&scene, &relay, &wraps);
}

fn a_bomb_of_wraps_ends_and_harms_nobody() {
    let relay = FakeRelay::start();
    let scene = Scene::on(&relay, &[]);
    let provider = &scene.provider.pubkey;
    let once = Keys::generate();
    // A text of the largest size that NIP-44 has, and a message that says it is larger than it is.
    let long = encrypt(&once, provider, &"x".repeat(60_000));
    let mut wraps = vec![wrap(provider, &"[".repeat(60_000))];
    for content in [long[..long.len() / 2].to_owned(), "A".repeat(200_000), format!("Ag{}", "/".repeat(100_000))] {
        let draft = torture::nostr_side::event::Draft::new(WRAP, content).tag(&["p", provider]);
        wraps.push(draft.sign(&once));
    }
    dropped(&scene, &relay, &wraps);
    let (rumor, wrap) = send(&scene.customer.keys, provider, &note(&scene.customer, "after"));
    assert_eq!(rumor.sig, "");
    scene.customer.link.publish(&wrap);
    assert_eq!(scene.customer.answers(&rumor.id).text(), "noted");
    let opened =
        relay.wait_for_event("an answer", |event| event.kind == WRAP && event.has_tag("p", &scene.customer.pubkey()));
    assert_eq!(open(&scene.customer.keys, &opened).seal.pubkey, *provider);
}
