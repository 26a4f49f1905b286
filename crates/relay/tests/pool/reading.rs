//! What relays bring: once, verified, nothing lost.

use std::collections::HashSet;
use std::time::Duration;

use nostr::prelude::{Event, Keys, Timestamp, UnsignedEvent};
use rialto_relay::pool::{Arrival, Options};
use rialto_relay::sign::sign;
use serde_json::{Value, json};

use crate::fake::{Fake, KIND, Set, event, next_event, pool, wait_for_subscriptions, with_keys, within};

fn since(request: &Value) -> u64 {
    assert_eq!(request[1], "rialto", "one subscription, always the same");
    assert_eq!(request.as_array().unwrap().len(), 3);
    request[2]["since"].as_u64().unwrap()
}

#[tokio::test]
async fn after_a_reconnect_exactly_what_was_missed_is_asked_for() {
    let mut fake = Fake::start().await;
    let clock = Set::at(1000);
    let options = Options { clock: clock.clone(), ..Options::default() };
    let (pool, mut arrivals) = pool(std::slice::from_ref(&fake.url), options);
    let mut peer = fake.connection().await;
    assert_eq!(since(&peer.expect("REQ").await), 900);
    clock.to(2000);
    peer.say(json!(["EOSE", "rialto"])).await;
    wait_for_subscriptions(&mut arrivals, 1).await;
    drop(peer);
    clock.to(3000);
    let mut peer = fake.connection().await;
    assert_eq!(since(&peer.expect("REQ").await), 1900);
    // This one is heard of, but brings nothing: what it would have brought is still missing.
    peer.say(json!(["NOTICE", "about to die"])).await;
    drop(peer);
    clock.to(4000);
    let mut peer = fake.connection().await;
    assert_eq!(since(&peer.expect("REQ").await), 1900);
    let missed = event("missed");
    peer.send(&missed).await;
    peer.say(json!(["EOSE", "rialto"])).await;
    assert_eq!(next_event(&mut arrivals).await, missed);
    wait_for_subscriptions(&mut arrivals, 1).await;
    // A subscription that the relay ends is missing everything from then on.
    clock.to(5000);
    peer.say(json!(["CLOSED", "rialto", "error: restart"])).await;
    within(async {
        while pool.status()[0].complaint.as_deref() != Some("error: restart") {
            tokio::task::yield_now().await;
        }
    })
    .await;
    clock.to(6000);
    peer.say(json!(["NOTICE", "hello"])).await;
    drop(peer);
    let mut peer = fake.connection().await;
    assert_eq!(since(&peer.expect("REQ").await), 4900);
}

/// Whoever gets a relay to store something longer than we read must not keep us away from it.
#[tokio::test]
async fn a_message_that_is_too_long_does_not_end_the_connection() {
    let mut fake = Fake::start().await;
    let (pool, mut arrivals) = pool(std::slice::from_ref(&fake.url), Options::default());
    let mut peer = fake.subscribed().await;
    peer.say_text(&format!("[\"EVENT\",\"rialto\",\"{}\"]", "x".repeat(5 << 20))).await;
    let new = event("new");
    peer.send(&new).await;
    assert_eq!(next_event(&mut arrivals).await, new);
    assert_eq!(pool.status()[0].counts.connections, 1);
}

#[tokio::test]
async fn a_clock_that_was_put_back_does_not_make_us_deaf() {
    let mut fake = Fake::start().await;
    let clock = Set::at(9_000_000);
    let options = Options { clock: clock.clone(), ..Options::default() };
    let (_pool, mut arrivals) = pool(std::slice::from_ref(&fake.url), options);
    drop(fake.subscribed().await);
    wait_for_subscriptions(&mut arrivals, 1).await;
    clock.to(5000);
    let mut peer = fake.connection().await;
    assert_eq!(since(&peer.expect("REQ").await), 4900);
}

#[tokio::test]
async fn a_relay_that_wants_to_know_who_reads_is_told_and_asked_again() {
    let mut fake = Fake::start().await;
    let (_pool, mut arrivals) = pool(std::slice::from_ref(&fake.url), with_keys());
    let mut peer = fake.connection().await;
    peer.expect("REQ").await;
    peer.say(json!(["CLOSED", "rialto", "auth-required: who"])).await;
    peer.say(json!(["AUTH", "c"])).await;
    let answer = peer.expect("AUTH").await;
    peer.say(json!(["OK", answer[1]["id"], true, ""])).await;
    peer.expect("REQ").await;
    peer.say(json!(["EOSE", "rialto"])).await;
    wait_for_subscriptions(&mut arrivals, 1).await;
}

