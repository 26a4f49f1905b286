//! Finding events: by filters, presets and words, on the relays where they are.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should panic")]

mod support;

use nostr::nips::nip19::ToBech32;
use nostr::prelude::{Keys, RelayUrl, Timestamp};
use rialto_nostr_tools::Options;
use rialto_relay::embedded::{self, Relay};
use serde_json::{Value, json};
use support::other::{Other, call, client_of, tag};
use support::{Client, World};

const VERSION: &str = "2025-11-25";

fn contents(output: &Value) -> Vec<&str> {
    output["items"].as_array().unwrap().iter().map(|item| item["content"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn events_come_once_newest_first_and_no_more_than_wanted() {
    let world = World::new().await;
    let second = Relay::start(embedded::Options::default()).await.unwrap();
    let both = vec![world.url(), RelayUrl::parse(&second.url()).unwrap()];
    let (alice, bob) = (Other::new(Keys::generate(), &both), Other::new(Keys::generate(), &both[1..]));
    let now = Timestamp::now().as_secs();
    for age in 0..6 {
        let who = if age % 2 == 0 { &alice } else { &bob };
        assert!(who.publish(&who.event(1, Vec::new(), &age.to_string(), now - age)).await);
    }
    let mut client = Client::open(Options { relays: both, ..Options::new(world.directory()) }, VERSION).await;
    let npub = |who: &Other| who.keys.public_key().to_bech32().unwrap();
    let hex = |who: &Other| who.keys.public_key().to_hex();
    let query =
        json!({ "filters": [{ "authors": [npub(&alice)] }, { "authors": [hex(&bob), hex(&alice)], "kinds": [1] }] });
    let output = call(&mut client, "nostr_events_query", query.clone()).await.unwrap();
    assert_eq!(contents(&output), ["0", "1", "2", "3", "4", "5"]);
    assert_eq!(output["items"][0]["sig"].as_str().unwrap().len(), 128);
    let mut few = query.clone();
    few["limit"] = 2.into();
    assert_eq!(contents(&call(&mut client, "nostr_events_query", few).await.unwrap()), ["0", "1"]);
    // Each filter has its own limit.
    let limited =
        json!({ "filters": [{ "authors": [hex(&alice)], "limit": 1 }, { "authors": [hex(&bob)], "limit": 2 }] });
    assert_eq!(contents(&call(&mut client, "nostr_events_query", limited).await.unwrap()), ["0", "1", "3"]);
    let one = json!({ "filters": [{ "kinds": [1] }], "relays": [second.url()] });
    assert_eq!(contents(&call(&mut client, "nostr_events_query", one).await.unwrap()).len(), 6);
    for (bad, pointer) in [
        (json!({ "filters": [] }), "/filters"),
        (json!({ "filters": [{ "authors": ["npub1x"] }] }), "/filters/0/authors/0"),
        (json!({ "filters": [{}, 7] }), "/filters/1"),
        (json!({ "filters": [{ "kinds": "x" }] }), "/filters/0"),
        (json!({ "filters": [{}], "limit": 0 }), "/limit"),
    ] {
        let error = client.call("nostr_events_query", bad).await.unwrap_err();
        assert_eq!((&error["code"], &error["data"]["pointer"]), (&json!(-32602), &json!(pointer)), "{error}");
    }
}

#[tokio::test]
async fn presets_find_what_they_say() {
    let world = World::new().await;
    let keys = Keys::generate();
    let (me, other) = (Other::new(keys.clone(), &[world.url()]), Other::new(Keys::generate(), &[world.url()]));
    me.post(1, Vec::new(), "mine").await;
    me.post(0, Vec::new(), "{}").await;
    other.post(1, vec![tag(&["p", &keys.public_key().to_hex()])], "to me").await;
    other.post(7, Vec::new(), "+").await;
    let mut client = client_of(world.options(), &keys).await;
    let author = other.keys.public_key().to_hex();
    for (arguments, expected) in [
        (json!({ "preset": "my_notes" }), vec!["mine"]),
        (json!({ "preset": "mentions_me" }), vec!["to me"]),
        (json!({ "preset": "my_metadata" }), vec!["{}"]),
        (json!({ "preset": "by_author", "author_npub": author, "kind": 7 }), vec!["+"]),
        (json!({ "preset": "by_kind", "kind": 7 }), vec!["+"]),
        (json!({ "preset": "my_notes", "until": 1 }), vec![]),
    ] {
        let output = call(&mut client, "nostr_events_list", arguments.clone()).await.unwrap();
        assert_eq!(contents(&output), expected, "{arguments}");
    }
    for (bad, pointer) in [
        (json!({ "preset": "by_author" }), "/author_npub"),
        (json!({ "preset": "by_kind" }), "/kind"),
        (json!({ "preset": "all" }), "/preset"),
        (json!({ "preset": "my_notes", "since": 2, "until": 1 }), "/since"),
    ] {
        let error = client.call("nostr_events_list", bad).await.unwrap_err();
        assert_eq!(error["data"]["pointer"], pointer, "{error}");
    }
}

#[tokio::test]
async fn words_are_searched_where_that_is_possible() {
    let world = World::new().await;
    let other = Other::new(Keys::generate(), &[world.url()]);
    other.post(1, Vec::new(), "about lightning").await;
    other.post(1, Vec::new(), "about rain").await;
    let mut client = world.client(VERSION).await;
    let output = call(&mut client, "nostr_events_search", json!({ "query": "lightning" })).await.unwrap();
    assert_eq!(contents(&output), ["about lightning"]);
    let error = client.call("nostr_events_search", json!({ "query": " " })).await.unwrap_err();
    assert_eq!(error["data"]["pointer"], "/query");
}

#[tokio::test]
async fn articles_are_found_by_hashtag_and_in_their_last_version() {
    let world = World::new().await;
    let other = Other::new(Keys::generate(), &[world.url()]);
    let now = Timestamp::now().as_secs();
    for (age, text) in [(10, "draft"), (5, "final")] {
        let event = other.event(30023, vec![tag(&["d", "one"]), tag(&["t", "nostr"])], text, now - age);
        assert!(other.publish(&event).await);
    }
    other.post(30023, vec![tag(&["d", "two"])], "else").await;
    let mut client = world.client(VERSION).await;
    let output = call(&mut client, "nostr_events_list_long_form", json!({ "hashtags": ["#Nostr"] })).await.unwrap();
    assert_eq!(contents(&output), ["final"]);
    let by_name = json!({ "identifier": "two", "author_npub": other.keys.public_key().to_hex() });
    let output = call(&mut client, "nostr_events_list_long_form", by_name).await.unwrap();
    assert_eq!(contents(&output), ["else"]);
}

#[tokio::test]
async fn polls_are_counted_on_the_relays_that_they_name() {
    let world = World::new().await;
    let second = Relay::start(embedded::Options::default()).await.unwrap();
    let elsewhere = [RelayUrl::parse(&second.url()).unwrap()];
    let author = Other::new(Keys::generate(), &[world.url()]);
    let now = Timestamp::now().as_secs();
    let poll = author.event(
        1068,
        vec![
            tag(&["option", "a", "Yes"]),
            tag(&["option", "b", "No"]),
            tag(&["relay", &second.url()]),
            tag(&["polltype", "singlechoice"]),
            tag(&["endsAt", &(now - 10).to_string()]),
        ],
        "Well?",
        now - 100,
    );
    assert!(author.publish(&poll).await);
    let id = poll.id.to_hex();
    let vote = |choices: &[&str]| {
        let mut tags = vec![tag(&["e", &id])];
        tags.extend(choices.iter().map(|choice| tag(&["response", choice])));
        tags
    };
    let voters: Vec<Other> = (0..4).map(|_| Other::new(Keys::generate(), &elsewhere)).collect();
    for (voter, choices, age) in [
        (0, vec!["a"], 50),
        (1, vec!["a"], 50),
        (1, vec!["b"], 40),
        (2, vec!["b", "a"], 50),
        (3, vec!["nothing"], 50),
        (0, vec!["b"], 5),
    ] {
        let event = voters[voter].event(1018, vote(&choices), "", now - age);
        assert!(voters[voter].publish(&event).await);
    }
    let mut client = world.client(VERSION).await;
    let output = call(&mut client, "nostr_events_get_poll_results", json!({ "poll_event_id": id })).await.unwrap();
    assert_eq!(
        output["options"],
        json!([
            { "option_id": "a", "label": "Yes", "votes": 1 },
            { "option_id": "b", "label": "No", "votes": 2 },
        ])
    );
    assert_eq!((&output["total_votes"], &output["ended"]), (&json!(3), &json!(true)));
    let unknown = json!({ "poll_event_id": "00".repeat(32) });
    let error = client.call("nostr_events_get_poll_results", unknown).await.unwrap_err();
    assert_eq!(error["data"]["reason"], "not_found");
}

#[tokio::test]
async fn people_are_read_where_they_write() {
    let world = World::new().await;
    let second = Relay::start(embedded::Options::default()).await.unwrap();
    let keys = Keys::generate();
    let here = Other::new(keys.clone(), &[world.url()]);
    let there = Other::new(keys.clone(), &[RelayUrl::parse(&second.url()).unwrap()]);
    here.post(10002, vec![tag(&["r", &second.url(), "write"])], "").await;
    there.post(1, Vec::new(), "only there").await;
    let mut client = world.client(VERSION).await;
    let author = json!({ "preset": "by_author", "author_npub": keys.public_key().to_hex(), "kind": 1 });
    let output = call(&mut client, "nostr_events_list", author).await.unwrap();
    assert_eq!(contents(&output), ["only there"]);
    let status = call(&mut client, "nostr_relays_status", json!({})).await.unwrap();
    let row = status["relays"].as_array().unwrap().iter().find(|row| row["url"] == second.url()).unwrap();
    assert_eq!((&row["discovery"], &row["write"]), (&json!(true), &json!(false)));
}

#[tokio::test]
async fn relays_that_are_away_are_named_and_others_are_read() {
    let world = World::new().await;
    let other = Other::new(Keys::generate(), &[world.url()]);
    other.post(1, Vec::new(), "here").await;
    let away = RelayUrl::parse("ws://127.0.0.1:9").unwrap();
    let relays = vec![away.clone(), world.url()];
    let mut client = Client::open(Options { relays, ..Options::new(world.directory()) }, VERSION).await;
    let query = json!({ "filters": [{ "kinds": [1] }] });
    assert_eq!(contents(&call(&mut client, "nostr_events_query", query.clone()).await.unwrap()), ["here"]);
    let mut client = Client::open(Options { relays: vec![away], ..Options::new(world.directory()) }, VERSION).await;
    let error = client.call("nostr_events_query", query).await.unwrap_err();
    assert_eq!((&error["code"], &error["data"]["reason"]), (&json!(-32603), &json!("relays")));
    assert!(error["data"]["failed"]["ws://127.0.0.1:9"].as_str().unwrap().contains("refused"), "{error}");
}

#[tokio::test]
async fn a_relay_of_ones_own_that_wants_to_know_who_asks_is_told() {
    let options = embedded::Options { require_auth: true, ..embedded::Options::default() };
    let relay = Relay::start(options).await.unwrap();
    let url = RelayUrl::parse(&relay.url()).unwrap();
    let home = tempfile::tempdir().unwrap();
    let keys = Keys::generate();
    let options = Options { relays: vec![url], ..Options::new(home.path()) };
    let query = json!({ "filters": [{ "kinds": [1] }], "timeout_secs": 3 });
    let mut nobody = Client::open(options.clone(), VERSION).await;
    assert!(nobody.call("nostr_events_query", query.clone()).await.is_err());
    let mut client = client_of(options, &keys).await;
    client.call("nostr_events_post_text", json!({ "content": "members only" })).await.unwrap();
    let output = call(&mut client, "nostr_events_query", query).await.unwrap();
    assert_eq!(contents(&output), ["members only"]);
}
