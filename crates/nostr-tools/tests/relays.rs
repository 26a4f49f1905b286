//! Relays in use, what they say about themselves, and names on the web.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should panic")]

mod support;

use nostr::prelude::Keys;
use rialto_nostr_tools::Options;
use rialto_relay::embedded::{self, Relay};
use serde_json::{Value, json};
use support::other::{call, web};
use support::{Client, World};

const VERSION: &str = "2025-11-25";

fn row<'a>(output: &'a Value, url: &str) -> &'a Value {
    output["relays"].as_array().unwrap().iter().find(|row| row["url"] == url).unwrap_or(&Value::Null)
}

#[tokio::test]
async fn chosen_relays_and_their_flags_survive_a_restart() {
    let world = World::new().await;
    let second = Relay::start(embedded::Options::default()).await.unwrap();
    let mut client = world.client(VERSION).await;
    let set = json!({ "urls": [second.url()], "read_write": "read" });
    let output = call(&mut client, "nostr_relays_set", set).await.unwrap();
    assert_eq!(
        *row(&output, &second.url()),
        json!({
            "url": second.url(), "status": "connected", "read": true, "write": false, "discovery": false
        })
    );
    drop(client);
    let mut client = world.client(VERSION).await;
    let output = call(&mut client, "nostr_relays_status", json!({})).await.unwrap();
    let kept = row(&output, &second.url());
    assert_eq!((&kept["status"], &kept["read"], &kept["write"]), (&json!("disconnected"), &json!(true), &json!(false)));
    assert_eq!(output["summary"]["relay_count"], "2");
    let output = call(&mut client, "nostr_relays_connect", json!({})).await.unwrap();
    assert!(output["relays"].as_array().unwrap().iter().all(|row| row["status"] == "connected"), "{output}");
    // Without `force_remove` it stays known.
    let output = call(&mut client, "nostr_relays_disconnect", json!({ "urls": [second.url()] })).await.unwrap();
    assert_eq!(row(&output, &second.url())["status"], "disconnected");
    let remove = json!({ "urls": [second.url()], "force_remove": true });
    let output = call(&mut client, "nostr_relays_disconnect", remove).await.unwrap();
    assert!(row(&output, &second.url()).is_null());
    let unknown = call(&mut client, "nostr_relays_connect", json!({ "urls": [second.url()] })).await.unwrap_err();
    assert_eq!((&unknown["code"], &unknown["data"]["pointer"]), (&json!(-32602), &json!("/urls/0")));
}

#[tokio::test]
async fn without_relays_nothing_is_read_and_that_is_said() {
    let world = World::new().await;
    let mut client = world.client(VERSION).await;
    call(&mut client, "nostr_relays_disconnect", json!({})).await.unwrap();
    let error = client.call("nostr_events_query", json!({ "filters": [{ "kinds": [1] }] })).await.unwrap_err();
    assert_eq!((&error["code"], &error["data"]["reason"]), (&json!(-32603), &json!("relays")));
    assert!(error["message"].as_str().unwrap().contains("nostr_relays_connect"), "{error}");
}

#[tokio::test]
async fn relays_and_names_inside_the_network_are_not_reached() {
    let home = tempfile::tempdir().unwrap();
    let relay = Relay::start(embedded::Options::default()).await.unwrap();
    // The operator has named a relay elsewhere, so this machine is out of bounds.
    let relays = vec![nostr::prelude::RelayUrl::parse("ws://192.0.2.1:1").unwrap()];
    let mut client = Client::open(Options { relays, ..Options::new(home.path()) }, VERSION).await;
    let output = call(&mut client, "nostr_relays_set", json!({ "urls": [relay.url()] })).await.unwrap();
    let status = row(&output, &relay.url())["status"].as_str().unwrap().to_owned();
    assert!(status.contains("private network"), "{status}");
    for url in [relay.url(), "ws://169.254.169.254/latest".to_owned(), "http://localhost:1/".to_owned()] {
        let error = client.call("nostr_relays_get_info", json!({ "relay_url": url })).await.unwrap_err();
        let words = error["message"].as_str().unwrap();
        assert!(words.contains("private network"), "{words}");
    }
    let error = client.call("nostr_nip05_resolve", json!({ "identifier": "me@127.0.0.1:1" })).await.unwrap_err();
    assert_eq!(error["data"]["reason"], "not_allowed", "{error}");
}

#[tokio::test]
async fn a_relay_tells_about_itself() {
    let world = World::new().await;
    let mut client = world.client(VERSION).await;
    let url = world.relay.url();
    let output = call(&mut client, "nostr_relays_get_info", json!({ "relay_url": url })).await.unwrap();
    assert_eq!((&output["status"], &output["document"]["name"]), (&json!(200), &json!("rialto")));
    let silent = web(|_| (302, String::new())).await;
    let asked = json!({ "relay_url": format!("ws://{silent}"), "timeout_secs": 5 });
    let error = client.call("nostr_relays_get_info", asked).await.unwrap_err();
    assert!(error["message"].as_str().unwrap().contains("302"), "redirections are not followed: {error}");
    let error = client.call("nostr_relays_get_info", json!({ "relay_url": "mailto:x" })).await.unwrap_err();
    assert_eq!(error["data"]["pointer"], "/relay_url");
}

#[tokio::test]
async fn names_on_the_web_lead_to_keys() {
    let world = World::new().await;
    let mut client = world.client(VERSION).await;
    let (key, other) = (Keys::generate().public_key(), Keys::generate().public_key());
    let document = json!({
        "names": { "me": key.to_hex() },
        "relays": { key.to_hex(): ["wss://r.example"] },
        "nip46": { key.to_hex(): ["wss://s.example"] },
    });
    let address = web(move |target| match target {
        "/.well-known/nostr.json?name=gone" => (302, String::new()),
        _ => (200, document.to_string()),
    })
    .await;
    let resolve = |name: &str| json!({ "identifier": format!("{name}@{address}") });
    let output = call(&mut client, "nostr_nip05_resolve", resolve("me")).await.unwrap();
    assert_eq!(output["pubkey_hex"], key.to_hex());
    assert_eq!(
        (&output["relays"], &output["nip46_relays"]),
        (&json!(["wss://r.example"]), &json!(["wss://s.example"]))
    );
    let error = client.call("nostr_nip05_resolve", resolve("you")).await.unwrap_err();
    assert_eq!(error["data"]["reason"], "not_found");
    let error = client.call("nostr_nip05_resolve", resolve("gone")).await.unwrap_err();
    assert_eq!(error["code"], -32603, "redirections are not followed: {error}");
    for (name, whose, valid) in [("me", key, true), ("me", other, false), ("you", key, false)] {
        let mut arguments = resolve(name);
        arguments["pubkey"] = whose.to_hex().into();
        let output = call(&mut client, "nostr_nip05_verify", arguments).await.unwrap();
        assert_eq!(output["valid"], valid, "{name}");
    }
    let error = client.call("nostr_nip05_resolve", json!({ "identifier": "a@b/c" })).await.unwrap_err();
    assert_eq!(error["code"], -32602);
}
