//! Clients that mean no good, or do not know better. Whatever they do, others are served.

use std::time::Duration;

use futures_util::SinkExt;
use nostr::key::Keys;
use rialto_relay::embedded::Limits;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use crate::peer::{Draft, Peer, id, start, start_with};

#[tokio::test]
async fn nonsense_gets_a_notice_and_the_connection_stays() {
    let relay = start().await;
    let mut peer = Peer::connect(&relay).await;
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let cases = [
        String::new(),
        " ".to_owned(),
        "{".to_owned(),
        "null".to_owned(),
        "[]".to_owned(),
        "[1]".to_owned(),
        "[\"WHAT\"]".to_owned(),
        "[\"EVENT\"]".to_owned(),
        "[\"EVENT\",1]".to_owned(),
        "[\"EVENT\",{}]".to_owned(),
        "[\"EVENT\",{},{}]".to_owned(),
        "[\"AUTH\",{}]".to_owned(),
        "[\"REQ\"]".to_owned(),
        "[\"REQ\",\"a\"]".to_owned(),
        "[\"REQ\",1,{}]".to_owned(),
        "[\"REQ\",\"\",{}]".to_owned(),
        format!("[\"REQ\",\"{}\",{{}}]", "x".repeat(65)),
        "[\"CLOSE\"]".to_owned(),
        "[\"CLOSE\",[]]".to_owned(),
        "[\"COUNT\",{}]".to_owned(),
        "[\"EVENT\",{\"id\":\"\\ud800\"}]".to_owned(),
        format!("[\"EVENT\",{deep}]"),
        deep.clone(),
        format!("[\"EVENT\",{{\"tags\":{deep}}}]"),
    ];
    for text in &cases {
        peer.send_text(text).await;
        let answer = peer.next().await;
        assert_eq!(answer[0], "NOTICE", "{text:.80}: {answer}");
        assert!(answer[1].as_str().unwrap().contains(": "), "{answer}");
    }
    peer.send_text(&format!("[\"REQ\",\"deep\",{{\"ids\":{deep}}}]")).await;
    assert_eq!(peer.next().await[0], "CLOSED");
    peer.socket.send(Message::binary(vec![0, 1, 255])).await.unwrap();
    assert_eq!(peer.next().await[0], "NOTICE");
    peer.send_text("[\"CLOSE\",\"never opened\"]").await;
    peer.expect_silence().await;
}

#[tokio::test]
async fn a_ping_is_answered() {
    let relay = start().await;
    let mut peer = Peer::connect(&relay).await;
    peer.socket.send(Message::Ping("abc".into())).await.unwrap();
    assert_eq!(peer.next_frame().await, Some(Message::Pong("abc".into())));
    peer.socket.send(Message::Pong("unasked".into())).await.unwrap();
    peer.expect_silence().await;
}

#[tokio::test]
async fn what_is_too_large_is_refused_in_words_as_long_as_that_is_possible() {
    let relay = start().await;
    let mut peer = Peer::connect(&relay).await;
    let keys = Keys::generate();
    let tags = (0..100_000).fold(Draft::note("tags"), |draft, _| draft.tag(&["t"]));
    let large = Draft::note(&"x".repeat(600_000)).sign(&keys);
    for event in [tags.sign(&keys), large, Draft::note(&"x".repeat(140_000)).sign(&keys)] {
        peer.refuse(&event, "invalid: the ").await;
    }
    peer.send(json!(["REQ", "long", { "#t": ["x".repeat(600_000)] }])).await;
    assert_eq!(peer.next().await[0], "CLOSED");
    peer.send_text(&"x".repeat(600_000)).await;
    assert_eq!(peer.next().await[0], "NOTICE");
    peer.expect_silence().await;
    // Beyond twice the limit there is only a goodbye.
    let mut sender = Peer::connect(&relay).await;
    // The relay may have hung up before all of it was sent.
    let _ = sender.socket.send(Message::text("x".repeat(8_000_000))).await;
    assert_eq!(sender.next().await[0], "NOTICE");
    let Some(Message::Close(Some(close))) = sender.next_frame().await else { panic!("no goodbye") };
    assert_eq!(close.code, CloseCode::Size);
    peer.expect_silence().await;
}

