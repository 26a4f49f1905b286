//! What filters find: every field, order and limit, COUNT (NIP-45) and search (NIP-50).

use nostr::event::Event;
use nostr::key::Keys;
use serde_json::{Value, json};

use crate::peer::{Draft, Peer, id, now, start};

#[tokio::test]
async fn every_field_of_a_filter_counts() {
    let relay = start().await;
    let mut peer = Peer::connect(&relay).await;
    let (alice, bob) = (Keys::generate(), Keys::generate());
    let (a, b) = (alice.public_key().to_hex(), bob.public_key().to_hex());
    let base = now() - 1000;
    let events: Vec<Event> = vec![
        Draft::note("0").at(base).sign(&alice),
        Draft::note("1").at(base + 1).tag(&["t", "x"]).sign(&bob),
        Draft::new(7).content("2").at(base + 2).tag(&["t", "x"]).tag(&["p", &a]).sign(&bob),
        Draft::new(7).content("3").at(base + 3).tag(&["t", "y", "x"]).tag(&["T", "x"]).sign(&alice),
        Draft::new(9000).content("4").at(base + 4).tag(&["tt", "x"]).tag(&["t"]).sign(&alice),
    ];
    for event in &events {
        peer.accept(event).await;
    }
    let all = [4, 3, 2, 1, 0];
    let cases: Vec<(Value, Vec<usize>)> = vec![
        (json!({}), all.to_vec()),
        (json!({ "ids": [id(&events[0]), id(&events[3]), "00".repeat(32)] }), vec![3, 0]),
        (json!({ "ids": [id(&events[0]), id(&events[3])], "kinds": [7] }), vec![3]),
        (json!({ "ids": [id(&events[0]), id(&events[3])], "limit": 1 }), vec![3]),
        (json!({ "ids": [] }), vec![]),
        (json!({ "authors": [a] }), vec![4, 3, 0]),
        (json!({ "authors": [a, b, b] }), all.to_vec()),
        (json!({ "kinds": [1, 9000] }), vec![4, 1, 0]),
        (json!({ "kinds": [] }), vec![]),
        (json!({ "kinds": [1, 7], "authors": [b] }), vec![2, 1]),
        (json!({ "#t": ["x"] }), vec![2, 1]),
        (json!({ "#t": ["x", "y"] }), vec![3, 2, 1]),
        (json!({ "#t": ["x"], "#p": [a] }), vec![2]),
        (json!({ "#T": ["x"] }), vec![3]),
        (json!({ "#t": [] }), vec![]),
        (json!({ "#q": ["x"] }), vec![]),
        (json!({ "since": base + 3 }), vec![4, 3]),
        (json!({ "until": base + 1 }), vec![1, 0]),
        (json!({ "since": base + 1, "until": base + 3, "kinds": [7] }), vec![3, 2]),
        (json!({ "since": base + 3, "until": base + 1 }), vec![]),
        (json!({ "limit": 2 }), vec![4, 3]),
        (json!({ "limit": 0 }), vec![]),
        (json!({ "kinds": [1, 7], "limit": 3 }), vec![3, 2, 1]),
        (json!({ "until": 18_446_744_073_709_551_615_u64 }), all.to_vec()),
    ];
    for (filter, expected) in cases {
        let expected: Vec<String> = expected.into_iter().map(|index| id(&events[index])).collect();
        assert_eq!(peer.find(filter.clone()).await, expected, "{filter}");
        // Live events go another way, which must find the same.
        if filter.get("limit").is_none() {
            assert_live(&relay, &filter, &expected).await;
        }
    }
    let several = [json!({ "kinds": [1], "limit": 1 }), json!({ "#p": [a] }), json!({ "#t": ["x"], "limit": 1 })];
    assert_eq!(peer.open("several", &several).await, [id(&events[2]), id(&events[1])]);
}

