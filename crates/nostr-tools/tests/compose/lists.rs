//! Badges (NIP-58) and apps (NIP-89).

use crate::world::{World, with};
use nostr::nips::nip01::Coordinate;
use nostr::nips::nip19::{Nip19Coordinate, ToBech32};
use nostr::prelude::{Keys, Kind, RelayUrl};
use serde_json::{Value, json};

const HINT: &str = "wss://hint.example";

#[tokio::test]
async fn badges_are_defined_and_awarded_by_their_issuer() {
    let world = World::new().await;
    let definition = json!({
        "identifier": "bravery", "name": "Medal", "description": "for the brave", "content": "words",
        "image": { "url": "https://x.example/b.png", "dimensions": "1024x1024" },
        "thumbs": [{ "url": "https://x.example/s.png", "dimensions": "64x64" }, { "url": "https://x.example/t.png" }],
    });
    let tags = json!([
        ["d", "bravery"],
        ["name", "Medal"],
        ["description", "for the brave"],
        ["image", "https://x.example/b.png", "1024x1024"],
        ["thumb", "https://x.example/s.png", "64x64"],
        ["thumb", "https://x.example/t.png"]
    ]);
    world.check("badges_define", definition.clone(), 30_009, "words", tags).await;
    world.check("badges_define", json!({ "identifier": "plain" }), 30_009, "", json!([["d", "plain"]])).await;
    let wrong = [
        (json!({ "identifier": "" }), "/identifier"),
        (json!({ "image": { "url": "" } }), "/image/url"),
        (json!({ "image": { "url": "https://x", "dimensions": "big" } }), "/image/dimensions"),
        (json!({ "thumbs": [{ "url": "https://x", "dimensions": "0x1" }] }), "/thumbs/0/dimensions"),
    ];
    for (members, pointer) in wrong {
        world.refuses("badges_define", with(&definition, members), pointer).await;
    }

    let [one, two] = [(); 2].map(|()| Keys::generate().public_key());
    let badge = format!("30009:{}:bravery", world.my_key());
    let award = json!({
        "badge": badge, "badge_relay": HINT,
        "recipients": [{ "pubkey": one.to_bech32().unwrap(), "relay": HINT }, { "pubkey": two.to_hex() }],
    });
    let tags = json!([["a", badge, HINT], ["p", one.to_hex(), HINT], ["p", two.to_hex()]]);
    world.check("badges_award", award.clone(), 8, "", tags).await;
    let wrong = [
        (json!({ "badge": "x" }), "/badge"),
        (json!({ "badge": format!("30023:{}:bravery", world.my_key()) }), "/badge"),
        (json!({ "badge": format!("30009:{one}:bravery") }), "/badge"),
        (json!({ "badge_relay": "x" }), "/badge_relay"),
        (json!({ "recipients": [] }), "/recipients"),
        (json!({ "recipients": [{ "pubkey": "x" }] }), "/recipients/0/pubkey"),
        (json!({ "recipients": [{ "pubkey": two.to_hex(), "relay": "x" }] }), "/recipients/0/relay"),
    ];
    for (members, pointer) in wrong {
        world.refuses("badges_award", with(&award, members), pointer).await;
    }
}

