//! A remote signer (NIP-46): joined in both ways, used by tools, kept over a restart, and not trusted.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should panic")]

mod support;

use nostr::nips::nip19::ToBech32;
use nostr::prelude::{Event, Keys};
use rialto_nostr_tools::{Activate, Guard, Invitation, Keyring, Material, Options, Passphrase, join};
use serde_json::json;
use support::bunker::{Bunker, Manner};
use support::{Client, SOON, World, files};

const VERSION: &str = "2025-11-25";

/// A keyring whose active key is with this signer.
async fn tie(world: &World, bunker: &Bunker) {
    let remote = join(&bunker.address()).await.unwrap();
    assert_eq!(remote.user(), bunker.user.public_key());
    let ring = Keyring::open(world.directory(), Passphrase::none()).unwrap();
    ring.add("far", &Material::Remote(Box::new(remote)), 1, Activate::Yes).unwrap();
}

#[tokio::test]
async fn a_signer_is_joined_used_and_kept_over_a_restart() {
    let world = World::new().await;
    let bunker = Bunker::start(&world.url(), Manner::Honest).await;
    tie(&world, &bunker).await;
    // Each client is a server of its own that knows only what is on disk.
    for round in 0..2 {
        let mut client = world.client(VERSION).await;
        let content = format!("signed far away, {round}");
        let sent = client.call("nostr_events_post_text", json!({ "content": content })).await.unwrap();
        assert_eq!(sent["pubkey"], bunker.user.public_key().to_hex());
        let found = json!({ "filters": [{ "ids": [sent["id"]] }] });
        let found = client.call("nostr_events_query", found).await.unwrap();
        assert_eq!(found["items"][0]["content"], content);
        let peer = Keys::generate().public_key().to_bech32().unwrap();
        let sealed = json!({ "public_key": peer, "plaintext": "hello" });
        let sealed = client.call("nostr_nip44_encrypt", sealed).await.unwrap();
        let opened = json!({ "public_key": peer, "ciphertext": sealed["ciphertext"] });
        assert_eq!(client.call("nostr_nip44_decrypt", opened).await.unwrap()["plaintext"], "hello");
    }
    let asked = bunker.asked.lock().unwrap().clone();
    assert_eq!(asked.iter().filter(|method| *method == "connect").count(), 1, "the permission was kept: {asked:?}");
    let nsec = bunker.user.secret_key().to_bech32().unwrap();
    assert!(files(world.directory()).iter().all(|(_, text)| !text.contains(&nsec)), "the key never came here");
}

#[tokio::test]
async fn a_signer_joins_us() {
    let world = World::new().await;
    let bunker = Bunker::start(&world.url(), Manner::Honest).await;
    let invitation = Invitation::new(&[world.url()]).unwrap();
    invitation.listening().await.unwrap();
    bunker.join(invitation.address());
    let remote = invitation.accept(SOON).await.unwrap();
    assert_eq!(remote.user(), bunker.user.public_key());
    let ring = Keyring::open(world.directory(), Passphrase::none()).unwrap();
    ring.add("far", &Material::Remote(Box::new(remote)), 1, Activate::Yes).unwrap();
    let mut client = world.client(VERSION).await;
    let draft = json!({ "unsigned_event_json": r#"{"kind":1,"content":"hi"}"# });
    let signed = client.call("nostr_events_sign", draft).await.unwrap();
    let event: Event = serde_json::from_str(signed["event_json"].as_str().unwrap()).unwrap();
    event.verify().unwrap();
    assert_eq!(event.pubkey, bunker.user.public_key());
}

#[tokio::test]
async fn a_signer_is_not_trusted() {
    let world = World::new().await;
    for (manner, expected) in [(Manner::Refuses, "the owner said no"), (Manner::Lies, "something else")] {
        let bunker = Bunker::start(&world.url(), manner).await;
        let home = tempfile::tempdir().unwrap();
        let ring = Keyring::open(home.path(), Passphrase::none()).unwrap();
        let remote = join(&bunker.address()).await.unwrap();
        ring.add("far", &Material::Remote(Box::new(remote)), 1, Activate::Yes).unwrap();
        let mut client =
            Client::open(Options { relays: vec![world.url()], ..Options::new(home.path()) }, VERSION).await;
        let error = client.call("nostr_events_post_text", json!({ "content": "x" })).await.unwrap_err();
        assert!(error["message"].as_str().unwrap().contains(expected), "{error}");
    }
}

#[tokio::test]
async fn an_answer_may_come_after_the_owner_looked_elsewhere() {
    let world = World::new().await;
    let bunker = Bunker::start(&world.url(), Manner::AsksElsewhere).await;
    tie(&world, &bunker).await;
    let mut client = world.client(VERSION).await;
    client.call("nostr_events_post_text", json!({ "content": "x" })).await.unwrap();
}

#[tokio::test]
async fn a_wrong_secret_ties_nothing() {
    let world = World::new().await;
    let bunker = Bunker::start(&world.url(), Manner::Honest).await;
    let failure = join(&bunker.address().replace("secret=only", "secret=not")).await.unwrap_err();
    assert!(failure.message.contains("wrong secret"), "{failure}");
}

#[tokio::test]
async fn a_tool_joins_a_signer_only_if_secrets_are_allowed() {
    let world = World::new().await;
    let bunker = Bunker::start(&world.url(), Manner::Honest).await;
    let arguments = json!({ "label": "far", "key_material": bunker.address() });
    let error = world.client(VERSION).await.call("nostr_keys_import", arguments.clone()).await.unwrap_err();
    assert_eq!(error["data"]["reason"], "not_allowed");
    let guard = Guard { allows_secrets: true, ..Guard::default() };
    let mut client = Client::open(Options { guard, ..world.options() }, VERSION).await;
    let entry = client.call("nostr_keys_import", arguments).await.unwrap();
    assert_eq!(entry["public_key"], bunker.user.public_key().to_bech32().unwrap());
    let log = std::fs::read_to_string(world.directory().join("log.jsonl")).unwrap();
    assert!(!log.contains("bunker://") && !log.contains("never"), "the secret of the address is not written down");
}
