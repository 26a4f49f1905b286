//! Arguments that do not fit, and things that the service does not have.

use serde_json::json;

use torture::nostr_side::scene::Scene;
use torture::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] = &[
    case!(arguments_are_checked_against_the_schema_before_the_call),
    case!(what_the_service_does_not_offer_is_unknown),
    case!(a_name_close_to_a_tool_is_no_tool),
];

fn arguments_are_checked_against_the_schema_before_the_call() {
    let scene = Scene::new(&["--rate-per-key", "0"]);
    let city = "Zürich";
    let wrong = [
        (json!({}), &["", "/city"][..]),
        (json!({ "city": 7 }), &["/city"]),
        (json!({ "city": null }), &["/city"]),
        (json!({ "city": "Z" }), &["/city"]),
        (json!({ "city": city, "unit": "K" }), &["/unit"]),
        (json!({ "city": city, "days": 10 }), &["/days"]),
        (json!({ "city": city, "days": 1.5 }), &["/days"]),
        (json!({ "city": city, "days": "3" }), &["/days"]),
        (json!({ "city": city, "code": "zh" }), &["/code"]),
        (json!({ "city": city, "at": { "lat": "north" } }), &["/at/lat"]),
        (json!({ "city": city, "extra": true }), &["", "/extra"]),
    ];
    for (parameters, pointers) in wrong {
        let answers = scene.customer.call("strict", &parameters);
        assert_eq!(answers.error(), "invalid_input", "{parameters}");
        let error = answers.body()["metadata"]["error"].clone();
        let pointer = error["pointer"].as_str().unwrap_or_else(|| panic!("no pointer for {parameters}: {error}"));
        assert!(pointers.contains(&pointer), "{parameters}: {error}");
        assert_eq!(answers.statuses(), ["error"]);
    }
    assert!(scene.world.effects().is_empty(), "{:?}", scene.world.effects());
    let right = json!({ "city": city, "unit": "C", "days": 3, "code": "ZH", "at": { "lat": 47.4 } });
    assert_eq!(scene.customer.call("strict", &right).text(), "this is strict");
}

fn what_the_service_does_not_offer_is_unknown() {
    let scene = Scene::new(&[]);
    let unknown = [
        ("execute-tool", json!({ "name": "no_such_tool", "parameters": {} }), "unknown_tool"),
        ("execute-tool", json!({ "name": "", "parameters": {} }), "unknown_tool"),
        ("execute-prompt", json!({ "name": "no_such_prompt", "parameters": {} }), "unknown_prompt"),
        ("read-resource", json!({ "uri": "note://nowhere" }), "unknown_resource"),
        ("read-resource", json!({ "uri": "file:///etc/passwd" }), "unknown_resource"),
    ];
    for (command, content, expected) in unknown {
        let answers = scene.customer.ask(command, &content);
        assert_eq!(answers.error(), expected, "{command} {content}");
        assert_eq!(answers.response().tag("c"), format!("{command}-response"));
    }
}

fn a_name_close_to_a_tool_is_no_tool() {
    let scene = Scene::new(&["--rate-per-key", "0"]);
    for name in ["Note", "note ", " note", "note\n", "note\u{200b}", "../note", "tools/note"] {
        let answers = scene.customer.call(name, &json!({}));
        assert_eq!(answers.error(), "unknown_tool", "{name:?}");
    }
    assert!(scene.world.effects().is_empty());
}
