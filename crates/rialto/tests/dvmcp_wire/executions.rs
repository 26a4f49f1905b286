//! `execute-tool`: the order of its events, their tags, and what is in them.

use std::time::{Duration, Instant};

use serde_json::json;

use torture::nostr_side::customer::Answers;
use torture::nostr_side::event::{Draft, Event};
use torture::nostr_side::scene::Scene;
use torture::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] = &[
    case!(a_call_is_processing_then_success_then_the_response),
    case!(the_request_of_the_specification_is_served_as_it_stands),
    case!(every_answer_names_the_request_a_relay_and_the_customer),
    case!(a_result_keeps_every_field_of_the_server),
    case!(the_time_is_added_to_metadata_of_the_server),
    case!(a_result_says_how_long_it_took_and_that_it_is_no_error),
    case!(a_tool_that_fails_keeps_its_answer),
    case!(parameters_are_understood_as_arguments),
    case!(content_may_be_a_string_in_a_string),
    case!(metadata_reaches_the_server_and_nothing_else_does),
    case!(progress_is_reported_when_asked_for),
    case!(progress_is_not_reported_unasked),
    case!(a_timeout_of_the_customer_is_kept),
    case!(progress_does_not_extend_the_timeout_of_the_customer),
    case!(the_limit_of_the_provider_wins),
    case!(a_request_to_several_providers_is_served_by_each),
    case!(calls_of_one_customer_run_side_by_side),
    case!(requests_of_others_are_not_mixed_up),
];

fn check_tags(scene: &Scene, answers: &Answers) {
    let names: Vec<Vec<&str>> =
        answers.0.iter().map(|received| received.event.tags.iter().map(|tag| tag[0].as_str()).collect()).collect();
    for received in &answers.0 {
        let event: &Event = &received.event;
        assert_eq!(event.pubkey, scene.provider.pubkey);
        assert_eq!(event.tag("p"), scene.customer.pubkey(), "{names:?}");
        assert_eq!(event.tags("e").len(), 1, "{event:?}");
        assert_eq!(event.tags("e")[0].len(), 2, "with a relay hint: {event:?}");
        assert_eq!(event.tags("e")[0][1].trim_end_matches('/'), scene.url.trim_end_matches('/'));
    }
}

fn a_call_is_processing_then_success_then_the_response() {
    let scene = Scene::new(&[]);
    let answers = scene.customer.call("note", &json!({ "text": "hello" }));
    let order: Vec<(u32, &str)> =
        answers.0.iter().map(|received| (received.event.kind, received.event.tag("status"))).collect();
    assert_eq!(order, [(7000, "processing"), (7000, "success"), (6910, "success")]);
    assert_eq!(answers.response().tag("c"), "execute-tool-response");
    assert_eq!(answers.text(), "hello");
    for feedback in answers.feedback() {
        assert_eq!(feedback.content, "");
        assert_eq!(feedback.tags("status")[0].len(), 1, "{feedback:?}");
    }
    assert_eq!(scene.world.effects(), ["note"]);
}

fn the_request_of_the_specification_is_served_as_it_stands() {
    let scene = Scene::new(&[]);
    let content = r#"{"name":"note","parameters":{"text":"The input text to be processed","max_tokens":1024}}"#;
    let draft = Draft::new(5910, content)
        .tag(&["c", "execute-tool"])
        .tag(&["p", &scene.provider.pubkey])
        .tag(&["output", "application/json"]);
    let id = scene.customer.post(&draft);
    assert_eq!(scene.customer.answers(&id).text(), "The input text to be processed");
}

fn every_answer_names_the_request_a_relay_and_the_customer() {
    let scene = Scene::new(&[]);
    let answers = scene.customer.call("note", &json!({ "text": "hello" }));
    assert_eq!(answers.0.len(), 3);
    check_tags(&scene, &answers);
    let answers = scene.customer.call("no_such_tool", &json!({}));
    assert_eq!(answers.0.len(), 2);
    check_tags(&scene, &answers);
}

