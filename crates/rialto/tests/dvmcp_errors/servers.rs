//! Servers behind the provider that fail.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use torture::nostr_side::scene::Scene;
use torture::stage::kill;
use torture::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] = &[
    case!(a_server_that_dies_in_a_call_is_unavailable_and_comes_back),
    case!(a_server_that_is_killed_in_a_call_is_unavailable_and_comes_back),
    case!(every_call_that_was_running_is_answered_when_the_server_dies),
    case!(a_protocol_error_of_the_server_is_a_tool_error),
    case!(a_tool_that_needs_a_model_is_unsupported),
    case!(a_tool_that_hangs_times_out),
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

fn a_server_that_is_killed_in_a_call_is_unavailable_and_comes_back() {
    let scene = Scene::new(&[]);
    let customer = &scene.customer;
    for round in 0..3 {
        let call = json!({ "name": "hang", "parameters": { "tag": round.to_string() } });
        let id = customer.post(&customer.draft("execute-tool", &call));
        scene.world.wait_for_effect(&format!("hang {round}"));
        let died = Instant::now();
        kill(scene.world.actor_pid(), Signal::KILL);
        let answers = customer.answers(&id);
        let took = died.elapsed();
        assert_eq!(answers.error(), "upstream_unavailable");
        assert!(took < Duration::from_secs(1), "the answer took {took:?}");
        let back = Instant::now();
        assert_eq!(customer.call("note", &json!({ "text": "back" })).text(), "back");
        assert!(back.elapsed() < Duration::from_secs(2), "the next call took {:?}", back.elapsed());
        assert_eq!(scene.world.times(&format!("hang {round}")), 1);
    }
}

fn every_call_that_was_running_is_answered_when_the_server_dies() {
    let scene = Scene::new(&["--rate-per-key", "0", "--max-running-per-key", "10"]);
    let customer = &scene.customer;
    let ids: Vec<String> = (0..5)
        .map(|number| {
            let call = json!({ "name": "hang", "parameters": { "tag": number.to_string() } });
            customer.post(&customer.draft("execute-tool", &call))
        })
        .collect();
    (0..5).for_each(|number| scene.world.wait_for_effect(&format!("hang {number}")));
    kill(scene.world.actor_pid(), Signal::KILL);
    for id in ids {
        assert_eq!(customer.answers(&id).error(), "upstream_unavailable");
    }
    assert_eq!(scene.world.effects().len(), 5);
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

fn a_tool_that_hangs_times_out() {
    let scene = Scene::new(&["--timeout-secs", "1"]);
    let begun = Instant::now();
    let answers = scene.customer.call("hang", &json!({}));
    let took = begun.elapsed();
    assert_eq!(answers.error(), "timeout");
    assert!(took >= Duration::from_secs(1) && took < Duration::from_secs(4), "{took:?}");
    assert_eq!(scene.customer.call("note", &json!({ "text": "on" })).text(), "on");
}
