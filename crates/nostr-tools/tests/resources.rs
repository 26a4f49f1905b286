//! Profiles and events as MCP resources.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should panic")]

mod support;

use nostr::nips::nip19::ToBech32;
use nostr::prelude::{Keys, Kind, Timestamp};
use serde_json::{Value, json};
use support::other::{Other, client_of, tag};
use support::{Client, World};

async fn read(client: &mut Client, uri: &str) -> Value {
    let response = client.request("resources/read", json!({ "uri": uri })).await;
    let content = &response["result"]["contents"][0];
    assert_eq!((&content["uri"], &content["mimeType"]), (&json!(uri), &json!("application/json")), "{response}");
    serde_json::from_str(content["text"].as_str().unwrap()).unwrap()
}

#[tokio::test]
async fn profiles_and_events_are_read_by_their_uris() {
    let world = World::new().await;
    let other = Other::new(Keys::generate(), &[world.url()]);
    other.post(0, Vec::new(), r#"{"name":"bob"}"#).await;
    let note = other.post(1, Vec::new(), "hello").await;
    let article = other.post(30023, vec![tag(&["d", "x"])], "long").await;
    let mut client = client_of(world.options(), &Keys::generate()).await;
    let listed = client.request("resources/list", json!({})).await;
    assert_eq!(listed["result"]["resources"].as_array().unwrap().len(), 1);
    let templates = client.request("resources/templates/list", json!({})).await;
    assert_eq!(templates["result"]["resourceTemplates"].as_array().unwrap().len(), 2);
    let profile = read(&mut client, &format!("nostr:{}", other.keys.public_key().to_bech32().unwrap())).await;
    assert_eq!(
        (&profile["metadata"]["name"], &profile["pubkey"]),
        (&json!("bob"), &json!(other.keys.public_key().to_hex()))
    );
    let found = read(&mut client, &format!("nostr:{}", note.id.to_bech32().unwrap())).await;
    assert_eq!((&found["content"], found["sig"].as_str().unwrap().len()), (&json!("hello"), 128));
    let address = nostr::nips::nip01::Coordinate::new(Kind::LongFormTextNote, other.keys.public_key()).identifier("x");
    let found = read(&mut client, &format!("nostr:{}", address.to_bech32().unwrap())).await;
    assert_eq!(found["id"], article.id.to_hex());
    let missing = format!("nostr:{}", Keys::generate().public_key().to_bech32().unwrap());
    let secret = format!("nostr:{}", Keys::generate().secret_key().to_bech32().unwrap());
    for uri in [missing.as_str(), "nostr:x", "https://example.com", "nostr:npub1x", secret.as_str()] {
        let response = client.request("resources/read", json!({ "uri": uri })).await;
        assert_eq!(response["error"]["code"], -32002, "{response}");
        assert!(!response.to_string().contains("nsec1"), "a secret is not repeated");
    }
}

#[tokio::test]
async fn news_of_what_is_subscribed_to_is_told() {
    let world = World::new().await;
    let other = Other::new(Keys::generate(), &[world.url()]);
    other.post(0, Vec::new(), r#"{"name":"old"}"#).await;
    let note = other.post(1, Vec::new(), "hello").await;
    let mut client = world.client("2025-06-18").await;
    let profile = format!("nostr:{}", other.keys.public_key().to_bech32().unwrap());
    let event = format!("nostr:{}", note.id.to_bech32().unwrap());
    for uri in [&profile, &event] {
        let response = client.request("resources/subscribe", json!({ "uri": uri })).await;
        assert_eq!(response["result"], json!({}), "{response}");
    }
    let now = Timestamp::now().as_secs();
    assert!(other.publish(&other.event(0, Vec::new(), r#"{"name":"new"}"#, now + 5)).await);
    assert_eq!(client.note("notifications/resources/updated").await["uri"], profile.as_str());
    assert_eq!(read(&mut client, &profile).await["metadata"]["name"], "new");
    other.post(5, vec![tag(&["e", &note.id.to_hex()]), tag(&["k", "1"])], "").await;
    assert_eq!(client.note("notifications/resources/updated").await["uri"], event.as_str());
    for uri in [&profile, &event] {
        client.request("resources/unsubscribe", json!({ "uri": uri })).await;
    }
    assert!(other.publish(&other.event(0, Vec::new(), "{}", now + 10)).await);
    client.request("ping", json!({})).await;
    assert!(client.notes.is_empty(), "{:?}", client.notes);
}
