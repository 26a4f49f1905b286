//! What all of these tools do when the relays that they are told to use do not take the event.

use crate::world::{World, event, with};
use nostr::prelude::Keys;
use rialto_relay::embedded::{Limits, Options, Relay};
use serde_json::{Value, json};

/// A call of each tool that works. What they are about is on the relay of the world.
async fn calls(world: &World) -> Vec<(&'static str, Value)> {
    let author = Keys::generate();
    let note = world.plant(&author, 1, json!([]), "hi").await;
    let thread = world.plant(&author, 11, json!([["title", "x"]]), "hi").await;
    let poll = json!([["option", "a", "A"], ["option", "b", "B"], ["relay", world.url()]]);
    let poll = world.plant(&author, 1068, poll, "?").await;
    let (id, key, me) = (note.id.to_hex(), author.public_key().to_hex(), world.my_key());
    let text = serde_json::to_string(&note).unwrap();
    let group = json!({ "group_id": "pizza", "content": "why" });
    let flags = json!({ "public": true, "open": false, "unrestricted": true, "visible": true });
    let options = json!([{ "option_id": "a", "label": "A" }, { "option_id": "b", "label": "B" }]);
    let signed = serde_json::to_string(&event(&author, 1, json!([]), "new")).unwrap();
    vec![
        ("events_post_text", json!({ "content": "x" })),
        ("events_post_thread", json!({ "content": "x", "subject": "y" })),
        ("events_post_group_chat", group.clone()),
        ("events_post_reaction", json!({ "event_id": id, "event_pubkey": key })),
        ("events_publish_signed", json!({ "event_json": signed })),
        ("events_post_reply", json!({ "content": "x", "reply_to_id": id, "reply_to_pubkey": key, "reply_to_kind": 1 })),
        (
            "events_post_comment",
            json!({ "content": "x", "root_event_id": thread.id, "root_event_pubkey": key, "root_event_kind": 11 }),
        ),
        ("events_create_poll", json!({ "question": "?", "options": options, "relay_urls": [world.url()] })),
        ("events_vote_poll", json!({ "poll_event_id": poll.id, "option_ids": ["a"] })),
        ("groups_put_user", with(&group, json!({ "pubkey": key }))),
        ("groups_remove_user", with(&group, json!({ "pubkey": key }))),
        ("groups_edit_metadata", with(&group, flags)),
        ("groups_delete_event", with(&group, json!({ "event_id": id }))),
        ("groups_create_group", group.clone()),
        ("groups_delete_group", group.clone()),
        ("groups_create_invite", group.clone()),
        ("groups_join", group.clone()),
        ("groups_leave", group),
        ("handlers_recommend", json!({ "supported_kind": 1, "handlers": [{ "address": format!("31990:{key}:x") }] })),
        (
            "handlers_register",
            json!({ "identifier": "x", "kinds": [1], "links": [{ "platform": "web", "url": "https://x/<bech32>" }] }),
        ),
        ("badges_define", json!({ "identifier": "x" })),
        ("badges_award", json!({ "badge": format!("30009:{me}:x"), "recipients": [{ "pubkey": key }] })),
        ("badges_set_profile", json!({ "badges": [] })),
        ("events_post_long_form", json!({ "content": "x", "title": "y" })),
        ("events_delete", json!({ "event_ids": ["ab".repeat(32)] })),
        ("events_post_anonymous", json!({ "content": "x" })),
        ("events_repost", json!({ "event_json": text })),
    ]
}

/// Calls all tools at once.
async fn results(world: &World, members: Value) -> Vec<(&'static str, Result<Value, crate::world::Refusal>)> {
    let calls = calls(world).await.into_iter();
    let calls = calls.map(async |(tool, arguments)| (tool, world.call(tool, with(&arguments, members.clone())).await));
    futures_util::future::join_all(calls).await
}

#[tokio::test]
async fn what_no_relay_takes_is_an_error() {
    let world = World::new().await;
    let limits = Limits { max_event_bytes: 10, ..Limits::default() };
    let refusing = Relay::start(Options { limits, ..Options::default() }).await.unwrap();
    let nobody = Relay::start(Options::default()).await.unwrap();
    let gone = nobody.url();
    nobody.stop().await;
    for relay in [refusing.url(), gone] {
        for (tool, result) in results(&world, json!({ "to_relays": [relay] })).await {
            // Lists go where they were as well; tools that read first fail at that.
            match result {
                Ok(result) => {
                    assert_eq!(tool, "badges_set_profile");
                    assert!(result["failed"][&relay].is_string(), "{result}");
                }
                Err(error) => assert_eq!((error.code, error.reason.as_str()), (-32603, "relays"), "{tool}: {error:?}"),
            }
        }
    }
}