#[tokio::test]
async fn a_copy_is_new_once_and_a_forged_one_never() {
    let (mut one, mut other) = (Fake::start().await, Fake::start().await);
    let (pool, mut arrivals) = pool(&[one.url.clone(), other.url.clone()], Options::default());
    let (mut first, mut second) = (one.subscribed().await, other.subscribed().await);
    wait_for_subscriptions(&mut arrivals, 2).await;
    let genuine = event("pay alice");
    let tampered = genuine.as_json().replace("alice", "mallo");
    first.say(json!(["EVENT", "rialto", serde_json::from_str::<Value>(&tampered).unwrap()])).await;
    first.send(&genuine).await;
    assert_eq!(next_event(&mut arrivals).await, genuine);
    second.send(&genuine).await;
    assert!(matches!(within(arrivals.recv()).await, Some(Arrival::Repeat { id, .. }) if id == genuine.id));
    second.say(json!(["EVENT", "rialto", serde_json::from_str::<Value>(&tampered).unwrap()])).await;
    let last = event("last");
    second.send(&last).await;
    assert_eq!(next_event(&mut arrivals).await, last);
    assert_eq!(pool.status().iter().map(|relay| relay.counts.forged).collect::<Vec<_>>(), [1, 1]);
}

#[tokio::test]
async fn nonsense_is_survived() {
    let mut fake = Fake::start().await;
    let (_pool, mut arrivals) = pool(std::slice::from_ref(&fake.url), Options::default());
    let mut peer = fake.subscribed().await;
    for nonsense in [
        json!([]),
        json!({}),
        json!(["EVENT"]),
        json!(["EVENT", "rialto", null]),
        json!(["EVENT", "rialto", { "id": 1 }]),
        json!(["EVENT", "q99", event("x")]),
        json!(["EVENT", "\"]", event("x")]),
        json!(["EOSE", "rialto"]),
        json!(["EOSE", "q7"]),
        json!(["OK", "00".repeat(32), true, ""]),
        json!(["OK", "00".repeat(32), false, "auth-required: x"]),
        json!(["CLOSED", "q7", "auth-required: x"]),
        json!(["AUTH", ""]),
        json!(["AUTH", 7]),
        json!([[[["EVENT"]]]]),
    ] {
        peer.say(nonsense).await;
    }
    let genuine = event("still here");
    peer.send(&genuine).await;
    assert_eq!(next_event(&mut arrivals).await, genuine);
}

/// Many events by one author.
fn many(count: usize) -> Vec<Event> {
    let keys = Keys::generate();
    let one = |number: usize| {
        sign(&keys, UnsignedEvent::new(keys.public_key(), Timestamp::now(), KIND, [], number.to_string()))
    };
    (0..count).map(one).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_consumer_gets_everything() {
    const COUNT: usize = 10_000;
    let mut fake = Fake::start().await;
    let (_pool, mut arrivals) = pool(std::slice::from_ref(&fake.url), Options::default());
    let mut peer = fake.subscribed().await;
    let events = many(COUNT);
    let sending = tokio::spawn(async move {
        for event in &events {
            peer.send(event).await;
        }
        peer
    });
    let mut seen = HashSet::new();
    while seen.len() < COUNT {
        let event = next_event(&mut arrivals).await;
        assert!(seen.insert(event.id), "nothing comes twice");
        if seen.len() % 100 == 0 {
            tokio::task::yield_now().await;
        }
    }
    within(sending).await.unwrap();
}

#[tokio::test]
async fn what_nobody_has_taken_yet_outlives_its_connection() {
    // More than fit into the inbox.
    let events = many(1100);
    let mut fake = Fake::start().await;
    let (pool, mut arrivals) = pool(std::slice::from_ref(&fake.url), Options::default());
    let mut peer = fake.subscribed().await;
    for event in &events {
        peer.send(event).await;
    }
    // The inbox is full when one is held: nothing else is read, so the pool notices the end by writing alone.
    within(async {
        while arrivals.len() < arrivals.max_capacity() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    drop(peer);
    while pool.status()[0].counts.connections < 2 {
        pool.publish(&event("x"));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let mut peer = fake.connection().await;
    let again = events.clone();
    let sending = tokio::spawn(async move {
        for event in &again {
            peer.send(event).await;
        }
        peer.say(json!(["EOSE", "rialto"])).await;
        peer
    });
    let mut seen = HashSet::new();
    while seen.len() < events.len() {
        let event = next_event(&mut arrivals).await;
        assert!(seen.insert(event.id), "nothing comes twice");
    }
    within(sending).await.unwrap();
}
