//! What gets no answer, as an answer would be a service to whoever sent it.

use nostr::key::Keys;
use serde_json::json;

use torture::nostr_side::customer::FEEDBACK;
use torture::nostr_side::event::{Draft, Event, hex_key, sign};
use torture::nostr_side::fake_relay::FakeRelay;
use torture::nostr_side::scene::Scene;
use torture::nostr_side::sealed::{self, SEAL, seal, wrap};
use torture::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] = &[
    case!(forged_requests_are_not_answered),
    case!(requests_to_others_are_not_answered),
    case!(wraps_that_cannot_be_opened_are_not_answered),
    case!(other_kinds_are_not_answered),
    case!(our_own_answers_are_no_requests),
];

/// Sends these to the provider and checks that nothing comes of them.
fn is_silent(scene: &Scene, relay: &FakeRelay, events: &[(&str, Event)]) {
    let before = relay.published().len();
    for (what, event) in events {
        assert!(relay.inject_by_kind(5910, &event.json()) > 0, "nobody listens: {what}");
    }
    scene.customer.barrier();
    scene.customer.ask_sealed("list-tools", &json!(""));
    let provider = &scene.provider.pubkey;
    let ids: Vec<&String> = events.iter().map(|(_, event)| &event.id).collect();
    let answers: Vec<Event> = relay
        .published()
        .into_iter()
        .skip(before)
        .filter(|event| event.pubkey == *provider && ids.iter().any(|id| event.has_tag("e", id)))
        .collect();
    assert_eq!(answers, []);
    // Two lists were asked for: one plain answer and one wrap, and nothing else has been said.
    let said = relay.published().into_iter().skip(before);
    let said = said.filter(|event| event.kind == sealed::WRAP && event.has_tag("p", &scene.customer.pubkey()));
    assert_eq!(said.count(), 1);
    assert!(scene.world.effects().is_empty(), "{:?}", scene.world.effects());
}

fn note() -> serde_json::Value {
    json!({ "name": "note", "parameters": { "tag": "silent" } })
}

fn forged_requests_are_not_answered() {
    let relay = FakeRelay::start();
    let scene = Scene::on(&relay, &[]);
    let customer = &scene.customer;
    let good = customer.draft("execute-tool", &note()).sign(&customer.keys);
    let mut other_content = good.clone();
    other_content.content = json!({ "name": "note", "parameters": { "tag": "forged" } }).to_string();
    let mut other_author = good.clone();
    other_author.pubkey = hex_key(&Keys::generate());
    let by_another = sign(customer.draft("execute-tool", &note()).unsigned(&customer.pubkey()), &Keys::generate());
    let mut no_signature = good.clone();
    no_signature.sig = "0".repeat(128);
    let mut wrong_id = good.clone();
    wrong_id.id = "0".repeat(64);
    let events = [
        ("other content under the id", other_content),
        ("other author", other_author),
        ("signed by another", by_another),
        ("no signature", no_signature),
        ("wrong id", wrong_id),
    ];
    is_silent(&scene, &relay, &events);
    // The genuine event is served, although its id came with lies before.
    relay.publish(&good);
    assert_eq!(customer.answers(&good.id).text(), "noted");
}

fn requests_to_others_are_not_answered() {
    let relay = FakeRelay::start();
    let scene = Scene::on(&relay, &[]);
    let (customer, other) = (&scene.customer, hex_key(&Keys::generate()));
    let to_other = customer.draft("execute-tool", &note()).without("p").tag(&["p", &other]).sign(&customer.keys);
    let list = customer.draft("list-tools", &json!("")).without("p").tag(&["p", &other]).sign(&customer.keys);
    let nobody = customer.draft("execute-tool", &note()).without("p").sign(&customer.keys);
    let (_, sealed_to_other) = sealed::send(&customer.keys, &other, &customer.draft("execute-tool", &note()));
    let events = [
        ("to another", to_other),
        ("a list of another", list),
        ("to nobody", nobody),
        ("sealed for another", sealed_to_other),
    ];
    is_silent(&scene, &relay, &events);
}

fn wraps_that_cannot_be_opened_are_not_answered() {
    let relay = FakeRelay::start();
    let scene = Scene::on(&relay, &[]);
    let (customer, provider) = (&scene.customer, scene.provider.pubkey.clone());
    let rumor = customer.draft("execute-tool", &note()).unsigned(&customer.pubkey());
    let garbage = Draft::new(sealed::WRAP, "no ciphertext").tag(&["p", &provider]).sign(&Keys::generate());
    let empty = Draft::new(sealed::WRAP, "").tag(&["p", &provider]).sign(&Keys::generate());
    let no_seal = wrap(&provider, "not even JSON");
    let rumor_without_seal = wrap(&provider, &rumor.json());
    let seal_for_another =
        wrap(&provider, &seal(&customer.keys, &hex_key(&Keys::generate()), SEAL, &rumor.json()).json());
    let seal_around_garbage = wrap(&provider, &seal(&customer.keys, &provider, SEAL, "nothing").json());
    let events = [
        ("garbage", garbage),
        ("empty", empty),
        ("no seal", no_seal),
        ("no seal around the request", rumor_without_seal),
        ("sealed for another", seal_for_another),
        ("garbage in a seal", seal_around_garbage),
    ];
    is_silent(&scene, &relay, &events);
}

fn other_kinds_are_not_answered() {
    let relay = FakeRelay::start();
    let scene = Scene::on(&relay, &[]);
    let customer = &scene.customer;
    let of_kind = |kind: u32| {
        let draft = Draft::new(kind, note().to_string()).tag(&["c", "execute-tool"]).tag(&["p", &customer.provider]);
        draft.sign(&customer.keys)
    };
    let events = [("5909", of_kind(5909)), ("1", of_kind(1)), ("25910", of_kind(25910)), ("4", of_kind(4))];
    is_silent(&scene, &relay, &events);
}

fn our_own_answers_are_no_requests() {
    let relay = FakeRelay::start();
    let scene = Scene::on(&relay, &[]);
    let answers = scene.customer.call("note", &json!({}));
    let before = relay.published().len();
    for received in &answers.0 {
        relay.inject_by_kind(5910, &received.event.json());
    }
    let feedback = Draft::new(FEEDBACK, "").tag(&["status", "error"]).tag(&["p", &scene.provider.pubkey]);
    relay.inject_by_kind(5910, &feedback.sign(&scene.customer.keys).json());
    scene.customer.barrier();
    let provider = &scene.provider.pubkey;
    let said = relay.published().into_iter().skip(before).filter(|event| event.pubkey == *provider);
    let said = said.filter(|event| ![31990, 10002].contains(&event.kind)).count();
    assert_eq!(said, 1, "nothing but the answer to the last question");
}
