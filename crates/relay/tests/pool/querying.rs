//! Queries end, whatever the relays do.

use std::time::Duration;

use nostr::prelude::{Filter, RelayUrl};
use rialto_relay::pool::Options;
use serde_json::json;
use tokio::time::Instant;

use crate::fake::{Fake, KIND, event, pool, with_keys, within};

fn filters() -> [Filter; 1] {
    [Filter::new().kind(KIND)]
}

const LONG: Duration = Duration::from_secs(60);

#[tokio::test]
async fn each_event_comes_once_and_the_end_when_all_have_answered() {
    let (mut one, mut other) = (Fake::start().await, Fake::start().await);
    let (pool, _arrivals) = pool(&[one.url.clone(), other.url.clone()], Options::default());
    let (mut first, mut second) = (one.subscribed().await, other.subscribed().await);
    let query = pool.query(&filters(), LONG);
    let (a, b) = (event("a"), event("b"));
    for (peer, events) in [(&mut first, vec![&a, &b]), (&mut second, vec![&b])] {
        let name = peer.expect("REQ").await[1].clone();
        for event in events {
            peer.say(json!(["EVENT", name, event])).await;
        }
        peer.say(json!(["EOSE", name])).await;
        assert_eq!(peer.expect("CLOSE").await[1], name);
    }
    let mut found: Vec<String> = within(query.all()).await.into_iter().map(|event| event.content).collect();
    found.sort();
    assert_eq!(found, ["a", "b"]);
}

#[tokio::test]
async fn a_refused_query_ends_and_so_does_one_whose_relay_goes_away() {
    let mut fake = Fake::start().await;
    let (pool, _arrivals) = pool(std::slice::from_ref(&fake.url), Options::default());
    let mut peer = fake.subscribed().await;
    let query = pool.query(&filters(), LONG);
    let name = peer.expect("REQ").await[1].clone();
    peer.say(json!(["CLOSED", name, "error: too many"])).await;
    assert!(within(query.all()).await.is_empty());
    let query = pool.query(&filters(), LONG);
    peer.expect("REQ").await;
    drop(peer);
    assert!(within(query.all()).await.is_empty());
}

#[tokio::test]
async fn a_query_ends_in_time_when_nobody_answers_and_the_relay_is_told_to_stop() {
    let mut fake = Fake::start().await;
    let (pool, _arrivals) = pool(std::slice::from_ref(&fake.url), Options::default());
    let mut peer = fake.subscribed().await;
    let began = Instant::now();
    assert!(within(pool.query(&filters(), Duration::from_millis(100)).all()).await.is_empty());
    assert!(began.elapsed() < Duration::from_secs(5));
    let name = peer.expect("REQ").await[1].clone();
    assert_eq!(peer.expect("CLOSE").await[1], name);
    // What it still sends is not answered each time: the next thing said is the next query.
    for _ in 0..3 {
        peer.say(json!(["EVENT", name, event("late")])).await;
    }
    peer.say(json!(["EOSE", name])).await;
    let query = pool.query(&filters(), LONG);
    let next = peer.expect("REQ").await[1].clone();
    peer.say(json!(["EOSE", next])).await;
    assert!(within(query.all()).await.is_empty());
}

#[tokio::test]
async fn relays_that_are_not_there_are_not_waited_for() {
    let nobody = RelayUrl::parse("ws://127.0.0.1:1").unwrap();
    let (pool, _arrivals) = pool(&[nobody], Options::default());
    assert!(within(pool.query(&filters(), LONG).all()).await.is_empty());
    pool.stop(Duration::ZERO).await;
    assert!(within(pool.query(&filters(), Duration::from_millis(100)).all()).await.is_empty());
}

#[tokio::test]
async fn a_query_waits_for_authentication_but_not_for_ever() {
    let mut fake = Fake::start().await;
    let (pool, _arrivals) = pool(std::slice::from_ref(&fake.url), with_keys());
    let mut peer = fake.subscribed().await;
    let query = pool.query(&filters(), LONG);
    let name = peer.expect("REQ").await[1].clone();
    peer.say(json!(["AUTH", "c"])).await;
    peer.say(json!(["CLOSED", name, "auth-required: who"])).await;
    let answer = peer.expect("AUTH").await;
    peer.say(json!(["OK", answer[1]["id"], true, ""])).await;
    assert_eq!(peer.expect("REQ").await[1], name);
    peer.say(json!(["CLOSED", name, "auth-required: still"])).await;
    assert!(within(query.all()).await.is_empty());
}

#[tokio::test]
async fn a_relay_that_never_stops_is_stopped() {
    let mut fake = Fake::start().await;
    let (pool, _arrivals) = pool(std::slice::from_ref(&fake.url), Options::default());
    let peer = fake.subscribed().await;
    let mut query = pool.query(&filters(), LONG);
    let long = event(&"x".repeat(400_000));
    let flood = tokio::spawn(async move {
        let mut peer = peer;
        let name = peer.expect("REQ").await[1].clone();
        let text = json!(["EVENT", name, long]).to_string();
        for _ in 0..100 {
            peer.say_text(&text).await;
        }
        assert_eq!(peer.expect("CLOSE").await[1], name);
        peer
    });
    assert!(within(query.next()).await.is_some());
    assert!(within(query.next()).await.is_none(), "the same again, until it was enough");
    within(flood).await.unwrap();
}
