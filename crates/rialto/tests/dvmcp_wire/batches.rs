//! `batch-execute`: several calls in one request.

use serde_json::{Value, json};

use torture::nostr_side::scene::Scene;
use torture::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] = &[
    case!(a_batch_gives_its_results_in_the_order_of_the_calls),
    case!(a_batch_has_the_feedback_of_one_call),
    case!(a_batch_with_one_failure_keeps_the_other_results),
    case!(feedback_and_response_agree_on_a_batch_with_one_failure),
    case!(a_batch_with_an_unknown_tool_runs_nothing),
    case!(a_batch_of_thirty_two_is_run_and_of_thirty_three_is_not),
    case!(an_empty_batch_is_refused),
    case!(a_call_of_the_wrong_form_in_a_batch_is_invalid),
    case!(a_call_in_a_batch_has_its_own_timeout),
    case!(a_batch_delivered_twice_runs_once),
];

fn call(text: &str) -> Value {
    json!({ "name": "note", "parameters": { "text": text } })
}

fn a_batch_gives_its_results_in_the_order_of_the_calls() {
    let scene = Scene::new(&[]);
    let slow = json!({ "name": "nap", "parameters": { "ms": 200 } });
    let answers = scene.customer.ask("batch-execute", &json!({ "calls": [slow, call("one"), call("two")] }));
    assert_eq!(answers.response().tag("c"), "batch-execute-response");
    let results = answers.body()["results"].clone();
    let texts: Vec<&str> =
        results.as_array().unwrap().iter().map(|r| r["content"][0]["text"].as_str().unwrap()).collect();
    assert_eq!(texts, ["slept", "one", "two"]);
}

fn a_batch_has_the_feedback_of_one_call() {
    let scene = Scene::new(&[]);
    let answers = scene.customer.ask("batch-execute", &json!({ "calls": [call("one"), call("two")] }));
    assert_eq!(answers.statuses(), ["processing", "success"]);
    assert_eq!(answers.response().tag("status"), "success");
    assert_eq!(answers.0.last().unwrap().event.kind, 6910);
}

fn a_batch_with_one_failure_keeps_the_other_results() {
    let scene = Scene::new(&[]);
    let calls = json!([call("one"), { "name": "sulk", "parameters": {} }, call("three")]);
    let answers = scene.customer.ask("batch-execute", &json!({ "calls": calls }));
    let results = answers.body()["results"].clone();
    assert_eq!(results[0]["content"][0]["text"], "one");
    assert_eq!((&results[1]["isError"], &results[1]["mood"]), (&json!(true), &json!("bad")));
    assert_eq!(results[2]["content"][0]["text"], "three");
}

fn feedback_and_response_agree_on_a_batch_with_one_failure() {
    let scene = Scene::new(&[]);
    let calls = json!([call("one"), { "name": "sulk", "parameters": {} }]);
    let answers = scene.customer.ask("batch-execute", &json!({ "calls": calls }));
    // Whatever the whole is called, it is called the same in both.
    if answers.statuses().contains(&"error") {
        assert_eq!(answers.error(), "tool_error");
    } else {
        assert_eq!(answers.response().tag("status"), "success");
    }
}

fn a_batch_with_an_unknown_tool_runs_nothing() {
    let scene = Scene::new(&[]);
    let wrong = [
        (json!({ "name": "no_such_tool", "parameters": {} }), "unknown_tool"),
        (json!({ "name": "strict", "parameters": {} }), "invalid_input"),
    ];
    for (wrong, expected) in wrong {
        let answers = scene.customer.ask("batch-execute", &json!({ "calls": [call("one"), wrong, call("three")] }));
        assert_eq!(answers.error(), expected);
        assert_eq!(answers.statuses(), ["error"]);
    }
    assert!(scene.world.effects().is_empty(), "{:?}", scene.world.effects());
}

fn a_batch_of_thirty_two_is_run_and_of_thirty_three_is_not() {
    let scene = Scene::new(&["--rate-per-key", "0"]);
    let calls = |count: usize| (0..count).map(|number| call(&number.to_string())).collect::<Vec<_>>();
    let answers = scene.customer.ask("batch-execute", &json!({ "calls": calls(32) }));
    assert_eq!(answers.body()["results"].as_array().map(Vec::len), Some(32));
    assert_eq!(scene.world.times("note"), 32);
    let answers = scene.customer.ask("batch-execute", &json!({ "calls": calls(33) }));
    assert_eq!(answers.error(), "invalid_input");
    assert_eq!(scene.world.times("note"), 32);
}

fn an_empty_batch_is_refused() {
    let scene = Scene::new(&[]);
    for content in [json!({ "calls": [] }), json!({}), json!({ "calls": "note" })] {
        assert_eq!(scene.customer.ask("batch-execute", &content).error(), "invalid_input", "{content}");
    }
}

fn a_call_of_the_wrong_form_in_a_batch_is_invalid() {
    let scene = Scene::new(&[]);
    for wrong in [json!(7), json!({ "parameters": {} }), json!({ "name": "note", "parameters": [] })] {
        let answers = scene.customer.ask("batch-execute", &json!({ "calls": [call("one"), wrong] }));
        let body = answers.body();
        // Either the whole batch is refused, or the call alone; the code is the same.
        let code = if body["isError"] == true { &body["metadata"] } else { &body["results"][1]["metadata"] };
        assert_eq!(code["error"]["code"], "invalid_input", "{wrong}: {body:#}");
    }
}

fn a_call_in_a_batch_has_its_own_timeout() {
    let scene = Scene::new(&[]);
    let calls = json!([{ "name": "hang", "parameters": {}, "timeout": 400 }, call("two")]);
    let results = scene.customer.ask("batch-execute", &json!({ "calls": calls })).body()["results"].clone();
    assert_eq!(results[0]["metadata"]["error"]["code"], "timeout", "{results:#}");
    assert_eq!(results[1]["content"][0]["text"], "two");
}

fn a_batch_delivered_twice_runs_once() {
    let scene = Scene::new(&[]);
    let draft = scene.customer.draft("batch-execute", &json!({ "calls": [call("one"), call("two")] }));
    let event = draft.sign(&scene.customer.keys);
    for _ in 0..2 {
        scene.customer.link.send(&json!(["EVENT", event]));
    }
    scene.customer.answers(&event.id);
    scene.customer.barrier();
    assert_eq!(scene.world.times("note"), 2);
}
