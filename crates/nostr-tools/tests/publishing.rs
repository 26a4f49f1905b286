//! Publishing: what counts as published, and what relays do to it.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should panic")]

mod support;

use nostr::prelude::{Filter, Keys, Kind, RelayUrl};
use rialto_nostr_tools::Options;
use rialto_relay::embedded::{self, Limits, Relay};
use serde_json::json;
use std::time::{Duration, Instant};
use support::World;
use support::other::{Other, call, client_of, tag};

const AWAY: &str = "ws://127.0.0.1:9";

#[tokio::test]
async fn one_relay_is_enough_and_each_answer_is_told() {
    let world = World::new().await;
    let strict = Limits { max_event_bytes: 10, ..Limits::default() };
    let strict = Relay::start(embedded::Options { limits: strict, ..embedded::Options::default() }).await.unwrap();
    let relays = [world.relay.url(), strict.url(), AWAY.to_owned()].map(|url| RelayUrl::parse(&url).unwrap());
    let options = Options { relays: relays.to_vec(), ..Options::new(world.directory()) };
    let mut client = client_of(options, &Keys::generate()).await;
    let output = call(&mut client, "nostr_events_post_text", json!({ "content": "hello" })).await.unwrap();
    assert_eq!(output["success"], json!([world.relay.url()]));
    let failed = output["failed"].as_object().unwrap();
    assert_eq!(failed.len(), 2, "{output}");
    assert!(failed[AWAY].as_str().unwrap().contains("refused"), "{output}");
}

#[tokio::test]
async fn what_no_relay_takes_is_an_error_with_all_reasons() {
    let home = tempfile::tempdir().unwrap();
    let strict = Limits { max_event_bytes: 10, ..Limits::default() };
    let strict = Relay::start(embedded::Options { limits: strict, ..embedded::Options::default() }).await.unwrap();
    let relays = [strict.url(), AWAY.to_owned()].map(|url| RelayUrl::parse(&url).unwrap());
    let mut client =
        client_of(Options { relays: relays.to_vec(), ..Options::new(home.path()) }, &Keys::generate()).await;
    let began = Instant::now();
    let error = client.call("nostr_events_post_text", json!({ "content": "hello" })).await.unwrap_err();
    assert!(began.elapsed() < Duration::from_secs(10), "relays that are not there are not waited for");
    assert_eq!((&error["code"], &error["data"]["reason"]), (&json!(-32603), &json!("relays")));
    assert_eq!(error["data"]["failed"].as_object().unwrap().len(), 2, "{error}");
    // What has been reported as failed does not turn up later.
    let error = client.call("nostr_metadata_set", json!({ "name": "x", "force": true })).await.unwrap_err();
    assert_eq!(error["data"]["reason"], "relays", "{error}");
    let known = call(&mut client, "nostr_metadata_get", json!({})).await.unwrap();
    assert!(known["metadata"].is_null());
}

#[tokio::test]
async fn work_is_done_when_asked_for_or_demanded() {
    let limits = Limits { min_pow_difficulty: 8, ..Limits::default() };
    let relay = Relay::start(embedded::Options { limits, ..embedded::Options::default() }).await.unwrap();
    let url = RelayUrl::parse(&relay.url()).unwrap();
    let home = tempfile::tempdir().unwrap();
    let options = Options { relays: vec![url.clone()], ..Options::new(home.path()) };
    let mut client = client_of(options, &Keys::generate()).await;
    call(&mut client, "nostr_events_post_text", json!({ "content": "demanded" })).await.unwrap();
    call(&mut client, "nostr_events_post_text", json!({ "content": "asked for", "pow": 12 })).await.unwrap();
    let found = Other::new(Keys::generate(), &[url]).find(Filter::new()).await;
    let has = |text: &str, bits: u8| found.iter().find(|event| event.content == text).unwrap().check_pow(bits);
    assert!(has("demanded", 8) && has("asked for", 12));
    let error = client.call("nostr_events_post_text", json!({ "content": "x", "pow": 200 })).await.unwrap_err();
    assert_eq!(error["data"]["pointer"], "/pow");
}

#[tokio::test]
async fn whoever_is_mentioned_gets_it_where_they_read() {
    let world = World::new().await;
    let second = Relay::start(embedded::Options::default()).await.unwrap();
    let there = RelayUrl::parse(&second.url()).unwrap();
    let friend = Other::new(Keys::generate(), &[world.url()]);
    friend.post(10002, vec![tag(&["r", &second.url(), "read"])], "").await;
    let note = friend.post(1, Vec::new(), "like me").await;
    let mut client = client_of(world.options(), &Keys::generate()).await;
    let like = json!({ "event_id": note.id.to_hex(), "event_pubkey": friend.keys.public_key().to_hex() });
    let output = call(&mut client, "nostr_events_post_reaction", like).await.unwrap();
    let success = output["success"].as_array().unwrap();
    assert!(success.contains(&json!(world.relay.url())) && success.contains(&json!(second.url())), "{output}");
    assert_eq!(Other::new(Keys::generate(), &[there]).find(Filter::new().kind(Kind::Reaction)).await.len(), 1);
}

#[tokio::test]
async fn slow_calls_tell_how_far_they_are() {
    let world = World::new().await;
    let mut client = client_of(world.options(), &Keys::generate()).await;
    let params = json!({
        "name": "nostr_events_post_text", "arguments": { "content": "x" }, "_meta": { "progressToken": "p" }
    });
    client.request("tools/call", params).await;
    let note = client.note("notifications/progress").await;
    assert_eq!((&note["progressToken"], &note["progress"]), (&json!("p"), &json!(1)));
}

#[tokio::test]
async fn versions_of_one_second_replace_each_other_in_order() {
    let world = World::new().await;
    let keys = Keys::generate();
    let mut client = client_of(world.options(), &keys).await;
    let other = Other::new(keys.clone(), &[world.url()]);
    let mut last = 0;
    for name in ["one", "two", "three", "four", "five"] {
        call(&mut client, "nostr_badges_define", json!({ "identifier": "medal", "name": name })).await.unwrap();
        let newest = other.newest(30009).await.unwrap();
        assert!(newest.tags.iter().any(|tag| *tag == self::tag(&["name", name])), "{name}: {newest:?}");
        assert!(newest.created_at.as_secs() > last, "{name}");
        last = newest.created_at.as_secs();
    }
    let ahead = other.event(30023, vec![tag(&["d", "x"])], "from a clock ahead of ours", last + 30);
    assert!(other.publish(&ahead).await);
    let article = json!({ "identifier": "x", "content": "newer" });
    call(&mut client, "nostr_events_post_long_form", article).await.unwrap();
    assert_eq!(other.newest(30023).await.unwrap().content, "newer");
}
