//! NIP-11 and the HTTP around it, spoken by hand.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use rialto_relay::embedded::{Limits, Options, Relay};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;

use crate::peer::{Peer, start};

/// Sends a request and returns everything that comes back.
async fn ask(address: SocketAddr, request: &str) -> String {
    let request = request.replace('\n', "\r\n");
    let exchange = move || {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    tokio::task::spawn_blocking(exchange).await.unwrap()
}

#[tokio::test]
async fn the_document_tells_the_limits() {
    let options = Options {
        name: "a \"name\"".to_owned(),
        url: Some("wss://relay.example.com".to_owned()),
        limits: Limits { max_subscriptions: 7, ..Limits::default() },
        ..Options::default()
    };
    let relay = Relay::start(options).await.unwrap();
    for accept in ["application/nostr+json", "text/html, Application/Nostr+JSON;q=1"] {
        let answer = ask(relay.address(), &format!("GET / HTTP/1.1\nhost: x\naccept: {accept}\n\n")).await;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert!(head.contains("access-control-allow-origin: *\r\n"), "{head}");
        assert!(head.contains("content-type: application/nostr+json\r\n"), "{head}");
        let document: Value = serde_json::from_str(body).unwrap();
        assert_eq!(document["name"], "a \"name\"");
        assert_eq!(document["url"], "wss://relay.example.com");
        assert_eq!(document["limitation"]["max_subscriptions"], 7);
        assert_eq!(document["limitation"]["auth_required"], false);
        assert_eq!(document["supported_nips"], json!([1, 9, 11, 13, 40, 42, 45, 50, 70]));
    }
}

#[tokio::test]
async fn other_requests_get_a_short_answer() {
    let relay = start().await;
    let upgrade = "GET / HTTP/1.1\nhost: x\nupgrade: websocket\n";
    let cases = [
        ("GET / HTTP/1.1\nhost: x\n\n".to_owned(), "HTTP/1.1 200 "),
        ("HEAD / HTTP/1.1\nhost: x\naccept: application/nostr+json\n\n".to_owned(), "HTTP/1.1 200 "),
        ("OPTIONS / HTTP/1.1\nhost: x\n\n".to_owned(), "HTTP/1.1 204 "),
        ("POST / HTTP/1.1\nhost: x\ncontent-length: 1\n\nx".to_owned(), "HTTP/1.1 405 "),
        (format!("{upgrade}\n"), "HTTP/1.1 400 "),
        (format!("{upgrade}connection: upgrade\n\n"), "HTTP/1.1 400 "),
        (format!("{upgrade}connection: upgrade\nsec-websocket-version: 13\n\n"), "HTTP/1.1 400 "),
        (format!("{upgrade}connection: upgrade\nsec-websocket-version: 8\nsec-websocket-key: x\n\n"), "HTTP/1.1 400 "),
        ("\0\0nonsense\n\n".to_owned(), "HTTP/1.1 400 "),
        (format!("GET / HTTP/1.1\nhost: x\n{}\n", "a: b\n".repeat(1000)), "HTTP/1.1 431 "),
    ];
    for (request, expected) in cases {
        let answer = ask(relay.address(), &request).await;
        assert!(answer.starts_with(expected), "{request:.80}: {answer:.200}");
        assert!(answer.contains("content-length: 0") || !answer.contains("101 Switching"), "{answer}");
    }
    Peer::connect(&relay).await.expect_silence().await;
}

#[tokio::test(start_paused = true)]
async fn who_says_nothing_is_cut_off() {
    let relay = start().await;
    let begun = tokio::time::Instant::now();
    let silent = tokio::net::TcpStream::connect(relay.address()).await.unwrap();
    let mut buffer = [0; 1];
    silent.readable().await.unwrap();
    assert!(matches!(silent.try_read(&mut buffer), Ok(0) | Err(_)));
    assert!(begun.elapsed() <= Duration::from_secs(11), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn who_does_not_answer_a_ping_is_gone() {
    let relay = start().await;
    let mut peer = Peer::connect(&relay).await;
    tokio::time::pause();
    let begun = tokio::time::Instant::now();
    let mut received = Vec::new();
    // Below the WebSocket nobody answers.
    peer.socket.get_mut().read_to_end(&mut received).await.unwrap();
    assert!(received.starts_with(&[0x89, 0]), "no ping: {received:?}");
    assert!((89..180).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
}
