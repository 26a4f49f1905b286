//! Replies (NIP-10) and comments (NIP-22).

use crate::world::{World, with};
use nostr::nips::nip19::ToBech32;
use nostr::prelude::{Event, Keys};
use serde_json::{Value, json};

const HINT: &str = "wss://hint.example";

fn id(event: &Event) -> String {
    event.id.to_hex()
}

fn answer(event: &Event) -> Value {
    let kind = event.kind.as_u16();
    json!({ "content": "yes", "reply_to_id": id(event), "reply_to_pubkey": event.pubkey.to_hex(), "reply_to_kind": kind })
}

#[tokio::test]
async fn replies_to_notes_know_their_thread() {
    let world = World::new().await;
    let [alice, bob, carol, dave] = [(); 4].map(|()| Keys::generate());
    let [a, b, c, d] = [&alice, &bob, &carol, &dave].map(|keys| keys.public_key().to_hex());
    let root = world.plant(&alice, 1, json!([]), "root").await;
    let (root_id, lost) = (id(&root), "ab".repeat(32));
    let marks = json!([["e", root_id, HINT, "root", a], ["p", c], ["p", a]]);
    let middle = world.plant(&bob, 1, marks, "middle").await;
    let middle_id = id(&middle);

    let tags = json!([["e", root_id, "", "root", a], ["p", a]]);
    world.check("events_post_reply", answer(&root), 1, "yes", tags).await;
    // The root and the people come from the parent.
    let tags =
        json!([["e", root_id, HINT, "root", a], ["e", middle_id, "", "reply", b], ["p", b], ["p", a, HINT], ["p", c]]);
    world.check("events_post_reply", answer(&middle), 1, "yes", tags).await;
    // What is said comes first, and who is mentioned last.
    let npub = dave.public_key().to_bech32().unwrap();
    let said = json!({
        "root_event_id": root_id, "mentioned_pubkeys": [npub], "relay_hint": HINT, "content": format!("nostr:{npub} #Yes"),
    });
    let tags = json!([
        ["e", root_id, HINT, "root", a],
        ["e", middle_id, HINT, "reply", b],
        ["p", b, HINT],
        ["p", a, HINT],
        ["p", c],
        ["p", d],
        ["t", "yes"]
    ]);
    let content = said["content"].as_str().unwrap().to_owned();
    world.check("events_post_reply", with(&answer(&middle), said), 1, &content, tags).await;
    // A parent that nobody has.
    let unseen = json!({ "reply_to_id": lost, "root_event_id": root_id, "root_event_pubkey": a });
    let tags = json!([["e", root_id, "", "root", a], ["e", lost, "", "reply", b], ["p", b], ["p", a]]);
    world.check("events_post_reply", with(&answer(&middle), unseen), 1, "yes", tags).await;

    let wrong = [
        (json!({ "content": "" }), "/content"),
        (json!({ "reply_to_id": "x" }), "/reply_to_id"),
        (json!({ "reply_to_pubkey": a }), "/reply_to_pubkey"),
        (json!({ "reply_to_kind": 11 }), "/reply_to_kind"),
        (json!({ "root_event_id": "x" }), "/root_event_id"),
        (json!({ "root_event_id": root_id, "root_event_pubkey": b }), "/root_event_pubkey"),
        (json!({ "root_event_id": lost, "root_event_kind": 11 }), "/root_event_kind"),
        (json!({ "mentioned_pubkeys": [a, "x"] }), "/mentioned_pubkeys/1"),
    ];
    for (arguments, pointer) in wrong {
        world.refuses("events_post_reply", with(&answer(&middle), arguments), pointer).await;
    }
}

