//! The tools for keys, folders, encryption and signing, as a client sees them.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should panic")]

mod support;

use nostr::nips::nip19::ToBech32;
use nostr::prelude::{Event, Keys};
use rialto_nostr_tools::{Guard, Options};
use serde_json::{Value, json};
use support::{Client, World};

const VERSION: &str = "2025-11-25";

#[tokio::test]
async fn keys_come_change_and_go() {
    let world = World::new().await;
    let mut client = world.client(VERSION).await;
    assert_eq!(client.call("nostr_keys_get_active", json!({})).await.unwrap(), json!({}));
    let made = client.call("nostr_keys_generate", json!({ "label": " work " })).await.unwrap();
    assert_eq!(made["label"], "work");
    let npub = Keys::generate().public_key().to_bech32().unwrap();
    let watched = json!({ "label": "friend", "key_material": npub, "make_active": false });
    let watched = client.call("nostr_keys_import", watched).await.unwrap();
    assert_eq!(watched["public_key"], npub);
    let list = client.call("nostr_keys_list", json!({})).await.unwrap();
    assert_eq!((&list["count"], &list["active"]), (&json!(2), &json!("work")));
    client.call("nostr_keys_rename_label", json!({ "to": "office" })).await.unwrap();
    assert_eq!(client.call("nostr_keys_get_active", json!({})).await.unwrap()["label"], "office");
    client.call("nostr_keys_set_active", json!({ "label": "friend" })).await.unwrap();
    let error = client.call("nostr_keys_set_active", json!({ "label": "nobody" })).await.unwrap_err();
    assert_eq!(error["data"]["pointer"], "/label");
    let shown = client.call("nostr_keys_export", json!({ "label": "office" })).await.unwrap();
    assert_eq!(shown["public_key_npub"], made["public_key"]);
    assert!(shown.get("private_key_nsec").is_none());
    let derived = client.call("nostr_keys_derive_public", json!({ "private_key": "label:office" })).await.unwrap();
    assert_eq!(derived["public_key_npub"], made["public_key"]);
    assert_eq!(
        client.call("nostr_keys_remove", json!({ "label": "office" })).await.unwrap(),
        json!({ "removed": true })
    );
    assert_eq!(
        client.call("nostr_keys_remove", json!({ "label": "office" })).await.unwrap(),
        json!({ "removed": false })
    );
    assert_eq!(client.call("nostr_keys_list", json!({})).await.unwrap()["count"], 1);
}

#[tokio::test]
async fn a_useless_key_is_not_made() {
    let world = World::new().await;
    let mut client = world.client(VERSION).await;
    let arguments = json!({ "label": "x", "persist_secret": false });
    let error = client.call("nostr_keys_generate", arguments).await.unwrap_err();
    assert_eq!(error["data"]["pointer"], "/persist_secret");
    assert_eq!(client.call("nostr_keys_list", json!({})).await.unwrap()["count"], 0);
}

#[tokio::test]
async fn the_folder_changes_for_what_follows() {
    let world = World::new().await;
    let first = world.directory().join("first");
    let second = world.directory().join("second");
    let mut client = Client::open(Options::new(&first), VERSION).await;
    client.call("nostr_keys_generate", json!({ "label": "one" })).await.unwrap();
    let path = second.to_str().unwrap();
    client.call("nostr_config_dir_set", json!({ "path": path })).await.unwrap();
    assert_eq!(client.call("nostr_config_dir_get", json!({})).await.unwrap(), json!({ "path": path }));
    assert_eq!(client.call("nostr_keys_list", json!({})).await.unwrap()["count"], 0);
    client.call("nostr_config_dir_set", json!({ "path": first.to_str().unwrap() })).await.unwrap();
    assert_eq!(client.call("nostr_keys_list", json!({})).await.unwrap()["count"], 1);
    assert!(first.join("log.jsonl").exists() && !second.join("log.jsonl").exists(), "the log stays where it was");
}

#[tokio::test]
async fn two_keys_write_to_each_other() {
    let world = World::new().await;
    let mut client = world.client(VERSION).await;
    let mut public = Vec::new();
    for label in ["ada", "alan"] {
        let made = client.call("nostr_keys_generate", json!({ "label": label })).await.unwrap();
        public.push(made["public_key"].as_str().unwrap().to_owned());
    }
    let arguments = json!({ "private_key": "label:ada", "public_key": public[1], "plaintext": "hello" });
    let sealed = client.call("nostr_nip44_encrypt", arguments).await.unwrap();
    assert_eq!(sealed["peer_public_key_npub"], public[1].as_str());
    // Alan is active.
    let arguments = json!({ "public_key": public[0], "ciphertext": sealed["ciphertext"] });
    let opened = client.call("nostr_nip44_decrypt", arguments.clone()).await.unwrap();
    assert_eq!(opened["plaintext"], "hello");
    let mut wrong = arguments;
    wrong["private_key"] = json!("label:nobody");
    let error = client.call("nostr_nip44_decrypt", wrong).await.unwrap_err();
    assert_eq!(error["data"]["pointer"], "/private_key");
    let arguments = json!({ "public_key": public[0], "plaintext": "x", "version": 1 });
    let error = client.call("nostr_nip44_encrypt", arguments).await.unwrap_err();
    assert_eq!(error["data"]["pointer"], "/version");
}

