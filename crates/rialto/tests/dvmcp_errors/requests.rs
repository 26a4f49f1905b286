//! Requests whose form is wrong.

use serde_json::{Value, json};

use torture::nostr_side::customer::Answers;
use torture::nostr_side::fake_relay::FakeRelay;
use torture::nostr_side::scene::Scene;
use torture::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] = &[
    case!(content_that_is_no_json_object_is_an_invalid_request),
    case!(a_key_that_stands_twice_is_an_invalid_request),
    case!(deep_nesting_is_an_invalid_request),
    case!(a_content_beyond_the_limit_is_too_large),
    case!(a_missing_command_is_an_invalid_request),
    case!(an_unknown_command_has_its_own_response),
    case!(a_response_is_not_taken_for_a_command),
    case!(missing_and_mistyped_members_are_invalid_input),
    case!(a_wrong_timeout_is_invalid_input),
    case!(a_timeout_of_null_is_invalid_input),
    case!(an_error_names_the_command_it_answers),
    case!(an_error_tells_nothing_about_the_machine),
    case!(a_sealed_mistake_has_the_same_code),
];

/// Asks for something that is wrong, and checks that nothing was run.
fn code(scene: &Scene, command: &str, content: &Value) -> String {
    let answers = scene.customer.ask(command, content);
    let code = answers.error();
    assert_eq!(answers.statuses(), ["error"], "it was not begun: {content}");
    assert!(scene.world.effects().is_empty(), "it was run: {content}");
    code
}

fn content_that_is_no_json_object_is_an_invalid_request() {
    let relay = FakeRelay::start();
    let scene = Scene::on(&relay, &["--rate-per-key", "0"]);
    let texts = [
        "not JSON",
        "{\"name\":\"note\",\"parameters\":{}",
        "{\"name\":\"note\",\"parameters\":{}} and more",
        "[]",
        "[{\"name\":\"note\",\"parameters\":{}}]",
        "7",
        "null",
        "true",
        "",
        "\"just a string\"",
        "{'name':'note'}",
        "{\"name\":\"note\",\"parameters\":{\"text\":\"\u{1}\"}}",
        "{\"name\":\"note\",\"parameters\":{\"text\":\"\\ud800\"}}",
        "\u{feff}{\"name\":\"note\",\"parameters\":{}}",
        "{\"name\":\"note\",\"parameters\":{\"text\":NaN}}",
    ];
    for text in texts {
        assert_eq!(code(&scene, "execute-tool", &json!(text)), "invalid_request", "{text}");
    }
    assert_eq!(code(&scene, "list-tools", &json!("[]")), "invalid_request");
    assert_eq!(code(&scene, "read-resource", &json!("no")), "invalid_request");
    assert_eq!(code(&scene, "batch-execute", &json!("[]")), "invalid_request");
}

fn a_key_that_stands_twice_is_an_invalid_request() {
    let relay = FakeRelay::start();
    let scene = Scene::on(&relay, &[]);
    let texts = [
        r#"{"name":"note","name":"nap","parameters":{}}"#,
        r#"{"name":"note","parameters":{"text":"a","text":"b"}}"#,
        r#"{"name":"note","parameters":{"text":"a","te\u0078t":"b"}}"#,
    ];
    for text in texts {
        assert_eq!(code(&scene, "execute-tool", &json!(text)), "invalid_request", "{text}");
    }
}

