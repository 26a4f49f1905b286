//! Notes, threads, reactions, reposts, deletions, and what others have signed.

use crate::world::{User, World, event, with};
use nostr::nips::nip19::ToBech32;
use nostr::prelude::{Event, Keys};
use serde_json::{Value, json};

const HINT: &str = "wss://hint.example";

fn text(event: &Event) -> String {
    serde_json::to_string(event).unwrap()
}

#[tokio::test]
async fn notes_have_tags_for_what_they_mention() {
    let world = World::new().await;
    let friend = Keys::generate().public_key();
    let content = format!("Hello nostr:{} #Nostr", friend.to_bech32().unwrap());
    let tags = json!([["subject", "hi"], ["p", friend.to_hex()], ["t", "nostr"]]);
    world
        .check("events_post_text", json!({ "content": content, "tags": [["subject", "hi"]] }), 1, &content, tags)
        .await;
    world.refuses("events_post_text", json!({ "content": " " }), "/content").await;
    world.refuses("events_post_text", json!({ "content": "x", "tags": [["t", "x"], []] }), "/tags/1").await;
    world.refuses("events_post_text", json!({ "content": "x", "to_relays": ["x"] }), "/to_relays/0").await;
    world.refuses("events_post_text", json!({ "content": "x", "pow": 200 }), "/pow").await;
    let worked = world.publish("events_post_text", json!({ "content": "x", "pow": 4 })).await;
    assert!(worked["id"].as_str().unwrap().starts_with('0'));
}

#[tokio::test]
async fn anonymous_notes_need_no_key_and_have_no_author() {
    for user in [User::Somebody, User::Watched, User::Nobody] {
        let world = World::of(user).await;
        let [one, other] = [(); 2].map(|()| json!({ "content": "psst #x", "tags": [["t", "secret"]] }));
        let one = world.publish("events_post_anonymous", one).await;
        let other = world.publish("events_post_anonymous", other).await;
        assert_eq!((&one["kind"], &one["tags"]), (&json!(1), &json!([["t", "secret"]])));
        assert_ne!(one["pubkey"], other["pubkey"]);
        assert_ne!(one["pubkey"], world.my_key());
        world.refuses("events_post_anonymous", json!({ "content": "x", "tags": [[""]] }), "/tags/0").await;
        world.refuses("events_post_anonymous", json!({ "content": "" }), "/content").await;
    }
}

#[tokio::test]
async fn threads_have_titles() {
    let world = World::new().await;
    let arguments = json!({ "subject": " GM ", "content": "Good morning", "hashtags": ["#Coffee", "coffee", "Tea"] });
    let tags = json!([["title", "GM"], ["t", "coffee"], ["t", "tea"]]);
    world.check("events_post_thread", arguments.clone(), 11, "Good morning", tags).await;
    world.refuses("events_post_thread", with(&arguments, json!({ "subject": "" })), "/subject").await;
    world.refuses("events_post_thread", with(&arguments, json!({ "hashtags": ["a", "#"] })), "/hashtags/1").await;
}

