//! Polls and votes (NIP-88).

use crate::world::{World, with};
use nostr::prelude::Keys;
use rialto_relay::embedded::{Options, Relay};
use serde_json::json;

#[tokio::test]
async fn polls_say_how_and_where_to_vote() {
    let world = World::new().await;
    let options = json!([{ "option_id": "a", "label": "Tabs" }, { "option_id": "b2", "label": "Spaces" }]);
    let poll =
        json!({ "question": "Which?", "options": options, "relay_urls": ["wss://one.example", "wss://two.example"] });
    let begin = [json!(["option", "a", "Tabs"]), json!(["option", "b2", "Spaces"])];
    let relays = [json!(["relay", "wss://one.example"]), json!(["relay", "wss://two.example"])];
    let tags = json!([begin[0], begin[1], relays[0], relays[1], ["polltype", "singlechoice"]]);
    world.check("events_create_poll", poll.clone(), 1068, "Which?", tags).await;
    let many = with(&poll, json!({ "poll_type": "multiplechoice", "ends_at": 4_000_000_000_u64 }));
    let tags =
        json!([begin[0], begin[1], relays[0], relays[1], ["polltype", "multiplechoice"], ["endsAt", "4000000000"]]);
    world.check("events_create_poll", many, 1068, "Which?", tags).await;
    let option = |id: &str, label: &str| json!({ "option_id": id, "label": label });
    let wrong = [
        (json!({ "question": "" }), "/question"),
        (json!({ "options": [option("a", "x")] }), "/options"),
        (json!({ "options": [option("a", "x"), option("a", "y")] }), "/options/1/option_id"),
        (json!({ "options": [option("a b", "x"), option("b", "y")] }), "/options/0/option_id"),
        (json!({ "options": [option("a", "x"), option("b", "")] }), "/options/1/label"),
        (json!({ "relay_urls": [] }), "/relay_urls"),
        (json!({ "relay_urls": ["x"] }), "/relay_urls/0"),
        (json!({ "poll_type": "ranked" }), "/poll_type"),
        (json!({ "ends_at": 1 }), "/ends_at"),
    ];
    for (arguments, pointer) in wrong {
        world.refuses("events_create_poll", with(&poll, arguments), pointer).await;
    }
}

#[tokio::test]
async fn votes_go_where_the_poll_wants_them_and_count() {
    let world = World::new().await;
    let author = Keys::generate();
    let ballot = Relay::start(Options::default()).await.unwrap();
    let poll = async |more: serde_json::Value| {
        let mut tags = vec![json!(["option", "a", "A"]), json!(["option", "b", "B"])];
        tags.extend(more.as_array().unwrap().iter().cloned());
        world.plant(&author, 1068, tags.into(), "Which?").await.id.to_hex()
    };
    let named = poll(json!([["relay", ballot.url()], ["polltype", "singlechoice"]])).await;
    let sent = world.call("events_vote_poll", json!({ "poll_event_id": named, "option_ids": ["b"] })).await.unwrap();
    assert_eq!(sent["success"], json!([ballot.url()]));
    assert!(world.stored(sent["id"].as_str().unwrap()).await.is_none());

    // A poll that names no relay gets its votes where it is itself.
    let many = poll(json!([["polltype", "multiplechoice"], ["endsAt", "4000000000"]])).await;
    let vote = json!({ "poll_event_id": many, "option_ids": ["b", "a"] });
    world.check("events_vote_poll", vote, 1018, "", json!([["e", many], ["response", "b"], ["response", "a"]])).await;

    let over = poll(json!([["endsAt", "1"]])).await;
    let note = world.plant(&author, 1, json!([]), "no poll").await.id.to_hex();
    let cases = [
        ("x", json!(["a"]), "/poll_event_id"),
        (&"ab".repeat(32), json!(["a"]), "/poll_event_id"),
        (&note, json!(["a"]), "/poll_event_id"),
        (&over, json!(["a"]), "/poll_event_id"),
        (&named, json!([]), "/option_ids"),
        (&named, json!(["a", "b"]), "/option_ids"),
        (&many, json!(["a", "c"]), "/option_ids/1"),
        (&many, json!(["a", "a"]), "/option_ids/1"),
    ];
    for (poll, options, pointer) in cases {
        world.refuses("events_vote_poll", json!({ "poll_event_id": poll, "option_ids": options }), pointer).await;
    }
}
