//! Groups (NIP-29).

use crate::world::{World, with};
use nostr::nips::nip19::{Nip19Event, ToBech32};
use nostr::prelude::{EventId, Keys, Kind, RelayUrl};
use rialto_relay::embedded::{Options, Relay};
use serde_json::{Value, json};

const GROUP: &str = "pizza";

fn group(members: Value) -> Value {
    with(&json!({ "group_id": GROUP, "content": "why" }), members)
}

#[tokio::test]
async fn what_moderators_and_members_say() {
    let world = World::new().await;
    let key = Keys::generate().public_key();
    let (hex, npub, id) = (key.to_hex(), key.to_bech32().unwrap(), "ab".repeat(32));
    let previous = json!({ "previous_refs": [id, "12345678"] });
    let cases = [
        ("put_user", json!({ "pubkey": npub }), 9000, json!([["p", hex]])),
        ("put_user", json!({ "pubkey": hex, "roles": ["ceo", "cook"] }), 9000, json!([["p", hex, "ceo", "cook"]])),
        ("remove_user", json!({ "pubkey": npub }), 9001, json!([["p", hex]])),
        ("delete_event", json!({ "event_id": id }), 9005, json!([["e", id]])),
        ("create_group", json!({}), 9007, json!([])),
        ("create_group", previous, 9007, json!([["previous", "abababab", "12345678"]])),
        ("delete_group", json!({}), 9008, json!([])),
        ("create_invite", json!({}), 9009, json!([])),
        ("create_invite", json!({ "code": "cheese" }), 9009, json!([["code", "cheese"]])),
        ("join", json!({}), 9021, json!([])),
        ("join", json!({ "invite_code": "cheese" }), 9021, json!([["code", "cheese"]])),
        ("leave", json!({}), 9022, json!([])),
    ];
    for (tool, members, kind, tags) in cases {
        let mut expected = vec![json!(["h", GROUP])];
        expected.extend(tags.as_array().unwrap().iter().cloned());
        world.check(&format!("groups_{tool}"), group(members), kind, "why", expected.into()).await;
    }
    let wrong = [
        ("put_user", json!({ "pubkey": "x" }), "/pubkey"),
        ("put_user", json!({ "pubkey": hex, "roles": ["a", ""] }), "/roles/1"),
        ("remove_user", json!({ "pubkey": "x" }), "/pubkey"),
        ("delete_event", json!({ "event_id": "x" }), "/event_id"),
        ("create_group", json!({ "group_id": "" }), "/group_id"),
        ("delete_group", json!({ "group_id": "a b" }), "/group_id"),
        ("create_invite", json!({ "code": "" }), "/code"),
        ("join", json!({ "invite_code": " " }), "/invite_code"),
        ("leave", json!({ "previous_refs": ["12345678", "xyz"] }), "/previous_refs/1"),
    ];
    for (tool, members, pointer) in wrong {
        world.refuses(&format!("groups_{tool}"), group(members), pointer).await;
    }
}

#[tokio::test]
async fn a_group_that_says_where_it_is_is_told_there_only() {
    let world = World::new().await;
    let home = Relay::start(Options::default()).await.unwrap();
    let sent =
        world.call("groups_join", group(json!({ "group_id": format!("{}'{GROUP}", home.url()) }))).await.unwrap();
    assert_eq!((&sent["success"], &sent["failed"]), (&json!([home.url()]), &json!({})));
}

#[tokio::test]
async fn a_description_states_everything() {
    let world = World::new().await;
    let all = json!({ "public": false, "open": true, "unrestricted": false, "visible": false });
    let tags = json!([["h", GROUP], ["name", "Pizza"], ["private"], ["open"], ["restricted"], ["hidden"]]);
    let named = with(&group(all), json!({ "name": "Pizza" }));
    world.check("groups_edit_metadata", named, 9002, "why", tags).await;
    // Nobody knows how it is, and what is not said would be open.
    for (said, missing) in [(json!({ "name": "x" }), "/public"), (json!({ "public": true }), "/open")] {
        world.refuses("groups_edit_metadata", group(said), missing).await;
    }
    let state = json!([
        ["d", GROUP],
        ["name", "Pizza"],
        ["about", "all about it"],
        ["private"],
        ["closed"],
        ["supported_kinds", "9", "11"],
        ["parent", "food"]
    ]);
    world.plant(&Keys::generate(), 39_000, state, "").await;
    let tags = json!([
        ["h", GROUP],
        ["name", "Pizza lovers"],
        ["about", "all about it"],
        ["picture", "https://x.example/p.png"],
        ["public"],
        ["closed"],
        ["supported_kinds", "9", "11"],
        ["parent", "food"]
    ]);
    let change = json!({ "name": "Pizza lovers", "picture": "https://x.example/p.png", "public": true });
    world.check("groups_edit_metadata", group(change), 9002, "why", tags).await;
    world.refuses("groups_edit_metadata", group(json!({ "group_id": "" })), "/group_id").await;
}

#[tokio::test]
async fn answers_in_a_chat_quote() {
    let world = World::new().await;
    let author = Keys::generate().public_key();
    let id = EventId::from_hex(&"ab".repeat(32)).unwrap();
    let relay = RelayUrl::parse("wss://hint.example").unwrap();
    let tags = json!([["h", GROUP]]);
    world.check("events_post_group_chat", group(json!({})), 9, "why", tags).await;

    let named = Nip19Event::new(id).kind(Kind::from_u16(9)).author(author).relays([relay]).to_bech32().unwrap();
    let quote = json!(["q", id.to_hex(), "wss://hint.example", author.to_hex()]);
    let parts = json!({
        "reply_to_id": id.to_hex(), "reply_to_pubkey": author.to_hex(), "reply_to_relay": "wss://hint.example",
        "previous_refs": ["12345678"],
    });
    let tags = json!([["h", GROUP], quote, ["p", author.to_hex(), "wss://hint.example"], ["previous", "12345678"]]);
    let content = format!("nostr:{named}\nwhy");
    world.check("events_post_group_chat", group(parts), 9, &content, tags.clone()).await;
    // It is not quoted twice.
    let quoted = json!({ "reply_to_id": named, "content": content, "previous_refs": ["12345678"] });
    world.check("events_post_group_chat", group(quoted), 9, &content, tags).await;

    let wrong = [
        (json!({ "content": "" }), "/content"),
        (json!({ "group_id": "" }), "/group_id"),
        (json!({ "reply_to_id": "x" }), "/reply_to_id"),
        (json!({ "reply_to_id": format!("30023:{author}:x") }), "/reply_to_id"),
        (json!({ "reply_to_id": id.to_hex(), "reply_to_pubkey": "x" }), "/reply_to_pubkey"),
        (json!({ "reply_to_id": id.to_hex(), "reply_to_relay": "x" }), "/reply_to_relay"),
    ];
    for (members, pointer) in wrong {
        world.refuses("events_post_group_chat", group(members), pointer).await;
    }
}
