//! How long events live: replaceable and addressable ones, deletion (NIP-09), expiry (NIP-40), and a full store.

use nostr::event::Event;
use nostr::key::Keys;
use rialto_relay::embedded::Limits;
use serde_json::json;

use crate::peer::{Draft, Peer, id, now, start, start_with};

#[tokio::test]
async fn only_the_newest_version_is_kept() {
    let relay = start().await;
    let mut peer = Peer::connect(&relay).await;
    let keys = Keys::generate();
    let other = Keys::generate();
    let base = now() - 100;
    for kind in [0, 3, 10_002, 31_990] {
        let version = |at: u64, name: &str| Draft::new(kind).at(base + at).tag(&["d", name]).sign(&keys);
        let old = version(1, "x");
        let middle = version(2, "x");
        let new = version(3, "x");
        peer.accept(&middle).await;
        peer.refuse(&old, "duplicate: a newer version").await;
        peer.accept(&new).await;
        peer.refuse(&middle, "duplicate: a newer version").await;
        let strangers = Draft::new(kind).at(base + 1).tag(&["d", "x"]).sign(&other);
        peer.accept(&strangers).await;
        assert_eq!(peer.find(json!({ "kinds": [kind] })).await, [id(&new), id(&strangers)], "{kind}");
    }
    // Another identifier is another event; none is the empty one; only the first counts.
    let empty = Draft::new(30_000).at(base).sign(&keys);
    let named = Draft::new(30_000).at(base + 1).tag(&["d", "a"]).tag(&["d", ""]).sign(&keys);
    let unnamed = Draft::new(30_000).at(base + 2).tag(&["d", ""]).sign(&keys);
    for event in [&empty, &named, &unnamed] {
        peer.accept(event).await;
    }
    assert_eq!(peer.find(json!({ "kinds": [30_000] })).await, [id(&unnamed), id(&named)]);
}

#[tokio::test]
async fn of_versions_of_the_same_second_the_lowest_id_stays() {
    let relay = start().await;
    let mut peer = Peer::connect(&relay).await;
    let keys = Keys::generate();
    let at = now();
    let mut versions: Vec<Event> =
        (0..3).map(|number| Draft::new(10_002).content(&number.to_string()).at(at).sign(&keys)).collect();
    versions.sort_by_key(id);
    peer.accept(&versions[1]).await;
    peer.refuse(&versions[2], "duplicate: ").await;
    peer.accept(&versions[0]).await;
    assert_eq!(peer.find(json!({ "kinds": [10_002] })).await, [id(&versions[0])]);
}

#[tokio::test]
async fn authors_delete_their_own_events_for_good() {
    let relay = start().await;
    let mut peer = Peer::connect(&relay).await;
    let keys = Keys::generate();
    let own = Draft::note("own").sign(&keys);
    let strangers = Draft::note("of a stranger").sign(&Keys::generate());
    let later = Draft::note("not yet here").sign(&keys);
    peer.accept(&own).await;
    peer.accept(&strangers).await;
    let request = Draft::new(5)
        .tag(&["e", &id(&own)])
        .tag(&["e", &id(&strangers)])
        .tag(&["e", &id(&later)])
        .tag(&["e", "nonsense"])
        .sign(&keys);
    peer.accept(&request).await;
    assert_eq!(peer.find(json!({ "kinds": [1] })).await, [id(&strangers)]);
    peer.refuse(&own, "blocked: ").await;
    peer.refuse(&later, "blocked: ").await;
    // A deletion cannot be deleted, and is itself served.
    peer.accept(&Draft::new(5).tag(&["e", &id(&request)]).content("undo").sign(&keys)).await;
    peer.refuse(&own, "blocked: ").await;
    assert_eq!(peer.find(json!({ "ids": [id(&request)] })).await, [id(&request)]);
}

#[tokio::test]
async fn a_deletion_by_address_reaches_up_to_its_own_time() {
    let relay = start().await;
    let mut peer = Peer::connect(&relay).await;
    let keys = Keys::generate();
    let author = keys.public_key().to_hex();
    let base = now() - 100;
    for (kind, name) in [(30_023, "a:b"), (10_002, "")] {
        let version = |at: u64| Draft::new(kind).at(base + at).tag(&["d", name]).sign(&keys);
        let request = |at: u64, keys: &Keys| {
            Draft::new(5).at(base + at).tag(&["a", &format!("{kind}:{author}:{name}")]).sign(keys)
        };
        peer.accept(&version(5)).await;
        peer.accept(&request(9, &Keys::generate())).await;
        peer.accept(&request(4, &keys)).await;
        assert_eq!(peer.find(json!({ "kinds": [kind] })).await.len(), 1, "{kind}");
        peer.accept(&request(7, &keys)).await;
        assert!(peer.find(json!({ "kinds": [kind] })).await.is_empty(), "{kind}");
        peer.refuse(&version(5), "blocked: ").await;
        peer.refuse(&version(7), "blocked: ").await;
        peer.accept(&version(8)).await;
    }
}

#[tokio::test]
async fn expired_events_are_refused_and_no_longer_served() {
    let relay = start().await;
    let mut peer = Peer::connect(&relay).await;
    let keys = Keys::generate();
    let expiring = |at: u64| Draft::note("brief").tag(&["expiration", &at.to_string()]).sign(&keys);
    peer.refuse(&expiring(now() - 1), "invalid: the event has expired").await;
    peer.refuse(&expiring(now()), "invalid: the event has expired").await;
    let brief = expiring(now() + 2);
    peer.accept(&brief).await;
    assert_eq!(peer.find(json!({})).await, [id(&brief)]);
    while !peer.find(json!({})).await.is_empty() {
        assert!(now() < brief.created_at.as_secs() + 10, "it is still served");
    }
    assert_eq!(peer.count(&[json!({})]).await, 0);
}

#[tokio::test]
async fn a_full_store_forgets_the_oldest() {
    let relay = start_with(Limits { max_events: 3, ..Limits::default() }).await;
    let mut peer = Peer::connect(&relay).await;
    let keys = Keys::generate();
    let base = now() - 100;
    let notes: Vec<Event> = (0..5).map(|age| Draft::note("x").at(base + age).sign(&keys)).collect();
    for index in [1, 3, 2, 4] {
        peer.accept(&notes[index]).await;
    }
    peer.refuse(&notes[0], "error: the store is full").await;
    assert_eq!(peer.find(json!({})).await, [id(&notes[4]), id(&notes[3]), id(&notes[2])]);
}

#[tokio::test]
async fn the_store_is_bounded_in_bytes_too() {
    let relay = start_with(Limits { max_stored_bytes: 10_000, ..Limits::default() }).await;
    let mut peer = Peer::connect(&relay).await;
    let keys = Keys::generate();
    let base = now() - 100;
    for age in 0..20 {
        peer.accept(&Draft::note(&"x".repeat(1000)).at(base + age).sign(&keys)).await;
    }
    let left = peer.count(&[json!({})]).await;
    assert!((3..8).contains(&left), "{left}");
}