#[tokio::test]
async fn reactions_name_everything_about_the_event() {
    let world = World::new().await;
    let author = Keys::generate();
    let key = author.public_key().to_hex();
    let note = world.plant(&author, 1, json!([]), "hi").await.id.to_hex();
    let article = world.plant(&author, 30_023, json!([["d", "x"]]), "long").await.id.to_hex();
    let cases = [
        // Kind and address are found out.
        (json!({ "event_id": note }), "+", json!([["e", note, "", key], ["p", key], ["k", "1"]])),
        (
            json!({ "event_id": note, "event_kind": 1, "relay_hint": HINT, "content": "🤙" }),
            "🤙",
            json!([["e", note, HINT, key], ["p", key, HINT], ["k", "1"]]),
        ),
        (
            json!({ "event_id": article, "content": "-" }),
            "-",
            json!([["e", article, "", key], ["p", key], ["a", format!("30023:{key}:x")], ["k", "30023"]]),
        ),
        (
            json!({ "event_id": format!("30023:{key}:x"), "content": "" }),
            "+",
            json!([["e", article, "", key], ["p", key], ["a", format!("30023:{key}:x")], ["k", "30023"]]),
        ),
        // An event that nobody has can be liked all the same.
        (
            json!({ "event_id": "ab".repeat(32), "content": ":wave:", "emoji_url": "https://x.example/w.png" }),
            ":wave:",
            json!([["e", "ab".repeat(32), "", key], ["p", key], ["emoji", "wave", "https://x.example/w.png"]]),
        ),
        (
            json!({ "event_id": "ab".repeat(32), "event_kind": 10_002 }),
            "+",
            json!([["e", "ab".repeat(32), "", key], ["p", key], ["a", format!("10002:{key}:")], ["k", "10002"]]),
        ),
    ];
    let whose = |arguments: &Value| with(arguments, json!({ "event_pubkey": key }));
    for (arguments, content, tags) in cases {
        world.check("events_post_reaction", whose(&arguments), 7, content, tags).await;
    }
    let wrong = [
        (json!({ "event_id": "x" }), "/event_id"),
        (json!({ "event_id": note, "event_kind": 7 }), "/event_kind"),
        (json!({ "event_id": note, "event_pubkey": world.my_key() }), "/event_pubkey"),
        (json!({ "event_id": note, "event_pubkey": "npub" }), "/event_pubkey"),
        (json!({ "event_id": note, "relay_hint": "http://x" }), "/relay_hint"),
        (json!({ "event_id": note, "content": "hi", "emoji_url": "https://x.example" }), "/content"),
        (json!({ "event_id": "ab".repeat(32), "event_kind": 30_023 }), "/event_id"),
        (json!({ "event_id": format!("30023:{key}:nowhere") }), "/event_id"),
    ];
    for (arguments, pointer) in wrong {
        world.refuses("events_post_reaction", with(&whose(&json!({})), arguments), pointer).await;
    }
}

#[tokio::test]
async fn reposts_carry_the_event_and_say_where_it_is() {
    let world = World::new().await;
    let author = Keys::generate();
    let key = author.public_key().to_hex();
    let note = world.plant(&author, 1, json!([]), "hi").await;
    let id = note.id.to_hex();
    let tags = json!([["e", id, world.url(), key], ["p", key, world.url()]]);
    world.check("events_repost", json!({ "event_json": text(&note) }), 6, &text(&note), tags).await;

    let article = event(&author, 30_023, json!([["d", "x"]]), "long");
    let id = article.id.to_hex();
    let arguments = json!({ "event_json": text(&article), "relay_hint": HINT });
    let address = format!("30023:{key}:x");
    let tags = json!([["e", id, HINT, key], ["p", key, HINT], ["a", address, HINT], ["k", "30023"]]);
    world.check("events_repost", arguments.clone(), 16, &text(&article), tags).await;

    let protected = event(&author, 1, json!([["-"]]), "mine");
    let shared = json!({ "event_json": text(&protected), "relay_hint": HINT });
    assert_eq!(world.publish("events_repost", shared).await["content"], "");

    world.refuses("events_repost", json!({ "event_json": text(&article) }), "/relay_hint").await;
    world.refuses("events_repost", with(&arguments, json!({ "relay_hint": "x" })), "/relay_hint").await;
    let mut forged = serde_json::to_value(&note).unwrap();
    forged["content"] = "something else".into();
    world.refuses("events_repost", json!({ "event_json": forged.to_string() }), "/event_json").await;
}

