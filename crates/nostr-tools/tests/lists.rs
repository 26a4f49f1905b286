//! Profiles and follow lists: nothing that another client wrote is lost.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should panic")]

mod support;

use nostr::nips::nip19::ToBech32;
use nostr::prelude::{Event, Keys, RelayUrl, Tag, Timestamp};
use rialto_nostr_tools::Options;
use rialto_relay::embedded::{self, Relay};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use support::other::{Other, call, client_of, tag};
use support::{Client, World};

const VERSION: &str = "2025-11-25";

fn followed(event: &Event) -> BTreeSet<String> {
    event.tags.iter().filter(|tag| tag.kind() == "p").filter_map(|tag| tag.content()).map(Into::into).collect()
}

fn key() -> String {
    Keys::generate().public_key().to_hex()
}

#[tokio::test]
async fn a_list_of_another_client_is_kept() {
    let world = World::new().await;
    let keys = Keys::generate();
    let mut client = client_of(world.options(), &keys).await;
    let other = Other::new(keys.clone(), &[world.url()]);
    let theirs: Vec<String> = (0..5).map(|_| key()).collect();
    let mut tags: Vec<Tag> = theirs.iter().map(|key| tag(&["p", key, "wss://hint.example", "name"])).collect();
    tags.push(tag(&["p", "not a key"]));
    tags.push(tag(&["x", "unknown"]));
    other.post(3, tags.clone(), "{\"old\":{}}").await;
    let new = key();
    let add = json!({ "pubkey": new, "petname": "new", "relay_url": "wss://r.example/" });
    let output = call(&mut client, "nostr_follows_add", add).await.unwrap();
    assert_eq!((&output["count"], &output["result"]["published"]), (&json!(6), &json!(true)));
    let event = other.newest(3).await.unwrap();
    tags.push(tag(&["p", &new, "wss://r.example", "new"]));
    assert_eq!(event.tags.iter().cloned().collect::<Vec<_>>(), tags);
    assert_eq!(event.content, "{\"old\":{}}");
    let remove = json!({ "pubkey": theirs[0] });
    let output = call(&mut client, "nostr_follows_remove", remove).await.unwrap();
    assert_eq!(output["count"], 5);
    let kept = call(&mut client, "nostr_follows_get", json!({})).await.unwrap();
    let fetched = call(&mut client, "nostr_follows_fetch", json!({})).await.unwrap();
    assert_eq!(kept, fetched);
    let set = json!({ "follows": [{ "pubkey": theirs[1] }, { "pubkey": new }] });
    call(&mut client, "nostr_follows_set", set).await.unwrap();
    let event = other.newest(3).await.unwrap();
    assert_eq!(
        event.tags.iter().cloned().collect::<Vec<_>>(),
        [
            tag(&["p", &theirs[1], "wss://hint.example", "name"]),
            tag(&["p", "not a key"]),
            tag(&["x", "unknown"]),
            tag(&["p", &new, "wss://r.example", "new"]),
        ]
    );
    let bad = json!({ "follows": [{ "pubkey": "zzz" }] });
    let error = client.call("nostr_follows_set", bad).await.unwrap_err();
    assert_eq!(error["data"]["pointer"], "/follows/0/pubkey");
}

