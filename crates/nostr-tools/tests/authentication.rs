//! Relays that want to know who we are (NIP-42): told by a signer elsewhere, and never told of the user by what is anonymous.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should panic")]

mod support;

use nostr::prelude::{Keys, Kind, PublicKey, Tag};
use rialto_nostr_tools::{Activate, Keyring, Material, Options, Passphrase, join};
use rialto_relay::embedded::{self, Relay};
use serde_json::json;
use support::bunker::{Bunker, Manner};
use support::doorman::{Doorman, Readers};
use support::other::Other;
use support::{Client, World};

const VERSION: &str = "2025-11-25";

/// The active key is with this signer, which is met on the open relay of the world.
async fn tie(world: &World, bunker: &Bunker) {
    let remote = join(&bunker.address()).await.unwrap();
    let ring = Keyring::open(world.directory(), Passphrase::none()).unwrap();
    ring.add("far", &Material::Remote(Box::new(remote)), 1, Activate::Yes).unwrap();
}

#[tokio::test]
async fn a_remote_signer_says_who_we_are_and_signs_the_event() {
    let world = World::new().await;
    let bunker = Bunker::start(&world.url(), Manner::Honest).await;
    tie(&world, &bunker).await;
    let doorman = Doorman::start(Readers::Named).await;
    let mut client = Client::open(Options { relays: vec![doorman.url.clone()], ..world.options() }, VERSION).await;
    let sent = client.call("nostr_events_post_text", json!({ "content": "hello" })).await.unwrap();
    let visit = doorman.visit_of(sent["id"].as_str().unwrap());
    assert_eq!(visit.names, [bunker.user.public_key()]);
    assert_eq!(visit.taken[0].pubkey, bunker.user.public_key());
    assert!(bunker.signed.lock().unwrap().contains(&Kind::Authentication));
}

#[tokio::test]
async fn the_embedded_relay_takes_the_word_of_a_remote_signer_too() {
    let world = World::new().await;
    let strict = Relay::start(embedded::Options { require_auth: true, ..embedded::Options::default() }).await.unwrap();
    let strict = nostr::prelude::RelayUrl::parse(&strict.url()).map(|url| (url, strict)).unwrap();
    let bunker = Bunker::start(&world.url(), Manner::Honest).await;
    tie(&world, &bunker).await;
    let mut client = Client::open(Options { relays: vec![strict.0.clone()], ..world.options() }, VERSION).await;
    let sent = client.call("nostr_events_post_text", json!({ "content": "hello" })).await.unwrap();
    assert_eq!(sent["pubkey"], bunker.user.public_key().to_hex());
    assert_eq!(sent["success"], json!([strict.0.as_str_without_trailing_slash()]));
}

#[tokio::test]
async fn a_signer_that_does_not_say_who_we_are_leaves_us_at_the_door() {
    let world = World::new().await;
    let bunker = Bunker::start(&world.url(), Manner::RefusesKind(Kind::Authentication)).await;
    tie(&world, &bunker).await;
    let doorman = Doorman::start(Readers::Anonymous).await;
    let mut client = Client::open(Options { relays: vec![doorman.url.clone()], ..world.options() }, VERSION).await;
    let error = client.call("nostr_events_post_text", json!({ "content": "hello" })).await.unwrap_err();
    assert!(error["message"].as_str().unwrap().contains("auth-required"), "{error}");
    assert!(doorman.visits().iter().all(|visit| visit.names.is_empty() && visit.taken.is_empty()));
}

/// Who said who they are, in a visit in which something was published.
fn names(doorman: &Doorman, id: &str, users: &[PublicKey]) -> Vec<PublicKey> {
    let visit = doorman.visit_of(id);
    assert!(visit.names.iter().all(|name| !users.contains(name)), "the user was not named: {visit:?}");
    assert!(visit.asked.is_empty(), "nothing else happened there: {visit:?}");
    assert_eq!(visit.taken.len(), 1, "{visit:?}");
    visit.names
}

#[tokio::test]
async fn what_is_anonymous_never_names_the_user() {
    let world = World::new().await;
    let bunker = Bunker::start(&world.url(), Manner::Honest).await;
    tie(&world, &bunker).await;
    let own = Keys::generate();
    let ring = Keyring::open(world.directory(), Passphrase::none()).unwrap();
    ring.add("near", &Material::Secret(own.clone()), 1, Activate::No).unwrap();
    let users = [own.public_key(), bunker.user.public_key()];
    let doorman = Doorman::start(Readers::Named).await;
    // A friend whose inbox is behind the same door.
    let friend = Other::new(Keys::generate(), &[world.url()]);
    let inbox = [Tag::custom("relay", [doorman.url.to_string()])].to_vec();
    assert!(friend.publish(&friend.event(10050, inbox, "", 1_700_000_000)).await);
    let relays = vec![doorman.url.clone(), world.url()];
    let mut client = Client::open(Options { relays, ..world.options() }, VERSION).await;
    let to_relays = json!([doorman.url.to_string()]);
    for label in ["near", "far"] {
        client.call("nostr_keys_set_active", json!({ "label": label })).await.unwrap();
        // The user has a connection that is known by name, which would be at hand.
        let text = json!({ "content": "it is me", "to_relays": to_relays });
        let named = client.call("nostr_events_post_text", text).await.unwrap();
        let user = named["pubkey"].as_str().unwrap().to_owned();
        assert_eq!(doorman.visit_of(named["id"].as_str().unwrap()).names[0].to_hex(), user);
        let text = json!({ "content": "who am I", "to_relays": to_relays });
        let anonymous = client.call("nostr_events_post_anonymous", text).await.unwrap();
        let names_used = names(&doorman, anonymous["id"].as_str().unwrap(), &users);
        assert_eq!(
            names_used.iter().map(PublicKey::to_hex).collect::<Vec<_>>(),
            [anonymous["pubkey"].as_str().unwrap()]
        );
        let message = json!({ "to": [friend.keys.public_key().to_hex()], "content": "psst" });
        client.call("nostr_messages_send", message).await.unwrap();
    }
    let wraps: Vec<_> =
        doorman.visits().into_iter().flat_map(|visit| visit.taken).filter(|one| one.kind == Kind::GiftWrap).collect();
    assert_eq!(wraps.len(), 2, "one from each");
    for wrap in wraps {
        assert_eq!(names(&doorman, &wrap.id.to_hex(), &users), [wrap.pubkey], "by the key of the wrap alone");
    }
}