#[tokio::test]
async fn a_draft_is_signed_as_it_is() {
    let world = World::new().await;
    let mut client = world.client(VERSION).await;
    client.call("nostr_keys_generate", json!({ "label": "me" })).await.unwrap();
    let arguments = json!({ "content": "hello", "tags": [["t", "nostr"]], "created_at": 1_700_000_000 });
    let draft = client.call("nostr_events_create_text", arguments).await.unwrap();
    let signed =
        client.call("nostr_events_sign", json!({ "unsigned_event_json": draft["unsigned_event_json"] })).await.unwrap();
    assert_eq!(signed["event_id"], draft["event_id"]);
    let event: Event = serde_json::from_str(signed["event_json"].as_str().unwrap()).unwrap();
    event.verify().unwrap();
    assert_eq!(event.tags.len(), 1);
    let mut draft: Value = serde_json::from_str(draft["unsigned_event_json"].as_str().unwrap()).unwrap();
    draft["content"] = "goodbye".into();
    let refused = client.call("nostr_events_sign", json!({ "unsigned_event_json": draft.to_string() })).await;
    assert_eq!(refused.unwrap_err()["data"]["pointer"], "/unsigned_event_json", "the id no longer fits");
    draft["id"] = Value::Null;
    draft["pubkey"] = Keys::generate().public_key().to_hex().into();
    let refused = client.call("nostr_events_sign", json!({ "unsigned_event_json": draft.to_string() })).await;
    assert!(refused.unwrap_err()["message"].as_str().unwrap().contains("author"));
    let refused = client.call("nostr_events_create_text", json!({ "content": "x", "tags": [[]] })).await;
    assert_eq!(refused.unwrap_err()["data"]["pointer"], "/tags/0");
}

#[tokio::test]
async fn identifiers_are_converted_and_explained() {
    let world = World::new().await;
    let mut client = world.client(VERSION).await;
    let key = Keys::generate().public_key();
    let (hex, npub) = (key.to_hex(), key.to_bech32().unwrap());
    let id = "a".repeat(64);
    let address = format!("30023:{hex}:first");
    let relays = json!(["wss://one.example"]);
    let cases = [
        (json!({ "target": "npub", "input": hex }), "npub", json!({ "is_secret": false, "pubkey_hex": hex })),
        (
            json!({ "target": "nprofile", "input": npub, "relays": relays }),
            "nprofile",
            json!({ "is_secret": false, "pubkey_hex": hex, "relays": relays }),
        ),
        (json!({ "target": "note", "input": id }), "note", json!({ "is_secret": false, "event_id_hex": id })),
        (
            json!({ "target": "nevent", "input": id, "author": npub, "kind": 1 }),
            "nevent",
            json!({ "is_secret": false, "event_id_hex": id, "author_hex": hex, "kind": 1, "relays": [] }),
        ),
        (
            json!({ "target": "naddr", "input": address }),
            "naddr",
            json!({ "is_secret": false, "pubkey_hex": hex, "kind": 30023, "identifier": "first", "relays": [] }),
        ),
        (
            json!({ "target": "naddr", "input": npub, "kind": 30023, "identifier": "first" }),
            "naddr",
            json!({ "is_secret": false, "pubkey_hex": hex, "kind": 30023, "identifier": "first", "relays": [] }),
        ),
    ];
    for (arguments, kind, data) in cases {
        let encoded = client.call("nostr_nip19_convert", arguments.clone()).await.unwrap()["encoded"].clone();
        assert!(encoded.as_str().unwrap().starts_with(kind), "{arguments}: {encoded}");
        let input = format!("nostr:{}", encoded.as_str().unwrap());
        let explained = client.call("nostr_nip19_analyze", json!({ "input": input })).await.unwrap();
        assert_eq!((&explained["input_type"], &explained["data"]), (&json!(kind), &data), "{arguments}");
    }
    for bad in [json!({ "target": "note", "input": npub }), json!({ "target": "naddr", "input": npub })] {
        client.call("nostr_nip19_convert", bad).await.unwrap_err();
    }
}

#[tokio::test]
async fn an_operator_may_allow_secrets() {
    let world = World::new().await;
    let guard = Guard { allows_secrets: true, ..Guard::default() };
    let mut client = Client::open(Options { guard, ..world.options() }, VERSION).await;
    let keys = Keys::generate();
    let nsec = keys.secret_key().to_bech32().unwrap();
    client.call("nostr_keys_import", json!({ "label": "me", "key_material": nsec })).await.unwrap();
    let shown = json!({ "include_private": true, "format": "both" });
    let shown = client.call("nostr_keys_export", shown).await.unwrap();
    assert_eq!(shown["private_key_nsec"], nsec.as_str());
    assert_eq!(shown["private_key_hex"], keys.secret_key().to_secret_hex());
    assert!(shown["warning"].is_string());
    let derived = client.call("nostr_keys_derive_public", json!({ "private_key": nsec })).await.unwrap();
    assert_eq!(derived["public_key_hex"], keys.public_key().to_hex());
}
