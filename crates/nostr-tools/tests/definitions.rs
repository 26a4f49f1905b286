//! What must hold of the definition of every tool.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should panic")]

mod support;

use rialto_nostr_tools::{Status, tools};
use serde_json::Value;
use support::World;

/// Bytes of `tools/list`: more of a model's attention should not be spent before it has done anything.
const MAX_LIST: usize = 60_000;

#[test]
fn names_follow_the_rules_and_come_in_order() {
    let tools = tools();
    for tool in &tools {
        let about = &tool.about;
        let parts: Vec<&str> = about.name.split('_').collect();
        let is_word = |word: &&str| {
            !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        };
        assert!(parts.len() >= 3 && parts[0] == "nostr" && parts.iter().all(is_word), "{}", about.name);
        assert!(about.name.len() <= 64, "{}", about.name);
        assert!(!about.title.is_empty() && about.title.len() <= 60, "{}: title", about.name);
        assert!(about.summary.ends_with('.') && about.summary.len() <= 400, "{}: summary", about.name);
        assert!(matches!(about.status, Status::Stable | Status::Experimental));
    }
    let places: Vec<_> = tools.iter().map(|tool| (tool.about.place, tool.about.name)).collect();
    assert!(places.is_sorted(), "{places:?}");
    let mut names: Vec<_> = tools.iter().map(|tool| tool.about.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), tools.len(), "each name is there once");
    let numbered: Vec<u16> = places.iter().map(|(place, _)| *place).filter(|place| *place <= 73).collect();
    assert!(numbered.windows(2).all(|pair| pair[0] < pair[1]), "two tools share a place: {numbered:?}");
}

/// Complains about everything that some client does not understand.
fn check_portable(schema: &Value, place: &str, complaints: &mut Vec<String>) {
    let Some(members) = schema.as_object() else {
        complaints.push(format!("{place}: is no object"));
        return;
    };
    for word in ["$schema", "$ref", "$defs", "definitions", "nullable", "anyOf", "oneOf", "allOf", "not", "if"] {
        if members.contains_key(word) {
            complaints.push(format!("{place}: has `{word}`"));
        }
    }
    if members.get("type").is_some_and(|kind| !kind.is_string()) {
        complaints.push(format!("{place}: has several types"));
    }
    let properties = members.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        let place = format!("{place}/{name}");
        if property["description"].as_str().is_none_or(|text| text.trim().is_empty()) {
            complaints.push(format!("{place}: has no description"));
        }
        check_portable(property, &place, complaints);
    }
    for name in members.get("required").and_then(Value::as_array).into_iter().flatten() {
        if !properties.is_some_and(|properties| name.as_str().is_some_and(|name| properties.contains_key(name))) {
            complaints.push(format!("{place}: requires {name}, which it does not describe"));
        }
    }
    if let Some(items) = members.get("items") {
        check_portable(items, &format!("{place}/items"), complaints);
    }
    if let Some(rest) = members.get("additionalProperties").filter(|rest| !rest.is_boolean()) {
        check_portable(rest, &format!("{place}/*"), complaints);
    }
}

#[test]
fn schemas_are_understood_by_every_client() {
    let mut complaints = Vec::new();
    for tool in tools() {
        for (schema, name) in [(&tool.input, "input"), (&tool.output, "output")] {
            let place = format!("{} {name}", tool.about.name);
            assert_eq!(schema["type"], "object", "{place}");
            assert!(jsonschema::draft7::meta::is_valid(schema), "{place}: not draft-07");
            assert!(jsonschema::draft202012::meta::is_valid(schema), "{place}: not 2020-12");
            check_portable(schema, &place, &mut complaints);
        }
    }
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

#[test]
fn examples_fit_their_tools() {
    for tool in tools() {
        let name = tool.about.name;
        let example: Value = serde_json::from_str(tool.about.example).expect(name);
        jsonschema::validate(&tool.input, &example).expect(name);
        for argument in example.as_object().expect(name).keys() {
            assert!(tool.input["properties"][argument].is_object(), "{name}: example has `{argument}`");
        }
    }
}

#[tokio::test]
async fn the_list_is_short_always_the_same_and_says_what_tools_do() {
    let world = World::new().await;
    let list = world.client("2025-06-18").await.request("tools/list", serde_json::json!({})).await;
    let again = world.client("2025-06-18").await.request("tools/list", serde_json::json!({})).await;
    assert_eq!(list["result"], again["result"]);
    let text = list["result"].to_string();
    assert!(text.len() < MAX_LIST, "tools/list has {} bytes", text.len());
    let listed = list["result"]["tools"].as_array().unwrap();
    assert_eq!(listed.len(), tools().len());
    for tool in listed {
        let annotations = &tool["annotations"];
        for hint in ["readOnlyHint", "openWorldHint"] {
            assert!(annotations[hint].is_boolean(), "{}: {hint}", tool["name"]);
        }
        if annotations["readOnlyHint"] == false {
            assert!(annotations["destructiveHint"].is_boolean(), "{}", tool["name"]);
        }
    }
}