#[tokio::test]
async fn shown_badges_replace_badges_and_nothing_else() {
    let world = World::new().await;
    let issuer = Keys::generate();
    let badge = |name: &str| format!("30009:{}:{name}", issuer.public_key());
    let (brave, kind) = (badge("brave"), badge("kind"));
    let award = async |badge: &str, whom: &str| {
        world.plant(&issuer, 8, json!([["a", badge], ["p", whom]]), "").await.id.to_hex()
    };
    let (brave_award, kind_award) = (award(&brave, &world.my_key()).await, award(&kind, &world.my_key()).await);
    let strange = award(&brave, &issuer.public_key().to_hex()).await;
    // The list in its old form, with something that we do not know.
    let old = json!([["d", "profile_badges"], ["alt", "badges"], ["a", kind, HINT], ["e", kind_award, HINT]]);
    world.plant(&world.me, 30_008, old, "").await;
    let show = |badge: &str, award: &str| json!({ "badge": badge, "award_event_id": award });
    let first = json!({ "badges": [show(&brave, &brave_award), show(&kind, &kind_award)] });
    let tags = json!([["alt", "badges"], ["a", brave], ["e", brave_award], ["a", kind, HINT], ["e", kind_award, HINT]]);
    world.check("badges_set_profile", first.clone(), 10_008, "", tags.clone()).await;
    // Nothing has changed, so the event is the same.
    world.check("badges_set_profile", first, 10_008, "", tags).await;
    // Another client, whose clock is ahead, adds a set of badges; it stays.
    let set = format!("30008:{}:best", world.my_key());
    let theirs = json!([["a", set], ["a", brave], ["e", brave_award]]);
    world.plant_at(100, &world.me, 10_008, theirs, "private").await;
    let relays = json!({ "badge_relay": HINT, "award_relay": HINT });
    let second = json!({ "badges": [with(&show(&kind, &kind_award), relays)] });
    let tags = json!([["a", set], ["a", kind, HINT], ["e", kind_award, HINT]]);
    world.check("badges_set_profile", second.clone(), 10_008, "private", tags).await;
    world.check("badges_set_profile", json!({ "badges": [] }), 10_008, "private", json!([["a", set]])).await;
    let wrong = [
        (json!({ "badge": "x" }), "/badges/0/badge"),
        (json!({ "badge": set }), "/badges/0/badge"),
        (json!({ "award_event_id": "x" }), "/badges/0/award_event_id"),
        (json!({ "award_event_id": brave_award }), "/badges/0/award_event_id"),
        (json!({ "badge": brave, "award_event_id": strange }), "/badges/0/award_event_id"),
        (json!({ "badge_relay": "x" }), "/badges/0/badge_relay"),
        (json!({ "award_relay": "x" }), "/badges/0/award_relay"),
    ];
    for (members, pointer) in wrong {
        let arguments = json!({ "badges": [with(&second["badges"][0], members)] });
        world.refuses("badges_set_profile", arguments, pointer).await;
    }
}

#[tokio::test]
async fn apps_are_described_and_recommended() {
    let world = World::new().await;
    let link = |platform: &str, url: &str, entity: Value| json!({ "platform": platform, "url": url, "entity": entity });
    let (page, profile) = ("https://x.example/a/<bech32>", "https://x.example/p/<bech32>");
    let app = json!({
        "identifier": "reader", "kinds": [30_023, 1], "content": "{\"name\":\"Reader\"}",
        "links": [link("web", page, json!("naddr")), link("web", page, json!("nevent")), link("ios", profile, Value::Null)],
    });
    let tags = json!([
        ["d", "reader"],
        ["k", "30023"],
        ["k", "1"],
        ["web", page, "naddr"],
        ["web", page, "nevent"],
        ["ios", profile]
    ]);
    world.check("handlers_register", app.clone(), 31_990, "{\"name\":\"Reader\"}", tags).await;
    let wrong = [
        (json!({ "identifier": "" }), "/identifier"),
        (json!({ "kinds": [] }), "/kinds"),
        (json!({ "links": [] }), "/links"),
        (json!({ "links": [link("d", page, Value::Null)] }), "/links/0/platform"),
        (json!({ "links": [link("web", "https://x.example", Value::Null)] }), "/links/0/url"),
        (json!({ "links": [link("web", page, json!("nsec"))] }), "/links/0/entity"),
        (json!({ "content": "Reader" }), "/content"),
    ];
    for (members, pointer) in wrong {
        world.refuses("handlers_register", with(&app, members), pointer).await;
    }

    let maker = Keys::generate().public_key();
    let address = Coordinate::new(Kind::from_u16(31_990), maker).identifier("reader");
    let named = Nip19Coordinate::new(address.clone(), [RelayUrl::parse(HINT).unwrap()]).to_bech32().unwrap();
    let address = address.to_string();
    let other = format!("31990:{maker}:other");
    let handlers = json!([{ "address": named, "platform": "web" }, { "address": other, "platform": "ios" }]);
    let recommendation = json!({ "supported_kind": 30_023, "handlers": handlers });
    let tags = json!([["d", "30023"], ["a", address, HINT, "web"], ["a", other, "", "ios"]]);
    world.check("handlers_recommend", recommendation.clone(), 31_989, "", tags).await;
    let wrong = [
        (json!([]), "/handlers"),
        (json!([{ "address": "x" }]), "/handlers/0/address"),
        (json!([{ "address": format!("30023:{maker}:x") }]), "/handlers/0/address"),
        (json!([{ "address": address, "relay": "x" }]), "/handlers/0/relay"),
    ];
    for (handlers, pointer) in wrong {
        world.refuses("handlers_recommend", with(&recommendation, json!({ "handlers": handlers })), pointer).await;
    }
}
