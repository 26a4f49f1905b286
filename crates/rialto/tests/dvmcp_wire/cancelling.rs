//! `cancel-execution`.

use serde_json::json;

use torture::nostr_side::scene::Scene;
use torture::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] = &[
    case!(a_running_call_is_cancelled_up_to_the_server),
    case!(a_finished_call_is_not_cancelled),
    case!(a_waiting_call_is_cancelled_and_never_runs),
    case!(nobody_cancels_the_call_of_another),
    case!(an_unknown_call_is_not_cancelled),
    case!(a_sealed_call_is_cancelled_by_a_sealed_request),
];

const GATE: &str = "gate here";

fn gate() -> serde_json::Value {
    json!({ "name": "gate", "parameters": { "name": "never", "tag": "here" } })
}

fn a_running_call_is_cancelled_up_to_the_server() {
    let scene = Scene::new(&[]);
    let customer = &scene.customer;
    let id = customer.post(&customer.draft("execute-tool", &gate()));
    scene.world.wait_for_effect(GATE);
    let cancel = customer.post(&customer.draft("cancel-execution", &json!("")).tag(&["e", &id]));
    let answers = customer.answers(&cancel);
    assert_eq!(answers.response().tag("c"), "cancel-execution-response");
    assert_eq!(answers.body()["cancelled"], true);
    let cancelled = customer.answers(&id);
    assert_eq!(cancelled.error(), "cancelled");
    assert_eq!(cancelled.statuses(), ["processing", "error"]);
    scene.world.wait_for_effect("cancelled gate here");
}

fn a_finished_call_is_not_cancelled() {
    let scene = Scene::new(&[]);
    let customer = &scene.customer;
    let id = customer.call("note", &json!({})).response().tag("e").to_owned();
    let cancel = customer.post(&customer.draft("cancel-execution", &json!("")).tag(&["e", &id]));
    assert_eq!(customer.answers(&cancel).body()["cancelled"], false);
    assert_eq!(customer.so_far(&id).0.len(), 3, "nothing is added to an answer that was given");
}

fn a_waiting_call_is_cancelled_and_never_runs() {
    let scene = Scene::new(&["--max-running", "1"]);
    let customer = &scene.customer;
    let first = customer.post(&customer.draft("execute-tool", &gate()));
    scene.world.wait_for_effect(GATE);
    let call = json!({ "name": "note", "parameters": { "tag": "waiting" } });
    let waiting = customer.post(&customer.draft("execute-tool", &call));
    let cancel = customer.post(&customer.draft("cancel-execution", &json!("")).tag(&["e", &waiting]));
    assert_eq!(customer.answers(&cancel).body()["cancelled"], true);
    assert_eq!(customer.answers(&waiting).error(), "cancelled");
    scene.world.open_gate("never");
    assert_eq!(customer.answers(&first).text(), "through");
    customer.call("note", &json!({}));
    assert_eq!(scene.world.times("note waiting"), 0);
}

fn nobody_cancels_the_call_of_another() {
    let scene = Scene::new(&[]);
    let (customer, stranger) = (&scene.customer, scene.another_customer());
    let id = customer.post(&customer.draft("execute-tool", &gate()));
    scene.world.wait_for_effect(GATE);
    let cancel = stranger.post(&stranger.draft("cancel-execution", &json!("")).tag(&["e", &id]));
    assert_eq!(stranger.answers(&cancel).body()["cancelled"], false);
    scene.world.open_gate("never");
    assert_eq!(customer.answers(&id).text(), "through");
}

fn an_unknown_call_is_not_cancelled() {
    let scene = Scene::new(&[]);
    let customer = &scene.customer;
    let cancel = customer.post(&customer.draft("cancel-execution", &json!("")).tag(&["e", &"ab".repeat(32)]));
    assert_eq!(customer.answers(&cancel).body()["cancelled"], false);
}

fn a_sealed_call_is_cancelled_by_a_sealed_request() {
    let scene = Scene::new(&[]);
    let customer = &scene.customer;
    let id = customer.post_sealed(&customer.draft("execute-tool", &gate()));
    scene.world.wait_for_effect(GATE);
    let cancel = customer.post_sealed(&customer.draft("cancel-execution", &json!("")).tag(&["e", &id]));
    let answers = customer.answers(&cancel);
    assert_eq!(answers.body()["cancelled"], true);
    let cancelled = customer.answers(&id);
    assert_eq!(cancelled.error(), "cancelled");
    assert!(answers.0.iter().chain(&cancelled.0).all(|received| received.sealed));
}
