//! NIP-01: publishing, subscribing, and the limits of both.

use nostr::key::Keys;
use rialto_relay::embedded::{Limits, Options, Relay};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use crate::peer::{Draft, Peer, id, now, start, start_with};

#[tokio::test]
async fn what_is_published_is_found_and_delivered() {
    let relay = start().await;
    let keys = Keys::generate();
    let mut reader = Peer::connect(&relay).await;
    let mut writer = Peer::connect(&relay).await;
    let first = Draft::note("first").at(now() - 10).sign(&keys);
    writer.accept(&first).await;
    assert_eq!(reader.open("all", &[json!({})]).await, [id(&first)]);
    let second = Draft::note("second").sign(&keys);
    writer.accept(&second).await;
    assert_eq!(reader.receive("all").await, id(&second));
    reader.send(json!(["CLOSE", "all"])).await;
    reader.expect_silence().await;
    writer.accept(&Draft::note("third").sign(&keys)).await;
    reader.expect_silence().await;
    relay.stop().await;
}

#[tokio::test]
async fn events_are_passed_on_letter_by_letter() {
    let relay = start().await;
    let mut reader = Peer::connect(&relay).await;
    let mut writer = Peer::connect(&relay).await;
    reader.open("s\"ub", &[json!({ "limit": 0 })]).await;
    let event = Draft::note("tab\t \u{1f980} \u{7f} \u{2028} \" \\ /").tag(&["x", "\u{0}"]).sign(&Keys::generate());
    let fields: Value = serde_json::to_value(&event).unwrap();
    // Another order of fields, spaces, and escapes that nobody needs.
    let content = fields["content"].to_string().replace('/', "\\/");
    let text = format!(
        "{{ \"sig\":{}, \"content\":{content},\"tags\":{} ,\"kind\":1,\"created_at\":{},\"pubkey\":{},\"id\":{}}}",
        fields["sig"], fields["tags"], fields["created_at"], fields["pubkey"], fields["id"]
    );
    writer.send_text(&format!("[\"EVENT\", {text} ]")).await;
    assert_eq!(writer.next().await, json!(["OK", id(&event), true, ""]));
    assert_eq!(reader.next_text().await, format!("[\"EVENT\",\"s\\\"ub\",{text}]"));
    writer.send(json!(["REQ", "stored", {}])).await;
    assert_eq!(writer.next_text().await, format!("[\"EVENT\",\"stored\",{text}]"));
}

#[tokio::test]
async fn what_the_signature_does_not_cover_is_not_passed_on() {
    let relay = start().await;
    let mut peer = Peer::connect(&relay).await;
    let keys = Keys::generate();
    let changes: [fn(&mut Value); 3] = [
        |fields| fields["note"] = json!("not signed"),
        |fields| fields["sig"] = json!(fields["sig"].as_str().unwrap().to_uppercase()),
        |fields| fields["id"] = json!(fields["id"].as_str().unwrap().to_uppercase()),
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let event = Draft::note(&number.to_string()).sign(&keys);
        let mut fields = serde_json::to_value(&event).unwrap();
        change(&mut fields);
        peer.send(json!(["EVENT", fields])).await;
        assert_eq!(peer.next().await, json!(["OK", id(&event), true, ""]));
        peer.send(json!(["REQ", "one", { "ids": [id(&event)] }])).await;
        assert_eq!(peer.next().await, json!(["EVENT", "one", event]));
        assert_eq!(peer.next().await[0], "EOSE");
    }
    let event = Draft::note("lines").sign(&keys);
    let text = serde_json::to_string_pretty(&event).unwrap();
    peer.send_text(&format!("[\"EVENT\",{text}]")).await;
    assert_eq!(peer.next().await[2], true);
    peer.send(json!(["REQ", "one", { "ids": [id(&event)] }])).await;
    assert!(!peer.next_text().await.contains('\n'));
}

