//! The tools beside the canonical ones: private messages, lists, threads, notifications, relay lists, groups.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should panic")]

mod support;

use nostr::prelude::{Filter, Keys, Kind, RelayUrl};
use rialto_nostr_tools::Options;
use rialto_relay::embedded::{self, Relay};
use serde_json::json;
use support::World;
use support::other::{Other, call, client_of, tag};

#[tokio::test]
async fn private_messages_go_to_inboxes_and_tell_relays_nothing() {
    let world = World::new().await;
    let inbox = Relay::start(embedded::Options { require_auth: true, ..embedded::Options::default() }).await.unwrap();
    let (alice, bob) = (Keys::generate(), Keys::generate());
    let other = tempfile::tempdir().unwrap();
    let options = Options { relays: vec![world.url()], ..Options::new(other.path()) };
    let (mut sender, mut receiver) = (client_of(world.options(), &alice).await, client_of(options, &bob).await);
    let message = json!({ "to": [bob.public_key().to_hex()], "content": "psst", "subject": "secret" });
    let error = sender.call("nostr_messages_send", message.clone()).await.unwrap_err();
    assert_eq!(error["data"]["reason"], "not_found", "nobody is written to without an inbox: {error}");
    let set = json!({ "relays": [inbox.url()] });
    call(&mut receiver, "nostr_messages_set_inbox", set).await.unwrap();
    let output = call(&mut sender, "nostr_messages_send", message).await.unwrap();
    assert_eq!(output["deliveries"][0]["success"], json!([inbox.url()]), "{output}");
    assert_eq!(output["copied"], false);
    let listed = call(&mut receiver, "nostr_messages_list", json!({})).await.unwrap();
    let found = &listed["messages"][0];
    assert_eq!((&found["content"], &found["subject"]), (&json!("psst"), &json!("secret")));
    assert_eq!((&found["sender"], &found["id"]), (&json!(alice.public_key().to_hex()), &output["id"]));
    let url = RelayUrl::parse(&inbox.url()).unwrap();
    let wraps = Other::new(bob.clone(), &[url]).find(Filter::new().kind(Kind::GiftWrap)).await;
    let text = serde_json::to_string(&wraps).unwrap();
    assert!(wraps.len() == 1 && !text.contains(&alice.public_key().to_hex()) && !text.contains("psst"));
    let stranger = json!({ "with": Keys::generate().public_key().to_hex() });
    assert_eq!(call(&mut receiver, "nostr_messages_list", stranger).await.unwrap()["count"], 0);
}

#[tokio::test]
async fn lists_are_edited_and_private_items_stay() {
    let world = World::new().await;
    let keys = Keys::generate();
    let mut client = client_of(world.options(), &keys).await;
    let other = Other::new(keys.clone(), &[world.url()]);
    let private = nostr::nips::nip44::encrypt(
        keys.secret_key(),
        &keys.public_key(),
        r#"[["word","hidden"]]"#,
        nostr::nips::nip44::Version::V2,
    )
    .unwrap();
    other.post(10000, vec![tag(&["t", "old"]), tag(&["x", "unknown"])], &private).await;
    let edit = json!({ "list": "mute", "add": [["word", "Spam"], ["t", "#old"]], "remove": [["t", "none"]] });
    call(&mut client, "nostr_lists_edit", edit).await.unwrap();
    let output =
        call(&mut client, "nostr_lists_get", json!({ "list": "mute", "include_private": true })).await.unwrap();
    assert_eq!(output["items"], json!([["t", "old"], ["x", "unknown"], ["word", "spam"]]));
    assert_eq!(output["private_items"], json!([["word", "hidden"]]));
    let set = json!({ "list": "follow_set", "identifier": "friends", "add": [["p", keys.public_key().to_hex()]] });
    call(&mut client, "nostr_lists_edit", set).await.unwrap();
    let event = other.newest(30000).await.unwrap();
    assert_eq!(event.tags.identifier().as_deref(), Some("friends"));
    for (bad, pointer) in [
        (json!({ "list": "mute" }), "/add"),
        (json!({ "list": "follow_set", "add": [["t", "x"]] }), "/identifier"),
        (json!({ "list": "mute", "add": [["p", "zzz"]] }), "/add/0/1"),
        (json!({ "list": "mute", "add": [["nonce", "1"]] }), "/add/0/0"),
    ] {
        assert_eq!(client.call("nostr_lists_edit", bad).await.unwrap_err()["data"]["pointer"], pointer);
    }
}

