//! Who is there: NIP-42 authentication, and NIP-70 events that only their author may publish.

use nostr::key::Keys;
use rialto_relay::embedded::{Options, Relay};
use serde_json::json;

use crate::peer::{Draft, Peer, id, now, start};

#[tokio::test]
async fn a_signed_challenge_proves_a_key() {
    let relay = start().await;
    let keys = Keys::generate();
    let port = relay.address().port();
    let names = [format!("127.0.0.1:{port}"), format!("127.0.0.1:{port}/"), format!("localhost:{port}")];
    for name in names {
        let mut peer = Peer::connect(&relay).await;
        assert_eq!(peer.authenticate(&keys, &format!("ws://{name}")).await, (true, String::new()), "{name}");
    }
    let mut one = Peer::connect(&relay).await;
    let other = Peer::connect(&relay).await;
    assert_ne!(one.challenge, other.challenge);
    for wrong in ["ws://relay.example.com", "wss://127.0.0.1", "nonsense", ""] {
        let (accepted, why) = one.authenticate(&keys, wrong).await;
        assert!(!accepted && why.starts_with("invalid: "), "{wrong}: {why}");
    }
    let url = relay.url();
    let good = |peer: &Peer| Draft::new(22242).tag(&["relay", &url]).tag(&["challenge", &peer.challenge]);
    let wrong = [
        good(&other).sign(&keys),
        good(&one).at(now() - 700).sign(&keys),
        good(&one).at(now() + 700).sign(&keys),
        Draft::new(1).tag(&["relay", &url]).tag(&["challenge", &one.challenge]).sign(&keys),
        Draft::new(22242).tag(&["relay", &url]).sign(&keys),
        Draft::new(22242).tag(&["challenge", &one.challenge]).sign(&keys),
    ];
    for event in wrong {
        one.send(json!(["AUTH", event])).await;
        let answer = one.next().await;
        assert_eq!((&answer[0], &answer[2]), (&json!("OK"), &json!(false)), "{answer}");
    }
    let mut forged = serde_json::to_value(good(&one).sign(&keys)).unwrap();
    forged["pubkey"] = json!(Keys::generate().public_key().to_hex());
    one.send(json!(["AUTH", forged])).await;
    assert_eq!(one.next().await[2], false);
    // It is a secret between the two of us, so it is never passed on.
    let event = good(&one).sign(&keys);
    one.refuse(&event, "invalid: ").await;
}

#[tokio::test]
async fn a_relay_may_serve_only_those_it_knows() {
    let options =
        Options { require_auth: true, url: Some("wss://relay.example.com/".to_owned()), ..Options::default() };
    let relay = Relay::start(options).await.unwrap();
    let keys = Keys::generate();
    let mut peer = Peer::connect(&relay).await;
    let event = Draft::note("hello").sign(&keys);
    peer.refuse(&event, "auth-required: ").await;
    for word in ["REQ", "COUNT"] {
        peer.send(json!([word, "x", {}])).await;
        let answer = peer.next().await;
        assert_eq!((&answer[0], &answer[1]), (&json!("CLOSED"), &json!("x")));
        assert!(answer[2].as_str().unwrap().starts_with("auth-required: "));
    }
    assert!(peer.authenticate(&keys, "wss://relay.example.com").await.0);
    peer.accept(&event).await;
    assert_eq!(peer.find(json!({})).await, [id(&event)]);
}

#[tokio::test]
async fn protected_events_are_taken_from_their_author_only() {
    let relay = start().await;
    let keys = Keys::generate();
    let mut peer = Peer::connect(&relay).await;
    let event = Draft::note("mine").tag(&["-"]).sign(&keys);
    peer.refuse(&event, "auth-required: ").await;
    assert!(peer.authenticate(&Keys::generate(), &relay.url()).await.0);
    peer.refuse(&event, "restricted: ").await;
    assert!(peer.authenticate(&keys, &relay.url()).await.0);
    peer.accept(&event).await;
}

#[tokio::test]
async fn one_connection_proves_a_bounded_number_of_keys() {
    let relay = start().await;
    let mut peer = Peer::connect(&relay).await;
    for _ in 0..64 {
        assert!(peer.authenticate(&Keys::generate(), &relay.url()).await.0);
    }
    let (accepted, why) = peer.authenticate(&Keys::generate(), &relay.url()).await;
    assert!(!accepted && why.starts_with("restricted: "));
}
