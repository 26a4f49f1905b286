//! What the operator does not allow does not happen, and what happens is written down.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should panic")]

mod support;

use nostr::nips::nip19::ToBech32;
use nostr::prelude::{Keys, Kind};
use rialto_nostr_tools::log::{Log, Outcome};
use rialto_nostr_tools::{Guard, Options, tools};
use serde_json::json;
use support::{Client, User, VERSIONS, World};

#[tokio::test]
async fn a_read_only_server_changes_nothing() {
    let world = World::new().await;
    let guard = Guard { is_read_only: true, ..Guard::default() };
    let mut client = Client::open(Options { guard, ..world.options() }, "2025-11-25").await;
    let list = client.request("tools/list", json!({})).await;
    for tool in list["result"]["tools"].as_array().unwrap() {
        assert_eq!(tool["annotations"]["readOnlyHint"], true, "{}", tool["name"]);
    }
    for tool in tools().iter().filter(|tool| !tool.about.effect.is_reading()) {
        let arguments = serde_json::from_str(tool.about.example).unwrap();
        let error = client.call(tool.about.name, arguments).await.unwrap_err();
        assert_eq!(error["data"]["reason"], "not_allowed", "{}", tool.about.name);
    }
    assert!(!world.directory().join("identities.json").exists());
}

#[tokio::test]
async fn kinds_that_are_not_allowed_are_not_signed() {
    let world = World::new().await;
    let guard = Guard { kinds: vec![Kind::Reaction], ..Guard::default() };
    let mut client = Client::open(Options { guard, ..world.options() }, "2025-11-25").await;
    client.call("nostr_keys_generate", json!({ "label": "me" })).await.unwrap();
    for (tool, arguments) in [
        ("nostr_events_post_text", json!({ "content": "x" })),
        ("nostr_events_sign", json!({ "unsigned_event_json": r#"{"kind":1,"content":"x"}"# })),
    ] {
        let error = client.call(tool, arguments).await.unwrap_err();
        assert_eq!(error["data"]["reason"], "not_allowed", "{tool}: {error}");
    }
    let allowed = json!({ "unsigned_event_json": r#"{"kind":7,"content":"+"}"# });
    client.call("nostr_events_sign", allowed).await.unwrap();
}

#[tokio::test]
async fn writes_are_limited_and_reads_are_not() {
    let world = World::new().await;
    let guard = Guard { writes_per_minute: Some(2), ..Guard::default() };
    let mut client = Client::open(Options { guard, ..world.options() }, "2025-11-25").await;
    for label in ["one", "two"] {
        client.call("nostr_keys_generate", json!({ "label": label })).await.unwrap();
    }
    let error = client.call("nostr_keys_generate", json!({ "label": "three" })).await.unwrap_err();
    assert_eq!(error["data"]["reason"], "rate_limited");
    assert!(error["data"]["retry_after_secs"].as_u64().is_some_and(|seconds| seconds <= 60));
    for _ in 0..5 {
        client.call("nostr_keys_list", json!({})).await.unwrap();
    }
}

#[tokio::test]
async fn the_user_is_asked_before_anything_is_written() {
    for version in VERSIONS {
        for user in [User::Accepts, User::Declines, User::Unreachable] {
            let world = World::new().await;
            let guard = Guard { asks_before_writing: true, ..Guard::default() };
            let options = Options { guard, ..world.options() };
            let mut client = Client::with_user(options, version, user).await;
            client.call("nostr_keys_list", json!({})).await.unwrap();
            assert!(client.questions.is_empty(), "reading needs no question");
            let outcome = client.call("nostr_keys_generate", json!({ "label": "me" })).await;
            match user {
                User::Accepts => assert_eq!(outcome.unwrap()["label"], "me"),
                _ => assert_eq!(outcome.unwrap_err()["data"]["reason"], "not_allowed", "{version} {user:?}"),
            }
            let asked = if user == User::Unreachable { 0 } else { 1 };
            assert_eq!(client.questions.len(), asked, "{version} {user:?}");
            for question in &client.questions {
                let message = question["message"].as_str().unwrap();
                assert!(message.contains("nostr_keys_generate") && message.contains("label: \"me\""), "{message}");
            }
            assert_eq!(world.directory().join("identities.json").exists(), user == User::Accepts);
        }
    }
}

#[tokio::test]
async fn an_answer_counts_only_for_what_was_asked() {
    let world = World::new().await;
    let guard = Guard { asks_before_writing: true, ..Guard::default() };
    let mut client = Client::with_user(Options { guard, ..world.options() }, "2026-07-28", User::Accepts).await;
    let asked =
        client.request("tools/call", json!({ "name": "nostr_keys_generate", "arguments": { "label": "a" } })).await;
    let forged = json!({
        "name": "nostr_keys_generate",
        "arguments": { "label": "b" },
        "inputResponses": { "confirm": { "action": "accept" } },
        "requestState": asked["result"]["requestState"],
    });
    let response = client.request("tools/call", forged).await;
    assert_eq!(response["result"]["resultType"], "input_required");
    assert!(!world.directory().join("identities.json").exists());
}

#[tokio::test]
async fn what_happens_is_written_down_before_and_after() {
    let world = World::new().await;
    let mut client = world.client("2025-11-25").await;
    client.call("nostr_keys_generate", json!({ "label": "me" })).await.unwrap();
    let sent = client.call("nostr_events_post_text", json!({ "content": "x".repeat(300) })).await.unwrap();
    client.call("nostr_keys_generate", json!({ "label": "me" })).await.unwrap_err();
    client.call("nostr_keys_generate", json!({})).await.unwrap_err();
    let lines = Log::new(world.directory()).read().unwrap();
    let told: Vec<_> = lines.iter().map(|line| (line.tool.as_str(), line.outcome)).collect();
    let (generate, post) = ("nostr_keys_generate", "nostr_events_post_text");
    assert_eq!(
        told,
        [
            (generate, Outcome::Begun),
            (generate, Outcome::Done),
            (post, Outcome::Begun),
            (post, Outcome::Done),
            (generate, Outcome::Begun),
            (generate, Outcome::Failed),
            (generate, Outcome::Refused),
        ]
    );
    assert_eq!(lines[2].call, lines[3].call);
    assert_eq!(lines[3].event.as_deref(), sent["id"].as_str());
    assert_eq!((lines[2].key.as_deref(), lines[2].client.as_deref()), (Some("me"), Some("test")));
    assert_eq!(lines[2].arguments["content"].as_str().unwrap().chars().count(), 201, "long texts are cut");
    assert_eq!(lines[6].reason.as_deref(), Some("invalid_input"));
}

#[tokio::test]
async fn what_cannot_be_written_down_does_not_happen() {
    let world = World::new().await;
    std::fs::create_dir(world.directory().join("log.jsonl")).unwrap();
    let mut client = world.client("2025-11-25").await;
    let error = client.call("nostr_keys_generate", json!({ "label": "me" })).await.unwrap_err();
    assert_eq!(error["code"], -32603);
    assert!(!world.directory().join("identities.json").exists());
}

#[tokio::test]
async fn a_secret_in_the_arguments_is_not_published() {
    let world = World::new().await;
    let mut client = world.client("2025-11-25").await;
    client.call("nostr_keys_generate", json!({ "label": "me" })).await.unwrap();
    let nsec = Keys::generate().secret_key().to_bech32().unwrap();
    let error =
        client.call("nostr_events_post_text", json!({ "content": format!("my key: {nsec}") })).await.unwrap_err();
    assert_eq!(error["data"]["reason"], "not_allowed");
}