fn a_result_keeps_every_field_of_the_server() {
    let scene = Scene::new(&[]);
    let body = scene.customer.call("rich", &json!({})).body();
    assert_eq!(body["content"][0]["text"], "Zürich “18 °C” \u{1f324}\n");
    assert_eq!(body["content"][1], json!({ "type": "image", "data": "aGVsbG8=", "mimeType": "image/png" }));
    assert_eq!(body["content"][2]["resource"]["text"], "inside");
    assert_eq!(body["content"][3], json!({ "type": "image/svg+xml", "text": "<svg/>" }));
    assert_eq!(
        body["structuredContent"],
        json!({ "degrees": 18.5, "exact": 9_007_199_254_740_993_u64, "nothing": null })
    );
    assert_eq!(body["_meta"], json!({ "of": "the result" }));
    assert_eq!(body["metadata"]["token_count"], 150);
}

fn the_time_is_added_to_metadata_of_the_server() {
    let scene = Scene::new(&[]);
    let body = scene.customer.call("rich", &json!({})).body();
    assert_eq!(body["metadata"]["token_count"], 150);
    assert!(body["metadata"]["processing_time"].is_number(), "{body}");
}

fn a_result_says_how_long_it_took_and_that_it_is_no_error() {
    let scene = Scene::new(&[]);
    let begun = Instant::now();
    let body = scene.customer.call("nap", &json!({ "ms": 300 })).body();
    let seconds = body["metadata"]["processing_time"].as_f64().unwrap();
    assert!((0.3..=begun.elapsed().as_secs_f64()).contains(&seconds), "{seconds} seconds");
    assert_eq!(body["isError"], false);
}

fn a_tool_that_fails_keeps_its_answer() {
    let scene = Scene::new(&[]);
    let answers = scene.customer.call("sulk", &json!({}));
    assert_eq!(answers.error(), "tool_error");
    assert_eq!(answers.statuses(), ["processing", "error"]);
    let body = answers.body();
    assert_eq!(body["content"], json!([{ "type": "text", "text": "I do not want to" }]));
    assert_eq!(body["mood"], "bad");
}

fn parameters_are_understood_as_arguments() {
    let scene = Scene::new(&[]);
    let answers = scene.customer.ask("execute-tool", &json!({ "name": "note", "arguments": { "text": "hello" } }));
    assert_eq!(answers.text(), "hello");
}

fn content_may_be_a_string_in_a_string() {
    let scene = Scene::new(&[]);
    let inner = json!({ "name": "note", "parameters": { "text": "hello" } }).to_string();
    // `json!(inner)` is the text itself; one more layer of JSON around it makes a string in a string.
    let answers = scene.customer.ask("execute-tool", &json!(json!(inner).to_string()));
    assert_eq!(answers.text(), "hello");
}

fn metadata_reaches_the_server_and_nothing_else_does() {
    let scene = Scene::new(&[]);
    let metadata = json!({ "_meta": { "org.example/trace": "abc", "number": 7 }, "private": "stays here" });
    let request = json!({ "name": "meta", "parameters": {}, "metadata": metadata });
    let text = scene.customer.ask("execute-tool", &request).text();
    let meta: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&meta["org.example/trace"], &meta["number"]), (&json!("abc"), &json!(7)), "{meta}");
    assert!(!text.contains("stays here"), "{text}");
}

fn progress_is_reported_when_asked_for() {
    let scene = Scene::new(&[]);
    let request = json!({ "name": "steps", "parameters": { "count": 5, "ms": 60 }, "metadata": { "progress": true } });
    let answers = scene.customer.ask("execute-tool", &request);
    let feedback = answers.feedback();
    let reports: Vec<&&Event> = feedback.iter().filter(|event| !event.content.is_empty()).collect();
    assert!((1..=2).contains(&reports.len()), "at most one a second: {feedback:#?}");
    let (body, status) = (reports[0].body(), reports[0].tags("status"));
    let step = body["progress"].as_u64().unwrap();
    assert_eq!(body, json!({ "progress": step, "total": 5, "message": format!("step {step}") }));
    assert_eq!(status, [["processing".to_owned(), format!("step {step}")]]);
    assert_eq!(answers.statuses().last(), Some(&"success"));
    assert_eq!(answers.0.last().unwrap().event.kind, 6910, "progress does not come after the response");
}

