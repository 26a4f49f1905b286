//! What every tool does with arguments that are missing or of the wrong type, and without a key to sign with.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should panic")]

mod support;

use nostr::nips::nip19::ToBech32;
use nostr::prelude::Keys;
use rialto_nostr_tools::{Effect, tools};
use serde_json::{Value, json};
use support::{Client, VERSIONS, World};

/// Tools that publish without a key of ours.
const KEYLESS: [&str; 3] =
    ["nostr_events_publish_signed", "nostr_events_post_anonymous", "nostr_zaps_prepare_anonymous"];

/// A value that a schema does not take, and where in it the fault is.
fn ill_typed(schema: &Value) -> Vec<(Value, String)> {
    let mut cases = match schema["type"].as_str() {
        Some("string") => vec![(json!(7), String::new())],
        Some("array" | "object") => vec![(json!("x"), String::new())],
        Some(_) => vec![(json!("x"), String::new()), (json!([]), String::new())],
        None => Vec::new(),
    };
    if schema["type"] == "array" {
        cases.extend(
            ill_typed(&schema["items"]).into_iter().map(|(value, place)| (json!([value]), format!("/0{place}"))),
        );
    }
    if schema["enum"].is_array() {
        cases.push((json!("no such word"), String::new()));
    }
    if schema["minimum"] == 0 {
        cases.push((json!(-1), String::new()));
    }
    cases
}

/// Says that the arguments are at fault, where, and in the way that this version asks for.
async fn expect_refusal(client: &mut Client, version: &str, tool: &str, arguments: &Value, pointer: &str) {
    let response = client.call_raw(tool, arguments).await;
    let error = if version <= "2025-06-18" {
        response["error"].clone()
    } else {
        assert_eq!(response["result"]["isError"], true, "{tool} {arguments}: {response}");
        response["result"]["structuredContent"]["error"].clone()
    };
    assert_eq!(error["code"], -32602, "{version} {tool} {arguments}: {response}");
    assert_eq!(error["data"]["pointer"], pointer, "{version} {tool} {arguments}: {response}");
    assert!(error["message"].as_str().is_some_and(|text| !text.is_empty()), "{tool}: {response}");
}

#[tokio::test]
async fn what_is_missing_or_of_the_wrong_type_is_named() {
    let world = World::new().await;
    for version in VERSIONS {
        let mut client = world.client(version).await;
        for tool in tools() {
            let name = tool.about.name;
            let example: Value = serde_json::from_str(tool.about.example).unwrap();
            for required in tool.input["required"].as_array().into_iter().flatten() {
                let mut arguments = example.clone();
                let removed = arguments.as_object_mut().unwrap().remove(required.as_str().unwrap());
                assert!(removed.is_some(), "{name}: the example lacks {required}");
                let pointer = format!("/{}", required.as_str().unwrap());
                expect_refusal(&mut client, version, name, &arguments, &pointer).await;
                arguments[required.as_str().unwrap()] = Value::Null;
                expect_refusal(&mut client, version, name, &arguments, &pointer).await;
            }
            for (argument, schema) in tool.input["properties"].as_object().into_iter().flatten() {
                for (value, place) in ill_typed(schema) {
                    let mut arguments = example.clone();
                    arguments[argument] = value;
                    expect_refusal(&mut client, version, name, &arguments, &format!("/{argument}{place}")).await;
                }
            }
            expect_refusal(&mut client, version, name, &json!([1]), "").await;
        }
    }
}

#[tokio::test]
async fn an_unknown_tool_is_an_error_of_the_protocol() {
    let world = World::new().await;
    for version in VERSIONS {
        let mut client = world.client(version).await;
        let response = client.call_raw("nostr_no_such_tool", &json!({})).await;
        assert_eq!(response["error"]["code"], -32602, "{version}: {response}");
    }
}

/// Calls everything that signs, and expects to be told that there is nobody to sign.
async fn expect_no_signer(client: &mut Client) {
    for tool in tools() {
        let about = tool.about;
        let signs = about.effect.is_publishing() || about.effect == Effect::Signs;
        if !signs || KEYLESS.contains(&about.name) {
            continue;
        }
        let arguments: Value = serde_json::from_str(about.example).unwrap();
        let error = client.call(about.name, arguments).await.expect_err(about.name);
        assert_eq!(error["code"], -32602, "{}: {error}", about.name);
        assert_eq!(error["data"]["reason"], "no_signer", "{}: {error}", about.name);
    }
}

#[tokio::test]
async fn without_a_key_nothing_is_signed() {
    let world = World::new().await;
    expect_no_signer(&mut world.client("2025-11-25").await).await;
}

#[tokio::test]
async fn a_key_that_is_only_watched_signs_nothing() {
    let world = World::new().await;
    let mut client = world.client("2025-11-25").await;
    let npub = Keys::generate().public_key().to_bech32().unwrap();
    client.call("nostr_keys_import", json!({ "label": "watched", "key_material": npub })).await.unwrap();
    expect_no_signer(&mut client).await;
}
