//! Servers behind the provider that fail.

use std::time::{Duration, Instant};

use serde_json::json;

use torture::nostr_side::scene::Scene;
use torture::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] = &[
    case!(a_server_that_dies_in_a_call_is_unavailable_and_comes_back),
    case!(a_protocol_error_of_the_server_is_a_tool_error),
    case!(a_tool_that_needs_a_model_is_unsupported),
];

fn a_server_that_dies_in_a_call_is_unavailable_and_comes_back() {
    let scene = Scene::new(&[]);
    let answers = scene.customer.call("crash", &json!({}));
    assert_eq!(answers.error(), "upstream_unavailable");
    assert_eq!(answers.statuses(), ["processing", "error"]);
    let begun = Instant::now();
    assert_eq!(scene.customer.call("note", &json!({ "text": "back" })).text(), "back");
    assert!(begun.elapsed() < Duration::from_secs(5), "it took {:?}", begun.elapsed());
    assert_eq!(scene.world.times("crash"), 1, "a call that may have had its effect is not repeated");
}

fn a_protocol_error_of_the_server_is_a_tool_error() {
    let scene = Scene::new(&[]);
    let answers = scene.customer.call("broken", &json!({}));
    assert_eq!(answers.error(), "tool_error");
    assert!(answers.text().contains("something broke"), "{}", answers.text());
}

fn a_tool_that_needs_a_model_is_unsupported() {
    let scene = Scene::new(&[]);
    let answers = scene.customer.call("ask", &json!({}));
    // The server decides what it makes of the refusal; ours hands it on as its text.
    match answers.body()["isError"] == true {
        true => assert_eq!(answers.error(), "unsupported"),
        false => assert!(answers.text().contains("error"), "{}", answers.text()),
    }
}
