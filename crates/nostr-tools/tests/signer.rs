//! A remote signer (NIP-46): joined in both ways, used by tools, kept over a restart, and not trusted.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should panic")]

mod support;

use nostr::nips::nip19::ToBech32;
use nostr::prelude::{Event, Keys, RelayUrl};
use rialto_nostr_tools::{Activate, Guard, Invitation, Keyring, Material, Options, Passphrase, Session, join};
use serde_json::json;
use std::time::Duration;
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
async fn whoever_waits_is_shown_the_page_that_the_owner_must_open() {
    let world = World::new().await;
    let bunker = Bunker::start(&world.url(), Manner::AsksInVain).await;
    tie(&world, &bunker).await;
    let options = Options { signer_patience: Duration::from_secs(2), ..world.options() };
    let mut client = Client::open(options, VERSION).await;
    let call =
        json!({ "name": "nostr_events_post_text", "arguments": { "content": "x" }, "_meta": { "progressToken": 7 } });
    let response = client.request("tools/call", call).await;
    let error = &response["result"]["structuredContent"]["error"];
    assert_eq!(error["data"]["auth_url"], "https://signer.example/ok", "{response}");
    assert_eq!(error["data"]["reason"], "timeout");
    let mut shown = client.note("notifications/progress").await;
    while !shown["message"].as_str().unwrap().contains("https://signer.example/ok") {
        shown = client.note("notifications/progress").await;
    }
    assert_eq!(shown["progressToken"], 7);
}

#[tokio::test]
async fn a_silent_signer_is_not_waited_for_for_ever() {
    let world = World::new().await;
    let bunker = Bunker::start(&world.url(), Manner::Silent).await;
    tie(&world, &bunker).await;
    let options = Options { signer_patience: Duration::from_secs(1), ..world.options() };
    let mut client = Client::open(options, VERSION).await;
    let error = client.call("nostr_events_post_text", json!({ "content": "x" })).await.unwrap_err();
    assert_eq!(error["data"]["reason"], "timeout", "{error}");
    assert!(bunker.signed.lock().unwrap().len() == 1, "it was asked, and kept the answer to itself");
}

/// What is kept of the signer.
fn kept(world: &World, bunker: &Bunker) -> String {
    let file = format!("secrets/{}.signer", bunker.user.public_key().to_hex());
    std::fs::read_to_string(world.directory().join(file)).unwrap()
}

#[tokio::test]
async fn a_signer_is_followed_to_the_relays_it_wants_to_be_met_on() {
    let world = World::new().await;
    let [second, third] = [World::new().await, World::new().await];
    let bunker = Bunker::start_on(&[world.url(), second.url(), third.url()], Manner::Honest).await;
    // As JSON, the way the NIP writes it.
    *bunker.wanted.lock().unwrap() = Some(json!([second.url().to_string()]));
    tie(&world, &bunker).await;
    assert!(
        !kept(&world, &bunker).contains(world.url().as_str()) && kept(&world, &bunker).contains(second.url().as_str())
    );
    // It moves again while we are away, and says so as a text, the way others write it.
    let list = json!([third.url().to_string()]).to_string();
    *bunker.wanted.lock().unwrap() = Some(json!(list));
    let mut client = world.client(VERSION).await;
    client.call("nostr_events_post_text", json!({ "content": "while it moves" })).await.unwrap();
    let followed = async {
        while !kept(&world, &bunker).contains(third.url().as_str()) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(SOON, followed).await.expect("where it is met now is remembered");
    // Where it was met before is not needed any more.
    drop(second);
    client.call("nostr_events_post_text", json!({ "content": "where it is now" })).await.unwrap();
    let mut next = world.client(VERSION).await;
    next.call("nostr_events_post_text", json!({ "content": "and after a restart" })).await.unwrap();
}

#[tokio::test]
async fn a_signer_that_is_not_where_it_says_is_met_where_it_was() {
    let world = World::new().await;
    let empty = World::new().await;
    let cases = [json!(["ws://127.0.0.1:9"]), json!([empty.url().to_string()]), json!(["ws://10.0.0.1"]), json!(null)];
    let mut joining = tokio::task::JoinSet::new();
    for case in cases {
        let bunker = Bunker::start(&world.url(), Manner::Honest).await;
        *bunker.wanted.lock().unwrap() = Some(case.clone());
        joining.spawn(async move {
            let remote = join(&bunker.address()).await.unwrap();
            assert_eq!(remote.user(), bunker.user.public_key(), "{case}");
            let asked = bunker.asked.lock().unwrap().clone();
            assert_eq!(asked, ["connect", "switch_relays", "get_public_key"], "{case}");
        });
    }
    joining.join_all().await;
}

#[tokio::test]
async fn the_relays_of_a_signer_are_limited_like_all_others() {
    let world = World::new().await;
    let second = World::new().await;
    let bunker = Bunker::start_on(&[world.url(), second.url()], Manner::Honest).await;
    tie(&world, &bunker).await;
    let only = |relay: RelayUrl| Options {
        relays: vec![relay.clone()],
        guard: Guard { relays: vec![relay], ..Guard::default() },
        ..Options::new(world.directory())
    };
    // Refused at the start, but for whoever only reads.
    let refused = Session::open(only(second.url())).unwrap_err();
    assert_eq!(refused.reason, "not_allowed");
    assert!(refused.message.contains(world.url().as_str()) && refused.message.contains("--allow-relay"), "{refused}");
    let mut reading = only(second.url());
    reading.guard.is_read_only = true;
    Session::open(reading).unwrap();
    // Allowed, but the signer is not followed to where it may not be met.
    *bunker.wanted.lock().unwrap() = Some(json!([second.url().to_string()]));
    let mut client = Client::open(only(world.url()), VERSION).await;
    client.call("nostr_events_post_text", json!({ "content": "x" })).await.unwrap();
    let asked = || bunker.asked.lock().unwrap().iter().filter(|method| *method == "switch_relays").count();
    let is_asked = async {
        // Once when it was tied, and once by the server that runs now.
        while asked() < 2 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(SOON, is_asked).await.expect("it was asked where it wants to be met");
    client.call("nostr_events_post_text", json!({ "content": "y" })).await.unwrap();
    assert!(!kept(&world, &bunker).contains(second.url().as_str()));
    // A tool that joins a signer keeps to it as well.
    let mut options = only(second.url());
    options.directory = second.directory().to_owned();
    options.guard.allows_secrets = true;
    let mut client = Client::open(options, VERSION).await;
    let arguments = json!({ "label": "far", "key_material": bunker.address() });
    let error = client.call("nostr_keys_import", arguments).await.unwrap_err();
    assert_eq!(error["data"]["reason"], "not_allowed", "{error}");
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
