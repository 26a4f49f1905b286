//! Proxies: who sees what.

use crate::stage::{Session, endpoint};
use rialto_http::client::{Agent, Options, Remote};
use rialto_mcp::pending::Fault;
use serde_json::json;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// A proxy that answers everything itself and remembers the heads that it saw.
async fn proxy(answer: &'static str) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let heads: Arc<Mutex<Vec<String>>> = Arc::default();
    let record = heads.clone();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let record = record.clone();
            tokio::spawn(async move {
                let mut head = Vec::new();
                while !head.windows(4).any(|end| end == b"\r\n\r\n") {
                    head.push(stream.read_u8().await.unwrap());
                }
                record.lock().unwrap().push(String::from_utf8(head).unwrap());
                stream.write_all(answer.as_bytes()).await.unwrap();
                // What follows stays unread; the other side hangs up.
                let _ = stream.read_u8().await;
            });
        }
    });
    (address, heads)
}

fn session(url: &str, options: &Options) -> Session {
    let endpoint = endpoint(url).with_header("Authorization", "Bearer hunter2").unwrap();
    Session::with(Remote::new(endpoint, Agent::new(options).unwrap()))
}

const ANSWER: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 50\r\nConnection: close\r\n\r\n\
                      {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"by\":\"a proxy\"}}";

#[tokio::test]
async fn plain_requests_name_the_whole_address_to_the_proxy() {
    let (address, heads) = proxy(ANSWER).await;
    let options = Options { http_proxy: Some(format!("http://me:secret@{address}")), ..Options::default() };
    let answer = session("http://server.test/mcp", &options).ask("tools/call", &json!({})).await;
    assert_eq!(answer, Ok(json!({ "by": "a proxy" })));
    let heads = heads.lock().unwrap();
    assert!(heads[0].starts_with("POST http://server.test/mcp HTTP/1.1\r\n"), "{heads:?}");
    assert!(heads[0].to_lowercase().contains("proxy-authorization: basic bwu6c2vjcmv0"), "{heads:?}");
}

#[tokio::test]
async fn of_secure_requests_the_proxy_sees_the_name_only() {
    let (address, heads) = proxy("HTTP/1.1 200 Connection established\r\n\r\n").await;
    let options = Options { all_proxy: Some(format!("http://me:secret@{address}")), ..Options::default() };
    let asked = session("https://server.test/mcp?token=hunter2", &options);
    let outcome =
        tokio::time::timeout(std::time::Duration::from_millis(800), asked.ask("tools/call", &json!({}))).await;
    assert!(outcome.is_err() || matches!(outcome, Ok(Err(Fault::Unreachable(_)))), "{outcome:?}");
    let heads = heads.lock().unwrap();
    assert!(heads[0].starts_with("CONNECT server.test:443 HTTP/1.1\r\n"), "{heads:?}");
    assert!(heads[0].contains("Proxy-Authorization: Basic bWU6c2VjcmV0"), "{heads:?}");
    assert!(!heads.concat().contains("hunter2"), "{heads:?}");
}

#[tokio::test]
async fn a_proxy_that_refuses_is_named_without_its_password() {
    let (address, _) = proxy("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n").await;
    let options = Options { https_proxy: Some(format!("http://me:secret@{address}")), ..Options::default() };
    let fault = session("https://server.test/mcp", &options).ask("tools/call", &json!({})).await.unwrap_err();
    assert!(matches!(fault, Fault::Unreachable(_)), "{fault:?}");
    let words = fault.to_string();
    assert!(words.contains(&address) && words.contains("407") && !words.contains("secret"), "{words}");
}

#[tokio::test]
async fn exceptions_and_this_machine_are_reached_without_a_proxy() {
    let (address, heads) = proxy(ANSWER).await;
    let server = crate::stage::Server::start(|seen| {
        crate::stage::Reply::json(&crate::stage::result(seen, json!({ "by": "the server" })))
    })
    .await;
    let options = Options { all_proxy: Some(format!("http://{address}")), ..Options::default() };
    let answer = session(&server.url(), &options).ask("tools/call", &json!({})).await;
    assert_eq!(answer, Ok(json!({ "by": "the server" })));
    let options = Options { no_proxy: Some("server.test".into()), ..options };
    let outcome = session("http://server.test:9/mcp", &options).ask("tools/call", &json!({})).await;
    assert!(matches!(outcome, Err(Fault::Unreachable(_))), "{outcome:?}");
    assert!(heads.lock().unwrap().is_empty());
}

#[test]
fn a_file_of_certificates_that_cannot_be_read_is_told() {
    let options = Options { certificates: Some("/nonexistent/bundle.pem".into()), ..Options::default() };
    let error = Agent::new(&options).unwrap_err().to_string();
    assert!(error.contains("SSL_CERT_FILE") && error.contains("/nonexistent/bundle.pem"), "{error}");
}