#[tokio::test]
async fn a_profile_keeps_what_we_do_not_know() {
    let world = World::new().await;
    let keys = Keys::generate();
    let mut client = client_of(world.options(), &keys).await;
    let output = call(&mut client, "nostr_metadata_get", json!({})).await.unwrap();
    assert!(output["metadata"].is_null());
    let other = Other::new(keys.clone(), &[world.url()]);
    other
        .post(0, vec![tag(&["i", "github:x"])], r#"{"name":"old","pronouns":"they","website":"https://a.example"}"#)
        .await;
    let later = json!({ "about": "Later", "publish": false });
    let output = call(&mut client, "nostr_metadata_set", later).await.unwrap();
    assert_eq!(output["published"], false);
    let set = json!({ "name": "new", "website": "" });
    let output = call(&mut client, "nostr_metadata_set", set).await.unwrap();
    assert_eq!(output["success_relays"], json!([world.relay.url()]));
    let event = other.newest(0).await.unwrap();
    let content: Value = serde_json::from_str(&event.content).unwrap();
    assert_eq!(content, json!({ "name": "new", "pronouns": "they", "about": "Later" }));
    assert_eq!(event.tags.len(), 1);
    let fetched = call(&mut client, "nostr_metadata_fetch", json!({ "label": "me" })).await.unwrap();
    assert_eq!(fetched["metadata"], content);
    let public = json!({ "pubkey": keys.public_key().to_hex() });
    assert_eq!(call(&mut client, "nostr_profiles_get", public).await.unwrap()["metadata"], content);
    let known = call(&mut client, "nostr_metadata_get", json!({})).await.unwrap();
    assert_eq!(known["metadata"], json!({ "name": "new", "about": "Later" }));
    let error = client.call("nostr_metadata_set", json!({ "picture": "x" })).await.unwrap_err();
    assert_eq!(error["data"]["pointer"], "/picture");
    let known = call(&mut client, "nostr_metadata_get", json!({})).await.unwrap();
    assert!(known["metadata"]["picture"].is_null(), "what is refused is not kept");
}

#[tokio::test]
async fn what_cannot_be_read_is_not_replaced() {
    let world = World::new().await;
    let keys = Keys::generate();
    let away = RelayUrl::parse("ws://127.0.0.1:9").unwrap();
    let options = Options { relays: vec![world.url(), away.clone()], ..Options::new(world.directory()) };
    let mut client = client_of(options, &keys).await;
    // One relay has nothing, the other cannot be asked: perhaps there is a list.
    let add = json!({ "pubkey": key() });
    let error = client.call("nostr_follows_add", add.clone()).await.unwrap_err();
    assert_eq!(error["data"]["silent"], json!([away.as_str_without_trailing_slash()]), "{error}");
    assert!(error["message"].as_str().unwrap().contains("force"), "{error}");
    let other = Other::new(keys.clone(), &[world.url()]);
    assert!(other.newest(3).await.is_none());
    let forced = json!({ "pubkey": key(), "force": true });
    let output = call(&mut client, "nostr_follows_add", forced).await.unwrap();
    assert_eq!(output["result"]["success_relays"], json!([world.relay.url()]));
    // Now one is known, so it can be built on.
    call(&mut client, "nostr_follows_add", add).await.unwrap();
    assert_eq!(followed(&other.newest(3).await.unwrap()).len(), 2);
}

#[tokio::test]
async fn a_relay_that_has_forgotten_does_not_empty_the_list() {
    let world = World::new().await;
    let keys = Keys::generate();
    let mut client = client_of(world.options(), &keys).await;
    for _ in 0..2 {
        call(&mut client, "nostr_follows_add", json!({ "pubkey": key() })).await.unwrap();
    }
    drop(client);
    let empty = Relay::start(embedded::Options::default()).await.unwrap();
    let url = RelayUrl::parse(&empty.url()).unwrap();
    let options = Options { relays: vec![url.clone()], ..Options::new(world.directory()) };
    let mut client = Client::open(options, VERSION).await;
    let output = call(&mut client, "nostr_follows_add", json!({ "pubkey": key() })).await.unwrap();
    assert_eq!(output["count"], 3);
    assert_eq!(followed(&Other::new(keys, &[url]).newest(3).await.unwrap()).len(), 3);
}

#[tokio::test]
async fn without_a_secret_nothing_is_changed() {
    let world = World::new().await;
    let mut client = world.client(VERSION).await;
    let error = client.call("nostr_follows_add", json!({ "pubkey": key() })).await.unwrap_err();
    assert_eq!(error["data"]["reason"], "no_signer");
    let watch = json!({ "label": "watched", "key_material": Keys::generate().public_key().to_bech32().unwrap() });
    client.call("nostr_keys_import", watch).await.unwrap();
    for (tool, arguments) in
        [("nostr_follows_add", json!({ "pubkey": key() })), ("nostr_metadata_set", json!({ "name": "x" }))]
    {
        let error = client.call(tool, arguments).await.unwrap_err();
        assert_eq!(error["data"]["reason"], "no_signer", "{tool}");
    }
}

/// A small generator, so that a failure can be repeated from its number.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

/// Another client that reads, thinks for a while, and writes what it has read with a change: it does not know of us.
async fn meddle(other: &Other, kind: u16, dice: &mut Dice) -> Option<String> {
    let base = other.newest(kind).await;
    tokio::time::sleep(std::time::Duration::from_millis(dice.roll(12))).await;
    let time = base.as_ref().map_or(0, |base| base.created_at.as_secs() + 1).max(Timestamp::now().as_secs());
    let mark = key();
    let event = match kind {
        3 => {
            let mut tags: Vec<Tag> = base.iter().flat_map(|base| base.tags.iter().cloned()).collect();
            tags.push(tag(&["p", &mark]));
            other.event(3, tags, base.as_ref().map_or("", |base| &base.content), time)
        }
        _ => {
            let mut content: Value =
                base.as_ref().and_then(|base| serde_json::from_str(&base.content).ok()).unwrap_or(json!({}));
            content[&mark] = "theirs".into();
            other.event(0, Vec::new(), &content.to_string(), time)
        }
    };
    // A relay that has a newer one refuses it, and then nothing was written.
    other.publish_live(&event).await.then_some(mark)
}

async fn interleave(client: &mut Client, relay: &RelayUrl, seed: u64) {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let keys = Keys::generate();
    let secret = keys.secret_key().to_bech32().unwrap();
    let import = json!({ "label": format!("me {seed}"), "key_material": secret });
    client.call("nostr_keys_import", import).await.unwrap();
    let other = Other::new(keys, std::slice::from_ref(relay));
    let kind = if seed.is_multiple_of(2) { 3 } else { 0 };
    let mut theirs = BTreeSet::new();
    if dice.roll(2) == 0 {
        theirs.extend(meddle(&other, kind, &mut dice).await);
    }
    for _ in 0..=dice.roll(2) {
        let mine = key();
        let delay = std::time::Duration::from_millis(dice.roll(25));
        let (tool, arguments) = match kind {
            3 => ("nostr_follows_add", json!({ "pubkey": mine })),
            _ => ("nostr_metadata_set", json!({ "about": mine })),
        };
        let (output, meddled) = tokio::join!(call(client, tool, arguments), async {
            tokio::time::sleep(delay).await;
            meddle(&other, kind, &mut dice).await
        });
        output.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        // Whoever reads before us and writes after us overwrites us. That is not what this is about; but then what it wrote
        // is what there is.
        theirs.extend(meddled);
    }
    let last = other.newest(kind).await.unwrap();
    let present: BTreeSet<String> = match kind {
        3 => followed(&last),
        _ => serde_json::from_str::<serde_json::Map<String, Value>>(&last.content)
            .unwrap()
            .into_iter()
            .map(|(k, _)| k)
            .collect(),
    };
    let lost: Vec<_> = theirs.difference(&present).collect();
    assert!(lost.is_empty(), "seed {seed}: lost {} of {}", lost.len(), theirs.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_interleavings_with_another_client_lose_nothing_that_it_wrote() {
    let limits = embedded::Limits { max_connections: 4096, ..embedded::Limits::default() };
    let relay = Relay::start(embedded::Options { limits, ..embedded::Options::default() }).await.unwrap();
    let url = RelayUrl::parse(&relay.url()).unwrap();
    let mut running = tokio::task::JoinSet::new();
    // A server takes a while to make, so each is used for several.
    for batch in 0..20 {
        let url = url.clone();
        running.spawn(async move {
            let home = tempfile::tempdir().unwrap();
            let options = Options { relays: vec![url.clone()], ..Options::new(home.path()) };
            let mut client = client_of(options, &Keys::generate()).await;
            for seed in batch * 50 + 1..=batch * 50 + 50 {
                interleave(&mut client, &url, seed).await;
            }
        });
    }
    while let Some(ended) = running.join_next().await {
        ended.unwrap();
    }
}
