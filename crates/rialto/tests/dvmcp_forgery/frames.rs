//! Frames that are no good events at all, from a relay that wants to do harm.

use serde_json::json;

use torture::nostr_side::fake_relay::FakeRelay;
use torture::nostr_side::scene::Scene;
use torture::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] =
    &[case!(frames_that_are_no_events_harm_nobody), case!(a_tampered_copy_under_a_known_id_changes_nothing)];

fn frames_that_are_no_events_harm_nobody() {
    let relay = FakeRelay::start();
    let mut scene = Scene::on(&relay, &[]);
    let good =
        scene.customer.draft("execute-tool", &json!({ "name": "note", "parameters": {} })).sign(&scene.customer.keys);
    let text = good.json();
    let frames = [
        "null".to_owned(),
        "7".to_owned(),
        "\"event\"".to_owned(),
        "{}".to_owned(),
        "[]".to_owned(),
        "{\"id\":7}".to_owned(),
        text.replace("\"kind\":5910", "\"kind\":-1"),
        text.replace("\"kind\":5910", "\"kind\":99999999999"),
        text.replace("\"kind\":5910", "\"kind\":\"5910\""),
        text.replace("\"created_at\":", "\"created_at\":-"),
        text.replace("\"created_at\":", "\"created_at\":9999999999999999999999"),
        text.replace("\"tags\":[", "\"tags\":[[],[[]],"),
        text.replace("\"tags\":[", "\"tags\":[7,"),
        text.replace("\"tags\":[", &format!("\"tags\":[{}", "[\"p\",\"x\"],".repeat(20_000))),
        text.replace("\"content\":", "\"content\":null,\"content\":"),
        format!("{}{}", "[".repeat(100_000), "]".repeat(100_000)),
        text.replace(&good.sig, "zz"),
        text.replace(&good.id, ""),
        "{unbalanced".to_owned(),
    ];
    for frame in &frames {
        assert!(relay.inject_by_kind(5910, frame) > 0, "the provider has left before {:.80}", frame);
        // A provider may leave a relay that talks nonsense, but must come back.
        relay.wait_for_subscription("5910");
    }
    scene.customer.barrier();
    assert!(scene.world.effects().is_empty(), "{:?}", scene.world.effects());
    assert!(scene.provider.process.is_running());
    assert_eq!(scene.customer.call("note", &json!({ "text": "on" })).text(), "on");
}

fn a_tampered_copy_under_a_known_id_changes_nothing() {
    let relay = FakeRelay::start();
    let scene = Scene::on(&relay, &[]);
    let customer = &scene.customer;
    let gate = json!({ "name": "gate", "parameters": { "name": "g", "tag": "good" } });
    let good = customer.draft("execute-tool", &gate).sign(&customer.keys);
    relay.publish(&good);
    scene.world.wait_for_effect("gate good");
    for round in 0..20 {
        let mut bad = good.clone();
        bad.content = json!({ "name": "note", "parameters": { "tag": format!("bad {round}") } }).to_string();
        relay.inject_by_kind(5910, &bad.json());
        // The answer to the first must go to its author, not to whom a copy names.
        bad.pubkey = "ab".repeat(32);
        relay.inject_by_kind(5910, &bad.json());
    }
    customer.barrier();
    scene.world.open_gate("g");
    assert_eq!(customer.answers(&good.id).text(), "through");
    assert_eq!(scene.world.effects(), ["gate good"]);
    let to_others =
        relay.published().into_iter().filter(|event| event.kind == 6910 && event.has_tag("p", &"ab".repeat(32)));
    assert_eq!(to_others.count(), 0);
}
