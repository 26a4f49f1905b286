//! Events that survive: a restart, a kill in the middle of a line, and a file that has been rewritten.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use nostr::event::Event;
use nostr::key::Keys;
use rialto_relay::embedded::{Options, Relay};
use serde_json::json;

use crate::peer::{Draft, Peer, id, now};

async fn start_on(store: &Path) -> Relay {
    Relay::start(Options { store: Some(store.to_owned()), ..Options::default() }).await.unwrap()
}

fn lines(store: &Path) -> usize {
    fs::read_to_string(store).unwrap().lines().count()
}

#[tokio::test]
async fn events_survive_a_restart_with_all_that_happened_to_them() {
    let directory = tempfile::tempdir().unwrap();
    let store = directory.path().join("events.jsonl");
    let keys = Keys::generate();
    let base = now() - 100;
    let relay = start_on(&store).await;
    let mut peer = Peer::connect(&relay).await;
    let kept = Draft::note("kept").at(base).tag(&["t", "x"]).sign(&keys);
    let deleted = Draft::note("deleted").at(base + 1).sign(&keys);
    let old = Draft::new(10_002).at(base + 2).sign(&keys);
    let new = Draft::new(10_002).at(base + 3).sign(&keys);
    let request = Draft::new(5).at(base + 4).tag(&["e", &id(&deleted)]).sign(&keys);
    let passing = Draft::new(20_001).at(base + 5).sign(&keys);
    for event in [&kept, &deleted, &old, &new, &request, &passing] {
        peer.accept(event).await;
    }
    assert_eq!(fs::metadata(&store).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(lines(&store), 5);
    relay.stop().await;
    for _ in 0..2 {
        let relay = start_on(&store).await;
        let mut peer = Peer::connect(&relay).await;
        assert_eq!(peer.find(json!({})).await, [id(&request), id(&new), id(&kept)]);
        assert_eq!(peer.find(json!({ "#t": ["x"] })).await, [id(&kept)]);
        peer.refuse(&deleted, "blocked: ").await;
        peer.refuse(&old, "duplicate: ").await;
        relay.stop().await;
    }
}

#[tokio::test]
async fn an_accepted_event_is_in_the_file_whatever_happens_next() {
    let directory = tempfile::tempdir().unwrap();
    let store = directory.path().join("events.jsonl");
    let copy = directory.path().join("copy.jsonl");
    let keys = Keys::generate();
    let relay = start_on(&store).await;
    let mut peer = Peer::connect(&relay).await;
    let mut ids = Vec::new();
    for number in 0..20 {
        let event = Draft::note(&number.to_string()).at(now() - 100 + number).sign(&keys);
        peer.accept(&event).await;
        ids.insert(0, id(&event));
    }
    // What a kill would leave behind at this moment; then with its last line cut off, and with damage in the middle.
    let text = fs::read_to_string(&store).unwrap();
    let torn = &text[..text.len() - 100];
    let damaged = text.replacen("\"content\":\"7\"", "\"content\":\"8\"", 1).replacen("\"kind\"", "\"ki\0nd\"", 1);
    for (content, missing) in [(text.as_str(), vec![]), (torn, vec![0]), (&damaged, vec![19, 12])] {
        fs::write(&copy, content).unwrap();
        let mut expected = ids.clone();
        for index in missing {
            expected.remove(index);
        }
        let relay = start_on(&copy).await;
        let mut peer = Peer::connect(&relay).await;
        assert_eq!(peer.find(json!({})).await, expected);
        let next = Draft::note("next").sign(&keys);
        peer.accept(&next).await;
        relay.stop().await;
        let relay = start_on(&copy).await;
        expected.insert(0, id(&next));
        assert_eq!(Peer::connect(&relay).await.find(json!({})).await, expected);
        relay.stop().await;
    }
}

#[tokio::test]
async fn what_has_expired_does_not_come_back_nor_does_what_it_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let store = directory.path().join("events.jsonl");
    let keys = Keys::generate();
    let old = Draft::new(10_002).at(now() - 200).sign(&keys);
    let expired = Draft::new(10_002).at(now() - 100).tag(&["expiration", &(now() - 50).to_string()]).sign(&keys);
    let text: String = [&old, &expired].iter().map(|event| format!("{}\n", json!(event))).collect();
    fs::write(&store, text).unwrap();
    let relay = start_on(&store).await;
    assert!(Peer::connect(&relay).await.find(json!({})).await.is_empty());
    relay.stop().await;
}

#[tokio::test]
async fn a_file_that_is_mostly_dead_is_rewritten() {
    let directory = tempfile::tempdir().unwrap();
    let store = directory.path().join("events.jsonl");
    let keys = Keys::generate();
    let versions: Vec<Event> =
        (0..1200).map(|number| Draft::new(10_002).at(now() - 5000 + number).sign(&keys)).collect();
    let text: String = versions.iter().map(|event| format!("{}\n", json!(event))).collect();
    fs::write(&store, &text).unwrap();
    fs::set_permissions(&store, fs::Permissions::from_mode(0o644)).unwrap();
    // A rewrite that was killed leaves this behind.
    fs::write(directory.path().join("events.jsonl.new"), "half a li").unwrap();
    let relay = start_on(&store).await;
    let mut peer = Peer::connect(&relay).await;
    assert_eq!(lines(&store), 1);
    assert_eq!(fs::metadata(&store).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    assert_eq!(peer.find(json!({})).await, [id(&versions[1199])]);
    let next = Draft::note("next").sign(&keys);
    peer.accept(&next).await;
    relay.stop().await;
    let relay = start_on(&store).await;
    assert_eq!(Peer::connect(&relay).await.find(json!({})).await, [id(&next), id(&versions[1199])]);
    relay.stop().await;
}

#[tokio::test]
async fn two_relays_do_not_share_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let store = directory.path().join("events.jsonl");
    let relay = start_on(&store).await;
    let options = Options { store: Some(store.clone()), ..Options::default() };
    let error = Relay::start(options).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ResourceBusy);
    assert!(error.to_string().contains("events.jsonl"), "{error}");
    relay.stop().await;
    start_on(&store).await.stop().await;
    let missing = directory.path().join("no/such/folder");
    let error = Relay::start(Options { store: Some(missing), ..Options::default() }).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}
