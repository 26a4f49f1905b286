//! Events on their way out: every answer of a relay, no answer, and relays that hold up nobody but themselves.

use std::time::Duration;

use nostr::prelude::RelayUrl;
use rialto_relay::embedded::{self, Limits, Relay};
use rialto_relay::pool::Options;
use rialto_relay::verdict::Verdict;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::time::Instant;

use crate::fake::{Fake, event, pool, wait_for_subscriptions, watches, with_keys, within};

fn url(relay: &Relay) -> RelayUrl {
    RelayUrl::parse(&relay.url()).unwrap()
}

#[tokio::test]
async fn every_answer_becomes_its_verdict() {
    let mut fake = Fake::start().await;
    let (pool, _arrivals) = pool(std::slice::from_ref(&fake.url), Options::default());
    let mut peer = fake.subscribed().await;
    let cases = [
        (true, "", Verdict::Accepted),
        (false, "duplicate: have it", Verdict::Accepted),
        (false, "invalid: no", Verdict::Refused("invalid: no".into())),
        (false, "blocked: you", Verdict::Refused("blocked: you".into())),
        (true, "so be it", Verdict::Accepted),
        (false, "restricted: members", Verdict::Refused("restricted: members".into())),
        (false, "auth-required: who", Verdict::Refused("auth-required: who".into())),
        (false, "pow: 20 bits", Verdict::Work { bits: Some(20), message: "pow: 20 bits".into() }),
        (false, "nonsense", Verdict::Refused("nonsense".into())),
    ];
    for (accepted, words, expected) in cases {
        let publication = pool.publish(&event(words));
        peer.judge(accepted, words).await;
        if words.starts_with("auth") {
            // Without a challenge there is nothing to say; it is tried once more all the same.
            peer.judge(accepted, words).await;
        }
        let report = within(publication.finished()).await;
        assert_eq!(report.verdicts[0].1, expected, "{words}");
    }
}

#[tokio::test]
async fn slow_down_and_trouble_are_followed_by_the_same_event_again() {
    for words in ["rate-limited: slow down", "error: disk"] {
        let mut fake = Fake::start().await;
        let (pool, _arrivals) = pool(std::slice::from_ref(&fake.url), Options::default());
        let mut peer = fake.subscribed().await;
        let publication = pool.publish(&event("x"));
        let first = peer.judge(false, words).await;
        let began = Instant::now();
        assert_eq!(peer.judge(true, "").await, first);
        assert!(began.elapsed() >= Duration::from_millis(700), "{words}: {:?}", began.elapsed());
        assert_eq!(within(publication.finished()).await.accepted, 1);
    }
}