#[tokio::test]
async fn deletions_name_kinds_and_only_own_events() {
    let world = World::new().await;
    let (me, key) = (&world.me, world.my_key());
    let note = world.plant(me, 1, json!([]), "hi").await.id.to_hex();
    let other = world.plant(me, 1, json!([]), "ho").await.id.to_hex();
    let stranger = world.plant(&Keys::generate(), 1, json!([]), "no").await.id.to_hex();
    let wrap = world.plant(&Keys::generate(), 1059, json!([["p", key]]), "?").await.id.to_hex();
    let unknown = "cd".repeat(32);
    let address = format!("30023:{key}:x");
    let arguments = json!({ "event_ids": [note, other, wrap, unknown], "coordinates": [address], "reason": "oops" });
    let tags = json!([
        ["e", note],
        ["e", other],
        ["e", wrap],
        ["e", unknown],
        ["a", address],
        ["k", "1"],
        ["k", "1059"],
        ["k", "30023"]
    ]);
    let deletion = world.publish("events_delete", arguments).await;
    assert_eq!((&deletion["kind"], &deletion["content"], &deletion["tags"]), (&json!(5), &json!("oops"), &tags));
    assert!(world.stored(&note).await.is_none());
    let wrong = [
        (json!({}), "/event_ids"),
        (json!({ "event_ids": ["x"] }), "/event_ids/0"),
        (json!({ "event_ids": [unknown, stranger] }), "/event_ids/1"),
        (json!({ "event_ids": [deletion["id"]] }), "/event_ids/0"),
        (json!({ "event_ids": [address] }), "/event_ids/0"),
        (json!({ "coordinates": [unknown] }), "/coordinates/0"),
        (json!({ "coordinates": [format!("1:{key}:x")] }), "/coordinates/0"),
        (json!({ "coordinates": [address, format!("30023:{}:x", "c".repeat(64))] }), "/coordinates/1"),
    ];
    for (arguments, pointer) in wrong {
        world.refuses("events_delete", arguments, pointer).await;
    }
}

#[tokio::test]
async fn signed_events_are_published_for_anybody() {
    for user in [User::Somebody, User::Watched, User::Nobody] {
        let world = World::of(user).await;
        let note = event(&Keys::generate(), 1, json!([["t", "x"]]), "signed elsewhere");
        world
            .check("events_publish_signed", json!({ "event_json": text(&note) }), 1, &note.content, json!([["t", "x"]]))
            .await;
        let mut forged = serde_json::to_value(&note).unwrap();
        forged["created_at"] = 1.into();
        for wrong in ["", "{}", &forged.to_string()] {
            world.refuses("events_publish_signed", json!({ "event_json": wrong }), "/event_json").await;
        }
    }
}

#[tokio::test]
async fn articles_always_have_a_name() {
    let world = World::new().await;
    let earlier = json!([["d", "on-relays"], ["published_at", "5"]]);
    world.plant_at(-100, &world.me, 30_023, earlier, "earlier").await;
    let arguments = json!({
        "content": "# Hi", "title": "On Relays!", "summary": "s", "image": "https://x.example/i.png",
        "hashtags": ["Nostr"],
    });
    let tags = |name: &str, time: &str| {
        json!([
            ["d", name],
            ["title", "On Relays!"],
            ["image", "https://x.example/i.png"],
            ["summary", "s"],
            ["published_at", time],
            ["t", "nostr"]
        ])
    };
    // The same title could be another article.
    world.refuses("events_post_long_form", arguments.clone(), "/identifier").await;
    let again = with(&arguments, json!({ "identifier": "on-relays" }));
    world.check("events_post_long_form", again, 30_023, "# Hi", tags("on-relays", "5")).await;
    let new = with(&arguments, json!({ "identifier": "New", "published_at": 7 }));
    world.check("events_post_long_form", new, 30_023, "# Hi", tags("New", "7")).await;
    let titled = world.publish("events_post_long_form", json!({ "content": "x", "title": "Über Äpfel" })).await;
    assert_eq!(titled["tags"][0], json!(["d", "über-äpfel"]));
    let nameless = [(); 2].map(|()| json!({ "content": "x" }));
    let mut names = Vec::new();
    for arguments in nameless {
        names.push(world.publish("events_post_long_form", arguments).await["tags"][0][1].clone());
    }
    assert!(names[0] != names[1] && names.iter().all(|name| name.as_str().unwrap().len() == 16));
    world.refuses("events_post_long_form", json!({ "content": "x", "identifier": " " }), "/identifier").await;
    world.refuses("events_post_long_form", json!({ "content": "" }), "/content").await;
}