#[tokio::test]
async fn what_is_no_websocket_ends_the_connection_and_nothing_else() {
    let relay = start().await;
    let mut other = Peer::connect(&relay).await;
    let frames: [&[u8]; 7] = [
        // Not masked; reserved bits; an unknown operation; a fragmented ping; a ping that is too long; a continuation
        // of nothing; text that is no UTF-8.
        b"\x81\x02[]",
        b"\xf1\x82\0\0\0\0[]",
        b"\x83\x82\0\0\0\0[]",
        b"\x09\x80\0\0\0\0",
        b"\x89\xfe\x00\x7e\0\0\0\0",
        b"\x80\x82\0\0\0\0[]",
        b"\x81\x82\0\0\0\0\xff\xfe",
    ];
    for frame in frames {
        let mut peer = Peer::connect(&relay).await;
        peer.socket.get_mut().write_all(frame).await.unwrap();
        let mut rest = [0; 200];
        if frame[1] == 0xfe {
            peer.socket.get_mut().write_all(&[0; 126]).await.unwrap();
        }
        let ended = async { while peer.socket.get_mut().read(&mut rest).await.is_ok_and(|read| read > 0) {} };
        tokio::time::timeout(Duration::from_secs(20), ended).await.expect("the connection stays");
        other.expect_silence().await;
    }
}

#[tokio::test]
async fn ten_thousand_subscriptions_are_sixty_four() {
    let relay = start().await;
    let mut peer = Peer::connect(&relay).await;
    let mut answers = std::collections::BTreeMap::<String, usize>::new();
    for part in 0..100 {
        for number in 0..100 {
            let message = json!(["REQ", format!("{part}-{number}"), { "kinds": [part] }]);
            peer.socket.feed(Message::text(message.to_string())).await.unwrap();
        }
        peer.socket.flush().await.unwrap();
        for _ in 0..100 {
            *answers.entry(peer.next().await[0].as_str().unwrap().to_owned()).or_default() += 1;
        }
    }
    assert_eq!(answers, [("CLOSED".to_owned(), 9936), ("EOSE".to_owned(), 64)].into());
}

#[tokio::test]
async fn who_does_not_read_is_cut_off_and_nobody_waits() {
    let limits = Limits { max_queue_bytes: 300_000, ..Limits::default() };
    let relay = start_with(limits).await;
    let mut slow = Peer::connect(&relay).await;
    slow.open("all", &[json!({})]).await;
    let mut other = Peer::connect(&relay).await;
    other.open("all", &[json!({ "limit": 0 })]).await;
    let mut writer = Peer::connect(&relay).await;
    let keys = Keys::generate();
    // What the system itself holds for a socket is up to four megabytes.
    for number in 0..70 {
        let event = Draft::new(20_001).content(&format!("{number}{}", "x".repeat(100_000))).sign(&keys);
        writer.accept(&event).await;
        assert_eq!(other.receive("all").await, id(&event));
    }
    let mut received = 0;
    while let Some(Message::Text(_)) = slow.next_frame().await {
        received += 1;
    }
    assert!((1..70).contains(&received), "{received} of 70 arrived");
}

#[tokio::test]
async fn who_asks_for_much_gets_it_at_its_own_pace() {
    let limits = Limits { max_queue_bytes: 300_000, ..Limits::default() };
    let relay = start_with(limits).await;
    let mut writer = Peer::connect(&relay).await;
    let keys = Keys::generate();
    for number in 0..60 {
        writer.accept(&Draft::note(&format!("{number}{}", "x".repeat(100_000))).sign(&keys)).await;
    }
    let mut reader = Peer::connect(&relay).await;
    reader.send(json!(["REQ", "all", {}])).await;
    // It does not read yet, and others go on.
    for number in 0..20 {
        writer.accept(&Draft::note(&number.to_string()).sign(&keys)).await;
    }
    let mut stored = 0;
    loop {
        match reader.next().await[0].as_str() {
            Some("EVENT") => stored += 1,
            Some("EOSE") => break,
            other => panic!("{other:?}"),
        }
    }
    assert!(stored >= 60, "{stored}");
}

#[tokio::test]
async fn a_flood_of_one_client_leaves_room_for_others() {
    let relay = start().await;
    let mut flood = Peer::connect(&relay).await;
    let keys = Keys::generate();
    let events: Vec<Value> = (0..500).map(|number| json!(Draft::note(&number.to_string()).sign(&keys))).collect();
    for event in &events {
        flood.socket.feed(Message::text(json!(["EVENT", event]).to_string())).await.unwrap();
    }
    flood.socket.flush().await.unwrap();
    let mut other = Peer::connect(&relay).await;
    other.expect_silence().await;
    for _ in &events {
        assert_eq!(flood.next().await[2], true);
    }
    // A subscription that vanished with its connection takes nothing with it.
    drop(flood);
    other.accept(&Draft::note("after").sign(&keys)).await;
}