#[tokio::test]
async fn a_relay_that_says_nothing_is_given_up_in_time() {
    let mut fake = Fake::start().await;
    let options = Options { give_up: Duration::from_millis(300), ..Options::default() };
    let (pool, _arrivals) = pool(std::slice::from_ref(&fake.url), options);
    let mut peer = fake.subscribed().await;
    let (publication, began) = (pool.publish(&event("x")), Instant::now());
    peer.expect("EVENT").await;
    let report = within(publication.settled()).await;
    assert!(matches!(report.verdicts[0].1, Verdict::GaveUp(_)), "{report:?}");
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn a_relay_that_is_never_there_is_given_up_in_time() {
    let nobody = RelayUrl::parse("ws://127.0.0.1:1").unwrap();
    let options = Options { give_up: Duration::from_millis(300), ..Options::default() };
    let (pool, _arrivals) = pool(&[nobody], options);
    let report = within(pool.publish(&event("x")).settled()).await;
    assert!(matches!(report.verdicts[0].1, Verdict::GaveUp(_)), "{report:?}");
}

#[tokio::test]
async fn what_waits_when_the_pool_stops_is_settled() {
    let mut fake = Fake::start().await;
    let (pool, _arrivals) = pool(std::slice::from_ref(&fake.url), Options::default());
    let mut peer = fake.subscribed().await;
    let waiting = pool.publish(&event("x"));
    peer.expect("EVENT").await;
    pool.stop(Duration::from_millis(1)).await;
    let late = pool.publish(&event("y"));
    for publication in [waiting, late] {
        let report = within(publication.finished()).await;
        assert_eq!(report.verdicts[0].1, Verdict::Stopped, "{report:?}");
    }
}

#[tokio::test]
async fn an_event_that_was_not_acknowledged_is_sent_again_on_the_next_connection() {
    let mut fake = Fake::start().await;
    let (pool, _arrivals) = pool(std::slice::from_ref(&fake.url), Options::default());
    let mut peer = fake.subscribed().await;
    let publication = pool.publish(&event("x"));
    let first = peer.expect("EVENT").await;
    drop(peer);
    let mut peer = fake.subscribed().await;
    assert_eq!(peer.judge(true, "").await, first[1]);
    assert_eq!(within(publication.settled()).await.accepted, 1);
}

#[tokio::test]
async fn a_relay_that_wants_to_know_who_writes_is_told_and_gets_the_event_again() {
    let mut fake = Fake::start().await;
    let options = with_keys();
    let me = options.keys.as_ref().unwrap().public_key().to_hex();
    let (pool, _arrivals) = pool(std::slice::from_ref(&fake.url), options);
    let mut peer = fake.subscribed().await;
    let publication = pool.publish(&event("x"));
    let event = peer.expect("EVENT").await[1].clone();
    peer.say(json!(["AUTH", "prove it"])).await;
    peer.say(json!(["OK", event["id"], false, "auth-required: who are you"])).await;
    let answer = peer.expect("AUTH").await[1].clone();
    assert_eq!((&answer["pubkey"], &answer["kind"]), (&json!(me), &json!(22242)));
    assert_eq!(answer["tags"], json!([["challenge", "prove it"], ["relay", fake.url.as_str()]]));
    peer.say(json!(["OK", answer["id"], true, ""])).await;
    assert_eq!(peer.judge(true, "").await, event);
    assert_eq!(within(publication.settled()).await.accepted, 1);
}

#[tokio::test]
async fn dead_deaf_and_silent_relays_delay_nobody_else() {
    // One that nobody is at, one that never completes the handshake, one that reads nothing after it.
    let nobody = RelayUrl::parse("ws://127.0.0.1:1").unwrap();
    let mute = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mute_url = RelayUrl::parse(&format!("ws://{}", mute.local_addr().unwrap())).unwrap();
    let deaf = Fake::start().await;
    let relays = [Relay::start(embedded::Options::default()).await.unwrap(), {
        Relay::start(embedded::Options::default()).await.unwrap()
    }];
    let urls = [nobody, mute_url, deaf.url.clone(), url(&relays[0]), url(&relays[1])];
    let (pool, mut arrivals) = pool(&urls, Options::default());
    wait_for_subscriptions(&mut arrivals, 2).await;
    let drain = tokio::spawn(async move { while arrivals.recv().await.is_some() {} });
    let began = Instant::now();
    let long = "x".repeat(50_000);
    for round in 0..20 {
        let publication = pool.publish(&event(&format!("{round} {long}")));
        assert!(within(publication.settled()).await.accepted >= 2);
    }
    assert!(began.elapsed() < Duration::from_secs(9), "{:?}", began.elapsed());
    drain.abort();
}

#[tokio::test]
async fn what_a_relay_says_it_does_not_take_is_not_sent() {
    let limits = Limits { max_message_bytes: 2000, ..Limits::default() };
    let relay = Relay::start(embedded::Options { limits, ..embedded::Options::default() }).await.unwrap();
    let (pool, _arrivals) = pool(&[url(&relay)], Options::default());
    assert!(pool.wait(Duration::from_secs(10), |relays| relays.iter().all(|relay| relay.limits.is_some())).await);
    assert_eq!(pool.message_limit(), None, "so little that nothing is cut to it");
    let report = within(pool.publish(&event(&"x".repeat(2000))).settled()).await;
    assert_eq!(report.verdicts[0].1, Verdict::TooLarge { limit: 2000 });
    assert_eq!(within(pool.publish(&event("x")).settled()).await.accepted, 1);
}

#[tokio::test]
async fn a_real_relay_that_demands_authentication_is_written_to_and_read_from() {
    let options = embedded::Options { require_auth: true, ..embedded::Options::default() };
    let relay = Relay::start(options).await.unwrap();
    let (pool, mut arrivals) = pool(&[url(&relay)], with_keys());
    let event = event("hello");
    assert_eq!(within(pool.publish(&event).settled()).await.accepted, 1);
    assert_eq!(crate::fake::next_event(&mut arrivals).await, event);
    // A pool that is asked before the relay knows who it is finds all the same.
    let (fresh, _arrivals) = crate::fake::pool(&[url(&relay)], with_keys());
    let filters = [watches().remove(0).filter];
    assert_eq!(within(fresh.query(&filters, Duration::from_secs(10)).all()).await, [event]);
}