fn progress_is_not_reported_unasked() {
    let scene = Scene::new(&[]);
    let answers = scene.customer.call("steps", &json!({ "count": 5 }));
    assert_eq!(answers.statuses(), ["processing", "success"]);
}

fn a_timeout_of_the_customer_is_kept() {
    let scene = Scene::new(&[]);
    let begun = Instant::now();
    let request = json!({ "name": "hang", "parameters": {}, "timeout": 700 });
    let answers = scene.customer.ask("execute-tool", &request);
    assert_eq!(answers.error(), "timeout");
    assert_eq!(answers.statuses(), ["processing", "error"]);
    assert!(begun.elapsed() >= Duration::from_millis(700), "too early");
    // The next call does not suffer from it.
    assert_eq!(scene.customer.call("note", &json!({ "text": "on" })).text(), "on");
}

fn progress_does_not_extend_the_timeout_of_the_customer() {
    let scene = Scene::new(&[]);
    let begun = Instant::now();
    let request = json!({
        "name": "steps", "parameters": { "count": 150, "ms": 100 }, "timeout": 1500, "metadata": { "progress": true }
    });
    assert_eq!(scene.customer.ask("execute-tool", &request).error(), "timeout");
    let took = begun.elapsed();
    assert!(took >= Duration::from_millis(1500) && took < Duration::from_secs(8), "{took:?}");
}

fn a_request_to_several_providers_is_served_by_each() {
    let scene = Scene::new(&[]);
    let call = json!({ "name": "note", "parameters": { "text": "both" } });
    let draft = scene.customer.draft("execute-tool", &call).without("p");
    let draft = draft.tag(&["p", &"ab".repeat(32)]).tag(&["p", &scene.provider.pubkey]);
    let id = scene.customer.post(&draft);
    assert_eq!(scene.customer.answers(&id).text(), "both");
}

fn the_limit_of_the_provider_wins() {
    let scene = Scene::new(&["--timeout-secs", "1"]);
    let begun = Instant::now();
    let request = json!({ "name": "hang", "parameters": {}, "timeout": 3_600_000 });
    assert_eq!(scene.customer.ask("execute-tool", &request).error(), "timeout");
    assert!(begun.elapsed() >= Duration::from_secs(1), "too early");
}

fn calls_of_one_customer_run_side_by_side() {
    let scene = Scene::new(&[]);
    let customer = &scene.customer;
    let call = json!({ "name": "gate", "parameters": { "name": "side" } });
    let ids: Vec<String> = (0..3).map(|_| customer.post(&customer.draft("execute-tool", &call))).collect();
    let quick = customer.call("note", &json!({ "text": "quick" }));
    assert_eq!(quick.text(), "quick", "a slow call holds up no other");
    scene.world.open_gate("side");
    for id in ids {
        assert_eq!(customer.answers(&id).text(), "through");
    }
}

fn requests_of_others_are_not_mixed_up() {
    let scene = Scene::new(&["--rate-per-key", "0"]);
    let others: Vec<_> = (0..4).map(|_| scene.another_customer()).collect();
    let asked: Vec<(usize, String)> = (0..20)
        .map(|number| {
            let customer = &others[number % others.len()];
            let call = json!({ "name": "note", "parameters": { "text": number.to_string() } });
            (number, customer.post(&customer.draft("execute-tool", &call)))
        })
        .collect();
    for (number, id) in asked {
        let customer = &others[number % others.len()];
        let answers = customer.answers(&id);
        assert_eq!(answers.text(), number.to_string());
        assert_eq!(answers.response().tag("p"), customer.pubkey());
    }
    assert_eq!(scene.world.times("note"), 20);
}