#[tokio::test]
async fn private_items_are_edited_without_being_shown() {
    use nostr::nips::{nip04, nip44};
    let world = World::new().await;
    let keys = Keys::generate();
    let mut client = client_of(world.options(), &keys).await;
    let other = Other::new(keys.clone(), &[world.url()]);
    let (secret, public) = (keys.secret_key(), keys.public_key());
    // As clients wrote it before NIP-44.
    let old = nip04::encrypt(secret, &public, r#"[["word","hidden"],["x","unknown"]]"#).unwrap();
    other.post(10000, vec![tag(&["t", "shown"])], &old).await;
    let edit = json!({
        "list": "mute", "add_private": [["word", "Secret"], ["word", "hidden"]], "remove_private": [["t", "none"]],
        "add": [["t", "also"]],
    });
    call(&mut client, "nostr_lists_edit", edit.clone()).await.unwrap();
    let event = other.newest(10000).await.unwrap();
    let text = nip44::decrypt(secret, &public, &event.content).unwrap();
    assert_eq!(text, r#"[["word","hidden"],["x","unknown"],["word","secret"]]"#);
    assert_eq!(event.tags.iter().cloned().collect::<Vec<_>>(), [tag(&["t", "shown"]), tag(&["t", "also"])]);
    assert!(!serde_json::to_string(&event).unwrap().contains("secret"));
    call(&mut client, "nostr_lists_edit", edit).await.unwrap();
    assert_eq!(other.newest(10000).await.unwrap().id, event.id, "what is there already is not published again");
    let clear = json!({ "list": "mute", "remove_private": [["word", "hidden"], ["word", "secret"]] });
    call(&mut client, "nostr_lists_edit", clear).await.unwrap();
    let read = json!({ "list": "mute", "include_private": true });
    let output = call(&mut client, "nostr_lists_get", read).await.unwrap();
    assert_eq!(output["private_items"], json!([["x", "unknown"]]));
    // What cannot be read is not taken for nothing.
    let now = nostr::prelude::Timestamp::now().as_secs();
    let damaged = other.event(10000, vec![tag(&["t", "shown"])], "damaged", now + 60);
    assert!(other.publish(&damaged).await);
    let blind = json!({ "list": "mute", "add_private": [["word", "x"]] });
    let error = client.call("nostr_lists_edit", blind).await.unwrap_err();
    assert!(error["message"].as_str().unwrap().contains("left alone"), "{error}");
    assert_eq!(other.newest(10000).await.unwrap().id, damaged.id);
    let bad = json!({ "list": "mute", "add_private": [["p", "zzz"]] });
    assert_eq!(client.call("nostr_lists_edit", bad).await.unwrap_err()["data"]["pointer"], "/add_private/0/1");
}

#[tokio::test]
async fn relay_lists_are_merged_too() {
    let world = World::new().await;
    let keys = Keys::generate();
    let mut client = client_of(world.options(), &keys).await;
    let other = Other::new(keys.clone(), &[world.url()]);
    let ours = world.relay.url();
    other
        .post(10002, vec![tag(&["r", &ours]), tag(&["alt", "kept"]), tag(&["r", "wss://gone.example", "read"])], "")
        .await;
    let set = json!({ "relays": [{ "url": ours, "read": true, "write": true }, { "url": "wss://new.example", "read": false, "write": true }] });
    call(&mut client, "nostr_relays_set_list", set).await.unwrap();
    let event = other.newest(10002).await.unwrap();
    let expected = [tag(&["alt", "kept"]), tag(&["r", &ours]), tag(&["r", "wss://new.example", "write"])];
    assert_eq!(event.tags.iter().cloned().collect::<Vec<_>>(), expected);
    let output = call(&mut client, "nostr_relays_get_list", json!({})).await.unwrap();
    assert_eq!(output["relays"][1], json!({ "url": "wss://new.example", "read": false, "write": true }));
    let bad = json!({ "relays": [{ "url": "wss://a.example", "read": false, "write": false }] });
    assert_eq!(client.call("nostr_relays_set_list", bad).await.unwrap_err()["data"]["pointer"], "/relays/0");
}

#[tokio::test]
async fn conversations_and_notifications_are_found() {
    let world = World::new().await;
    let keys = Keys::generate();
    let (me, friend) = (Other::new(keys.clone(), &[world.url()]), Other::new(Keys::generate(), &[world.url()]));
    let root = me.post(1, Vec::new(), "question").await;
    let (id, who) = (root.id.to_hex(), keys.public_key().to_hex());
    let reply = friend.post(1, vec![tag(&["e", &id, "", "root"]), tag(&["p", &who])], "answer").await;
    friend.post(1111, vec![tag(&["E", &id]), tag(&["K", "1"]), tag(&["e", &id]), tag(&["p", &who])], "comment").await;
    friend.post(7, vec![tag(&["e", &id]), tag(&["p", &who])], "+").await;
    me.post(1, vec![tag(&["e", &id, "", "root"]), tag(&["p", &who])], "thanks").await;
    let mut client = client_of(world.options(), &keys).await;
    let thread = call(&mut client, "nostr_events_get_thread", json!({ "event_id": reply.id.to_hex() })).await.unwrap();
    assert_eq!((&thread["root"]["content"], &thread["count"]), (&json!("question"), &json!(3)));
    let news = call(&mut client, "nostr_events_list_notifications", json!({})).await.unwrap();
    assert_eq!(news["count"], 3, "what I wrote myself is no news: {news}");
}

#[tokio::test]
async fn groups_are_read() {
    let world = World::new().await;
    let relay_key = Other::new(Keys::generate(), &[world.url()]);
    let member = Other::new(Keys::generate(), &[world.url()]);
    let who = member.keys.public_key().to_hex();
    relay_key.post(39000, vec![tag(&["d", "cats"]), tag(&["name", "Cats"]), tag(&["closed"])], "").await;
    relay_key.post(39001, vec![tag(&["d", "cats"]), tag(&["p", &who, "king"])], "").await;
    relay_key.post(39002, vec![tag(&["d", "cats"]), tag(&["p", &who])], "").await;
    member.post(9, vec![tag(&["h", "cats"])], "meow").await;
    let mut client = world.client("2025-11-25").await;
    let output = call(&mut client, "nostr_groups_get", json!({ "group_id": "cats" })).await.unwrap();
    assert_eq!((&output["name"], &output["closed"], &output["private"]), (&json!("Cats"), &json!(true), &json!(false)));
    assert_eq!((&output["admins"][0]["roles"], &output["members"]), (&json!(["king"]), &json!([who])));
    let said = call(&mut client, "nostr_groups_list_messages", json!({ "group_id": "cats" })).await.unwrap();
    assert_eq!(said["items"][0]["content"], "meow");
    let error = client.call("nostr_groups_get", json!({ "group_id": "dogs" })).await.unwrap_err();
    assert_eq!(error["data"]["reason"], "not_found");
}