#[tokio::test]
async fn an_event_comes_once_for_each_subscription_that_wants_it() {
    let relay = start().await;
    let mut peer = Peer::connect(&relay).await;
    let keys = Keys::generate();
    let author = keys.public_key().to_hex();
    peer.open("two filters", &[json!({ "kinds": [1] }), json!({ "authors": [author], "#t": ["x"] })]).await;
    peer.open("other", &[json!({ "#t": ["x", "y"] })]).await;
    peer.open("none", &[json!({ "#t": ["z"], "kinds": [1] })]).await;
    let event = Draft::note("").tag(&["t", "x"]).tag(&["t", "y"]).tag(&["t", "x"]).sign(&keys);
    peer.send(json!(["EVENT", event])).await;
    let mut answers = [peer.next().await, peer.next().await, peer.next().await].map(|answer| answer[1].to_string());
    answers.sort();
    let mut expected = [format!("\"{}\"", id(&event)), "\"other\"".to_owned(), "\"two filters\"".to_owned()];
    expected.sort();
    assert_eq!(answers, expected);
    peer.expect_silence().await;
    assert_eq!(peer.open("two filters", &[json!({}), json!({ "kinds": [1] })]).await, [id(&event)]);
}

#[tokio::test]
async fn a_subscription_with_a_known_name_replaces_the_first() {
    let relay = start().await;
    let mut peer = Peer::connect(&relay).await;
    let keys = Keys::generate();
    peer.open("name", &[json!({ "kinds": [1] })]).await;
    peer.open("name", &[json!({ "kinds": [2] })]).await;
    peer.accept(&Draft::new(1).sign(&keys)).await;
    peer.expect_silence().await;
    let wanted = Draft::new(2).sign(&keys);
    peer.send(json!(["EVENT", wanted])).await;
    let answers = [peer.next().await, peer.next().await];
    assert!(answers.iter().any(|answer| answer[0] == "EVENT" && answer[1] == "name"), "{answers:?}");
}

#[tokio::test]
async fn duplicates_are_said_to_be_there_and_come_only_once() {
    let relay = start().await;
    let mut peer = Peer::connect(&relay).await;
    let event = Draft::note("again").sign(&Keys::generate());
    peer.accept(&event).await;
    peer.open("all", &[json!({ "limit": 0 })]).await;
    assert_eq!(peer.publish(&event).await, (true, "duplicate: already have this event".to_owned()));
    peer.expect_silence().await;
}

#[tokio::test]
async fn ephemeral_events_are_passed_on_and_forgotten() {
    let relay = start().await;
    let mut peer = Peer::connect(&relay).await;
    let mut reader = Peer::connect(&relay).await;
    reader.open("live", &[json!({ "kinds": [25910] })]).await;
    let event = Draft::new(25910).sign(&Keys::generate());
    peer.accept(&event).await;
    assert_eq!(reader.receive("live").await, id(&event));
    assert!(peer.find(json!({ "ids": [id(&event)] })).await.is_empty());
}

#[tokio::test]
async fn an_ephemeral_event_is_not_lost_when_its_subscription_is_replaced() {
    const EVENTS: usize = 300;
    let relay = start().await;
    let mut reader = Peer::connect(&relay).await;
    reader.open("live", &[json!({ "kinds": [25910] })]).await;
    let mut writer = Peer::connect(&relay).await;
    let mut missing = std::collections::HashSet::new();
    for number in 0..EVENTS {
        let event = Draft::new(25910).content(&number.to_string()).sign(&Keys::generate());
        missing.insert(id(&event));
        // The reader asks anew while the event is on its way, and has not read what came before.
        writer.send(json!(["EVENT", event])).await;
        reader.send(json!(["REQ", "live", { "kinds": [25910], "limit": 1 }, { "ids": [id(&event)] }])).await;
    }
    while !missing.is_empty() {
        let message = reader.next().await;
        if message[0] == "EVENT" {
            missing.remove(message[2]["id"].as_str().unwrap());
        }
    }
}