/// Lets the same events arrive again at an empty relay while somebody waits for them.
async fn assert_live(stored: &rialto_relay::embedded::Relay, filter: &Value, expected: &[String]) {
    let relay = start().await;
    let mut source = Peer::connect(stored).await;
    source.send(json!(["REQ", "all", {}])).await;
    let mut reader = Peer::connect(&relay).await;
    reader.open("live", std::slice::from_ref(filter)).await;
    let mut writer = Peer::connect(&relay).await;
    loop {
        let message = source.next().await;
        if message[0] == "EOSE" {
            break;
        }
        writer.send(json!(["EVENT", message[2]])).await;
        assert_eq!(writer.next().await[2], true);
    }
    for id in expected {
        assert_eq!(&reader.receive("live").await, id, "{filter}");
    }
    reader.expect_silence().await;
}

#[tokio::test]
async fn newest_first_and_of_the_same_second_the_lowest_id() {
    let relay = start().await;
    let mut peer = Peer::connect(&relay).await;
    let keys = Keys::generate();
    let base = now() - 100;
    let draft = |number: u16| {
        Draft::new([1, 2, 4][usize::from(number % 3)]).content(&number.to_string()).at(base + u64::from(number % 5))
    };
    let mut events: Vec<Event> = (0..60).map(|number| draft(number).sign(&keys)).collect();
    events.sort_by_key(id);
    for event in &events {
        peer.accept(event).await;
    }
    events.sort_by_key(|event| (std::cmp::Reverse(event.created_at.as_secs()), id(event)));
    let expected: Vec<String> = events.iter().map(id).collect();
    assert_eq!(peer.find(json!({})).await, expected);
    assert_eq!(peer.find(json!({ "kinds": [1, 2, 4] })).await, expected);
    assert_eq!(peer.find(json!({ "kinds": [1, 2, 4], "limit": 7 })).await, expected[..7]);
    assert_eq!(peer.open("two", &[json!({ "kinds": [1, 2] }), json!({ "kinds": [4] })]).await, expected);
}

#[tokio::test]
async fn counts_count_each_event_once() {
    let relay = start().await;
    let mut peer = Peer::connect(&relay).await;
    let keys = Keys::generate();
    for number in 0..10 {
        peer.accept(&Draft::new(1 + number % 2).content(&number.to_string()).sign(&keys)).await;
    }
    assert_eq!(peer.count(&[json!({})]).await, 10);
    assert_eq!(peer.count(&[json!({ "kinds": [1] })]).await, 5);
    assert_eq!(peer.count(&[json!({ "kinds": [1] }), json!({ "kinds": [1, 2] })]).await, 10);
    assert_eq!(peer.count(&[json!({ "kinds": [3] })]).await, 0);
}

#[tokio::test]
async fn search_wants_every_word_somewhere() {
    let relay = start().await;
    let mut peer = Peer::connect(&relay).await;
    let keys = Keys::generate();
    let base = now() - 100;
    let weather = Draft::note("Weather in ZÜRICH, today").at(base).tag(&["t", "Forecast"]).sign(&keys);
    let trains = Draft::note("Trains from Zürich").at(base + 1).tag(&["summary", "see https://a.b/c"]).sign(&keys);
    peer.accept(&weather).await;
    peer.accept(&trains).await;
    let cases: Vec<(&str, Vec<&Event>)> = vec![
        ("zürich", vec![&trains, &weather]),
        ("weather zürich", vec![&weather]),
        ("weather trains", vec![]),
        ("FORECAST", vec![&weather]),
        ("summary", vec![]),
        ("language:en trains", vec![&trains]),
        ("https://a.b/c", vec![&trains]),
        ("", vec![&trains, &weather]),
    ];
    for (words, expected) in cases {
        let expected: Vec<String> = expected.into_iter().map(id).collect();
        assert_eq!(peer.find(json!({ "search": words })).await, expected, "{words}");
    }
    assert_eq!(peer.count(&[json!({ "search": "zürich", "kinds": [1] })]).await, 2);
    peer.open("live", &[json!({ "search": "new" })]).await;
    peer.send(json!(["EVENT", Draft::note("brand NEW").sign(&keys)])).await;
    let answers = [peer.next().await, peer.next().await];
    assert!(answers.iter().any(|answer| answer[0] == "EVENT"), "{answers:?}");
}