fn deep_nesting_is_an_invalid_request() {
    let relay = FakeRelay::start();
    let scene = Scene::on(&relay, &[]);
    for depth in [70, 5_000] {
        let value = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let text = format!(r#"{{"name":"note","parameters":{{"text":{value}}}}}"#);
        assert_eq!(code(&scene, "execute-tool", &json!(text)), "invalid_request", "depth {depth}");
    }
    // Two levels are outside of this one; sixty-four in all are allowed.
    let value = format!("{}{}", "[".repeat(62), "]".repeat(62));
    let text = format!(r#"{{"name":"meta","parameters":{{"deep":{value}}}}}"#);
    let answers = scene.customer.ask("execute-tool", &json!(text));
    assert_eq!(answers.statuses(), ["processing", "success"], "{answers:#?}");
}

fn a_content_beyond_the_limit_is_too_large() {
    let relay = FakeRelay::start();
    let scene = Scene::on(&relay, &[]);
    let request = |size: usize| {
        let empty = json!({ "name": "note", "parameters": { "text": "" } }).to_string().len();
        json!({ "name": "note", "parameters": { "text": "x".repeat(size - empty) } }).to_string()
    };
    assert_eq!(code(&scene, "execute-tool", &json!(request(128 * 1024 + 1))), "too_large");
    // The answer would be too large as well, so a tool that does not repeat it is asked.
    let allowed = request(128 * 1024).replace("\"note\"", "\"sulk\"");
    assert_eq!(scene.customer.ask("execute-tool", &json!(allowed)).error(), "tool_error");
}

fn a_missing_command_is_an_invalid_request() {
    let relay = FakeRelay::start();
    let scene = Scene::on(&relay, &[]);
    let draft = scene.customer.draft("x", &json!({ "name": "note", "parameters": {} })).without("c");
    for draft in [draft.clone(), draft.clone().tag(&["c"])] {
        let id = scene.customer.post(&draft);
        let answers = scene.customer.answers(&id);
        assert_eq!(answers.error(), "invalid_request");
        assert_eq!(answers.response().tag("c"), "error-response");
    }
    assert!(scene.world.effects().is_empty());
}

fn an_unknown_command_has_its_own_response() {
    let relay = FakeRelay::start();
    let scene = Scene::on(&relay, &[]);
    for command in ["frobnicate", "Execute-Tool", "execute_tool"] {
        let answers = scene.customer.ask(command, &json!({ "name": "note", "parameters": {} }));
        assert_eq!(answers.error(), "unknown_command", "{command:?}");
        assert_eq!(answers.response().tag("c"), "error-response");
    }
    assert!(scene.world.effects().is_empty());
}

fn a_response_is_not_taken_for_a_command() {
    let relay = FakeRelay::start();
    let scene = Scene::on(&relay, &[]);
    // Some send responses with the kind of requests. To answer those could make two providers talk for ever.
    let draft = scene.customer.draft("execute-tool-response", &json!({ "content": [] }));
    let id = scene.customer.post(&draft);
    scene.customer.barrier();
    assert_eq!(scene.customer.so_far(&id).0.len(), 0);
}

fn missing_and_mistyped_members_are_invalid_input() {
    let relay = FakeRelay::start();
    let scene = Scene::on(&relay, &["--rate-per-key", "0"]);
    let wrong = [
        ("execute-tool", json!({ "parameters": {} })),
        ("execute-tool", json!({ "name": 7, "parameters": {} })),
        ("execute-tool", json!({ "name": null, "parameters": {} })),
        ("execute-tool", json!({ "name": "note" })),
        ("execute-tool", json!({ "name": "note", "parameters": null })),
        ("execute-tool", json!({ "name": "note", "parameters": [] })),
        ("execute-tool", json!({ "name": "note", "parameters": "{}" })),
        ("read-resource", json!({})),
        ("read-resource", json!({ "uri": 7 })),
        ("execute-prompt", json!({ "parameters": {} })),
        ("execute-prompt", json!({ "name": "greet", "parameters": 7 })),
        ("complete", json!({})),
        ("list-tools", json!({ "cursor": 7 })),
    ];
    for (command, content) in wrong {
        assert_eq!(code(&scene, command, &content), "invalid_input", "{command} {content}");
    }
}

fn a_wrong_timeout_is_invalid_input() {
    let relay = FakeRelay::start();
    let scene = Scene::on(&relay, &["--rate-per-key", "0"]);
    for timeout in [json!(0), json!(-1), json!(1.5), json!("1000"), json!(true), json!([1000]), json!(-1e300)] {
        let request = json!({ "name": "note", "parameters": {}, "timeout": timeout });
        assert_eq!(code(&scene, "execute-tool", &request), "invalid_input", "{request}");
    }
    // A number that fits into no integer of ours is no number of milliseconds that anybody means.
    let huge = r#"{"name":"note","parameters":{},"timeout":1e400}"#;
    let huge = code(&scene, "execute-tool", &json!(huge));
    assert!(["invalid_input", "invalid_request"].contains(&huge.as_str()), "{huge}");
    // A large whole number is one; the provider's own limit wins.
    let request = json!({ "name": "note", "parameters": { "text": "in time" }, "timeout": u64::MAX });
    assert_eq!(scene.customer.ask("execute-tool", &request).text(), "in time");
}

fn a_timeout_of_null_is_invalid_input() {
    let relay = FakeRelay::start();
    let scene = Scene::on(&relay, &[]);
    let request = json!({ "name": "note", "parameters": {}, "timeout": null });
    assert_eq!(code(&scene, "execute-tool", &request), "invalid_input");
}

fn an_error_names_the_command_it_answers() {
    let relay = FakeRelay::start();
    let scene = Scene::on(&relay, &[]);
    for command in ["execute-tool", "read-resource", "execute-prompt", "batch-execute", "complete"] {
        let answers: Answers = scene.customer.ask(command, &json!({}));
        assert_eq!(answers.error(), "invalid_input");
        assert_eq!(answers.response().tag("c"), format!("{command}-response"));
    }
}

fn an_error_tells_nothing_about_the_machine() {
    let relay = FakeRelay::start();
    let scene = Scene::on(&relay, &[]);
    let directory = scene.world.path().to_str().unwrap().to_owned();
    let asked = [("crash", json!({})), ("broken", json!({})), ("no_such_tool", json!({})), ("strict", json!({}))];
    for (tool, parameters) in asked {
        let answers = scene.customer.call(tool, &parameters);
        let said = format!("{:?}", answers.0);
        assert!(!said.contains(&directory), "{tool}: {said}");
        assert!(!said.contains("/src/") && !said.contains("panicked"), "{tool}: {said}");
    }
}

fn a_sealed_mistake_has_the_same_code() {
    let relay = FakeRelay::start();
    let scene = Scene::on(&relay, &[]);
    let wrong = [
        ("execute-tool", json!("not JSON"), "invalid_request"),
        ("execute-tool", json!({ "name": "no_such_tool", "parameters": {} }), "unknown_tool"),
        ("execute-tool", json!({ "name": "strict", "parameters": {} }), "invalid_input"),
        ("frobnicate", json!({}), "unknown_command"),
    ];
    for (command, content, expected) in wrong {
        let answers = scene.customer.ask_sealed(command, &content);
        assert_eq!(answers.error(), expected, "{command} {content}");
        assert!(answers.0.iter().all(|received| received.sealed));
    }
}