#[tokio::test]
async fn forged_events_are_refused() {
    let relay = start().await;
    let mut peer = Peer::connect(&relay).await;
    let keys = Keys::generate();
    let good = serde_json::to_value(Draft::note("genuine").tag(&["t", "x"]).sign(&keys)).unwrap();
    let other = serde_json::to_value(Draft::note("other").sign(&Keys::generate())).unwrap();
    let changes = [
        ("content", json!("forged"), "invalid: the id is wrong"),
        ("tags", json!([]), "invalid: the id is wrong"),
        ("created_at", json!(1), "invalid: the id is wrong"),
        ("kind", json!(7), "invalid: the id is wrong"),
        ("pubkey", other["pubkey"].clone(), "invalid: the id is wrong"),
        ("id", other["id"].clone(), "invalid: the id is wrong"),
        ("sig", other["sig"].clone(), "invalid: the signature is wrong"),
        ("sig", json!("00".repeat(64)), "invalid: the signature is wrong"),
        ("sig", json!("00"), "invalid: the event cannot be read"),
        ("tags", json!([[]]), "invalid: the event cannot be read"),
        ("tags", json!([[1]]), "invalid: the event cannot be read"),
        ("tags", json!([["t", null]]), "invalid: the event cannot be read"),
        ("kind", json!(65536), "invalid: the event cannot be read"),
        ("kind", json!(-1), "invalid: the event cannot be read"),
        ("created_at", json!(-1), "invalid: the event cannot be read"),
        ("created_at", json!(1.5), "invalid: the event cannot be read"),
        ("content", json!(null), "invalid: the event cannot be read"),
        ("pubkey", json!("zz".repeat(32)), "invalid: the event cannot be read"),
    ];
    for (field, value, why) in changes {
        let mut event = good.clone();
        event[field] = value;
        peer.send(json!(["EVENT", event])).await;
        let answer = peer.next().await;
        assert_eq!((&answer[0], &answer[1], &answer[2]), (&json!("OK"), &event["id"], &json!(false)), "{field}");
        assert!(answer[3].as_str().unwrap().starts_with(why), "{field}: {answer}");
    }
    assert_eq!(peer.count(&[json!({})]).await, 0);
    // A public key that is no point of the curve.
    let mut event = good;
    event["pubkey"] = json!("00".repeat(32));
    peer.send(json!(["EVENT", event])).await;
    assert_eq!(peer.next().await[2], false);
}

#[tokio::test]
async fn limits_are_kept_and_named() {
    let limits = Limits {
        max_event_bytes: 2000,
        max_tags: 3,
        max_subscriptions: 2,
        max_filters: 2,
        max_filter_values: 5,
        max_limit: 3,
        events_per_minute: Some(6),
        min_pow_difficulty: 1,
        ..Limits::default()
    };
    let relay = start_with(limits).await;
    let mut peer = Peer::connect(&relay).await;
    let keys = Keys::generate();
    let worked = |draft: &dyn Fn(usize) -> Draft| {
        let mut drafts = (0..).map(|number| draft(number).sign(&keys));
        drafts.find(|event| event.id.as_bytes()[0] < 128).unwrap()
    };
    let note = |number: usize| Draft::note(&number.to_string());
    // Too large events are not even counted.
    peer.refuse(&worked(&|n| Draft::note(&format!("{n}{}", "x".repeat(2000)))), "invalid: the event is larger").await;
    let tagged = worked(&|n| note(n).tag(&["a"]).tag(&["b"]).tag(&["c"]).tag(&["d"]));
    peer.refuse(&tagged, "invalid: more than 3 tags").await;
    peer.refuse(&worked(&|n| note(n).at(now() + 1000)), "invalid: created_at is too far").await;
    let lazy = (0..).map(|number| note(number).sign(&keys)).find(|event| event.id.as_bytes()[0] >= 128).unwrap();
    peer.refuse(&lazy, "pow: ").await;
    for number in [1000, 2000, 3000] {
        peer.accept(&worked(&|n| note(n + number))).await;
    }
    peer.refuse(&worked(&|n| note(n + 9000)), "rate-limited: ").await;

    let mut next = Peer::connect(&relay).await;
    next.accept(&worked(&|n| note(n + 4000))).await;
    assert_eq!(next.open("a", &[json!({ "limit": 100 })]).await.len(), 3);
    assert_eq!(next.count(&[json!({ "limit": 1 })]).await, 4);
    next.open("b", &[json!({ "kinds": [1, 2, 3] })]).await;
    let refusals = [
        (json!(["REQ", "c", {}]), "restricted: more than 2 subscriptions"),
        (json!(["REQ", "c", {}, {}, {}]), "invalid: more than 2 filters"),
        (json!(["REQ", "c", { "kinds": [1, 2, 3] }]), "restricted: more than 5 values"),
        (json!(["COUNT", "c", {}, {}, {}]), "invalid: more than 2 filters"),
        (json!(["REQ", "c", { "authors": ["x"] }]), "invalid: `authors`"),
        (json!(["REQ", "c", { "unknown": 1 }]), "unsupported: "),
        (json!(["COUNT", "c", 1]), "invalid: "),
    ];
    for (message, why) in refusals {
        next.send(message.clone()).await;
        let answer = next.next().await;
        assert_eq!((&answer[0], &answer[1]), (&json!("CLOSED"), &json!("c")), "{message}");
        assert!(answer[2].as_str().unwrap().starts_with(why), "{message}: {answer}");
    }
    // One under a known name is always possible.
    next.open("b", &[json!({ "kinds": [4] })]).await;
}

