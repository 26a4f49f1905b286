//! What must hold of the definition of every tool.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should panic")]

mod support;

use rialto_nostr_tools::conformance::portable;
use rialto_nostr_tools::{Status, tools};
use serde_json::Value;
use support::World;

/// Places of tools that the standard names; those after them are our own.
const CANONICAL: u16 = 73;

/// Bytes of `tools/list` for the canonical tools: more of a model's attention should not be spent before it has done anything.
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
    let numbered: Vec<u16> = places.iter().map(|(place, _)| *place).filter(|place| *place <= CANONICAL).collect();
    assert!(numbered.windows(2).all(|pair| pair[0] < pair[1]), "two tools share a place: {numbered:?}");
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
            complaints.extend(portable(schema).iter().map(|complaint| format!("{place}{complaint}")));
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
    let listed = list["result"]["tools"].as_array().unwrap();
    assert_eq!(listed.len(), tools().len());
    let canonical = listed.iter().zip(tools()).filter(|(_, tool)| tool.about.place <= CANONICAL);
    let length: usize = canonical.map(|(listed, _)| listed.to_string().len() + 1).sum();
    assert!(length < MAX_LIST, "tools/list has {length} bytes");
    for tool in listed {
        let annotations = &tool["annotations"];
        // Each says whether it only reads, or whether what it replaces is lost.
        let says = |hint: &str| annotations[hint].is_boolean();
        assert!(says("readOnlyHint") != says("destructiveHint"), "{}", tool["name"]);
        assert_eq!(tool["outputSchema"]["type"], "object");
    }
}