#[tokio::test]
async fn replies_to_anything_else_are_comments() {
    let world = World::new().await;
    let [alice, bob] = [(); 2].map(|()| Keys::generate());
    let [a, b] = [&alice, &bob].map(|keys| keys.public_key().to_hex());
    let article = world.plant(&alice, 30_023, json!([["d", "x"]]), "long").await;
    let (article_id, address) = (id(&article), format!("30023:{a}:x"));
    let tags = json!([
        ["A", address],
        ["K", "30023"],
        ["P", a],
        ["a", address],
        ["k", "30023"],
        ["p", a],
        ["e", article_id, "", a],
        ["p", b]
    ]);
    let arguments = with(&answer(&article), json!({ "mentioned_pubkeys": [b] }));
    world.check("events_post_reply", arguments, 1111, "yes", tags).await;

    // What a comment is about need not be an event.
    let scope = [json!(["I", "https://x.example"]), json!(["K", "web"])];
    let small = [json!(["i", "https://x.example"]), json!(["k", "web"])];
    let comment = world.plant(&bob, 1111, json!([scope[0], scope[1], small[0], small[1]]), "hm").await;
    let tags = json!([scope[0], scope[1], ["e", id(&comment), "", b], ["k", "1111"], ["p", b]]);
    world.check("events_post_reply", answer(&comment), 1111, "yes", tags).await;

    let lost = json!({ "reply_to_id": "ab".repeat(32) });
    world.refuses("events_post_reply", with(&answer(&comment), lost.clone()), "/reply_to_id").await;
    world.refuses("events_post_reply", with(&answer(&article), lost), "/reply_to_id").await;
    let unknown = json!({ "root_event_id": "cd".repeat(32) });
    world.refuses("events_post_reply", with(&answer(&comment), unknown.clone()), "/root_event_kind").await;
    let unknown = with(&unknown, json!({ "root_event_kind": 11 }));
    world.refuses("events_post_reply", with(&answer(&comment), unknown), "/root_event_pubkey").await;
}

#[tokio::test]
async fn comments_name_root_and_parent() {
    let world = World::new().await;
    let [alice, bob] = [(); 2].map(|()| Keys::generate());
    let [a, b] = [&alice, &bob].map(|keys| keys.public_key().to_hex());
    let thread = world.plant(&alice, 11, json!([["title", "t"]]), "x").await;
    let article = world.plant(&alice, 30_023, json!([["d", "x"]]), "long").await;
    let comment = world.plant(&bob, 1111, json!([]), "x").await;
    let (thread_id, article_id, comment_id) = (id(&thread), id(&article), id(&comment));
    let about = |event: &Event, id: &str| json!({ "content": "c", "root_event_id": id, "root_event_pubkey": a, "root_event_kind": event.kind.as_u16() });
    let on_thread = with(&about(&thread, &thread_id), json!({ "relay_hint": HINT }));
    let tags = json!([
        ["E", thread_id, HINT, a],
        ["K", "11"],
        ["P", a, HINT],
        ["e", thread_id, HINT, a],
        ["k", "11"],
        ["p", a, HINT]
    ]);
    world.check("events_post_comment", on_thread.clone(), 1111, "c", tags).await;

    let address = format!("30023:{a}:x");
    let tags = json!([
        ["A", address],
        ["K", "30023"],
        ["P", a],
        ["a", address],
        ["k", "30023"],
        ["p", a],
        ["e", article_id, "", a]
    ]);
    // The same by its id and by its address.
    for name in [&article_id, &address] {
        world.check("events_post_comment", about(&article, name), 1111, "c", tags.clone()).await;
    }
    let answer = with(&about(&article, &address), json!({ "parent_event_id": comment_id }));
    let tags = json!([["A", address], ["K", "30023"], ["P", a], ["e", comment_id, "", b], ["k", "1111"], ["p", b]]);
    world.check("events_post_comment", answer.clone(), 1111, "c", tags).await;
    // An article that nobody has can be named by its address.
    let nowhere = format!("30023:{a}:nowhere");
    let tags = json!([["A", nowhere], ["K", "30023"], ["P", a], ["a", nowhere], ["k", "30023"], ["p", a]]);
    world.check("events_post_comment", about(&article, &nowhere), 1111, "c", tags).await;

    let lost = json!({ "parent_event_id": "ab".repeat(32) });
    let wrong = [
        (with(&on_thread, json!({ "content": "" })), "/content"),
        (with(&on_thread, json!({ "root_event_kind": 1 })), "/root_event_kind"),
        (with(&on_thread, json!({ "root_event_kind": 1111 })), "/root_event_kind"),
        (with(&on_thread, json!({ "root_event_kind": 12 })), "/root_event_kind"),
        (with(&on_thread, json!({ "root_event_pubkey": b })), "/root_event_pubkey"),
        (with(&on_thread, json!({ "relay_hint": "x" })), "/relay_hint"),
        (with(&answer, json!({ "parent_event_kind": 1 })), "/parent_event_kind"),
        (with(&answer, json!({ "parent_event_pubkey": a })), "/parent_event_pubkey"),
        (with(&answer, lost), "/parent_event_pubkey"),
        (with(&about(&article, &"ab".repeat(32)), json!({})), "/root_event_id"),
    ];
    for (arguments, pointer) in wrong {
        world.refuses("events_post_comment", arguments, pointer).await;
    }
}