#[tokio::test]
async fn more_connections_than_allowed_are_turned_away() {
    let relay = start_with(Limits { max_connections: 2, ..Limits::default() }).await;
    let first = Peer::connect(&relay).await;
    let mut second = Peer::connect(&relay).await;
    let mut third = std::net::TcpStream::connect(relay.address()).unwrap();
    let answer = tokio::task::spawn_blocking(move || {
        let mut answer = String::new();
        std::io::Read::read_to_string(&mut third, &mut answer).map(|_| answer)
    });
    assert!(answer.await.unwrap().unwrap().starts_with("HTTP/1.1 503 "));
    second.expect_silence().await;
    drop(first);
    // Its place is free as soon as the relay has noticed.
    while tokio_tungstenite::client_async("ws://x/", tokio::net::TcpStream::connect(relay.address()).await.unwrap())
        .await
        .is_err()
    {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_stopped_relay_says_goodbye_and_frees_its_port() {
    let relay = start().await;
    let address = relay.address();
    assert_eq!(relay.url(), format!("ws://{address}"));
    let mut peer = Peer::connect(&relay).await;
    peer.open("all", &[json!({})]).await;
    let (_, last) = tokio::join!(relay.stop(), peer.next_frame());
    assert!(matches!(last, Some(Message::Close(_))), "{last:?}");
    let again = Relay::start(Options { listen: address, ..Options::default() }).await.unwrap();
    // Dropping ends everything as well, with or without a goodbye.
    let mut peer = Peer::connect(&again).await;
    drop(again);
    while let Some(Message::Close(_)) = peer.next_frame().await {}
    let taken = start().await;
    let error = Relay::start(Options { listen: taken.address(), ..Options::default() }).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_missed_or_doubled_between_stored_and_live() {
    let relay = start().await;
    let keys = Keys::generate();
    let mut writer = Peer::connect(&relay).await;
    let events: Vec<_> = (0..600).map(|number| Draft::note(&number.to_string()).sign(&keys)).collect();
    let mut ids: Vec<String> = events.iter().map(id).collect();
    ids.sort();
    let writing = tokio::spawn(async move {
        for event in &events {
            writer.accept(event).await;
        }
    });
    let mut readers = Vec::new();
    for _ in 0..20 {
        let mut reader = Peer::connect(&relay).await;
        readers.push(tokio::spawn(async move {
            reader.send(json!(["REQ", "all", { "kinds": [1] }])).await;
            let mut ids = Vec::new();
            while ids.len() < 600 {
                let answer = reader.next().await;
                if answer[0] == "EVENT" {
                    ids.push(answer[2]["id"].as_str().unwrap().to_owned());
                }
            }
            reader.send(json!(["CLOSE", "all"])).await;
            ids.sort();
            ids
        }));
    }
    writing.await.unwrap();
    for reader in readers {
        assert_eq!(reader.await.unwrap(), ids);
    }
}
