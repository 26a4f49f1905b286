//! How each version is spoken, and how the right one is found.

use crate::stage::{Reply, Server, Session, discovery, event, introduction, result, stateless};
use bytes::Bytes;
use rialto_http::client::{End, Endpoint, Remote, Way};
use rialto_mcp::client::Opening;
use rialto_mcp::pending::{Fault, Patience};
use serde_json::json;
use std::sync::Mutex;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedSender;

#[tokio::test]
async fn versions_with_sessions_name_both_in_every_message_after_the_first() {
    for version in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let server = Server::start(move |seen| {
            introduction(seen, version, Some("s-1")).unwrap_or_else(|| Reply::json(&result(seen, json!({"ok": 1}))))
        })
        .await;
        let session = Session::open(&server.url());
        assert_eq!(session.introduce(Opening::Legacy).await.unwrap().version.as_str(), version);
        assert_eq!(session.ask("tools/list", &json!({})).await, Ok(json!({"ok": 1})));
        server.wait_for("GET", 1).await;
        assert_eq!(session.finish().await, End::Finished);
        let seen = server.seen();
        assert_eq!(seen[0].header("mcp-session-id"), None);
        assert_eq!(seen[0].header("mcp-protocol-version"), None);
        assert_eq!(seen[0].header("accept"), Some("application/json, text/event-stream"));
        for later in &seen[1..] {
            assert_eq!(later.header("mcp-session-id"), Some("s-1"), "{}", later.what());
            assert_eq!(later.header("mcp-protocol-version"), Some(version), "{}", later.what());
        }
        let mut story = server.story();
        assert_eq!(story.pop().as_deref(), Some("DELETE"));
        assert_eq!(story[..2], ["POST initialize", "POST notifications/initialized"]);
    }
}

#[tokio::test]
async fn a_server_without_sessions_is_not_asked_to_end_one() {
    let server = Server::start(|seen| introduction(seen, "2025-06-18", None).unwrap_or(Reply::status(500))).await;
    let session = Session::open(&server.url());
    session.introduce(Opening::Legacy).await.unwrap();
    session.finish().await;
    assert!(!server.story().contains(&"DELETE".to_owned()), "{:?}", server.story());
}

#[tokio::test]
async fn stateless_requests_repeat_themselves_in_headers() {
    let server = Server::start(|seen| {
        discovery(seen).unwrap_or_else(|| match seen.what().as_str() {
            "POST tools/list" => Reply::json(&result(
                seen,
                json!({ "tools": [
                { "name": "t", "inputSchema": { "properties": { "r": { "type": "string", "x-mcp-header": "R" } } } },
                { "name": "bad", "inputSchema": { "properties": { "r": { "type": "number", "x-mcp-header": "R" } } } },
            ] }),
            )),
            _ => Reply::json(&result(seen, json!({}))),
        })
    })
    .await;
    let mut session = Session::open(&server.url());
    session.introduce(Opening::Modern).await.unwrap();
    let listed = session.ask("tools/list", &stateless(json!({}))).await.unwrap();
    assert_eq!(listed["tools"].as_array().unwrap().len(), 1, "{listed}");
    assert!(session.note().await.starts_with("warning: tool `bad` is left out"));
    session.ask("tools/call", &stateless(json!({ "name": "t", "arguments": { "r": "é" } }))).await.unwrap();
    assert_eq!(session.finish().await, End::Finished);
    let seen = server.seen();
    let call = seen.last().unwrap();
    for (name, value) in [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "t"),
        ("mcp-param-r", "=?base64?w6k=?="),
    ] {
        assert_eq!(call.header(name), Some(value));
    }
    assert_eq!(server.story(), ["POST server/discover", "POST tools/list", "POST tools/call"], "no session, no stream");
}

#[tokio::test]
async fn giving_up_closes_the_stream_of_a_stateless_request_and_is_told_to_others() {
    let streams: Mutex<Vec<UnboundedSender<Option<Bytes>>>> = Mutex::default();
    let streams = std::sync::Arc::new(streams);
    let kept = streams.clone();
    let server = Server::start(move |seen| {
        introduction(seen, "2025-11-25", None).unwrap_or_else(|| {
            let (reply, sender) = Reply::stream();
            kept.lock().unwrap().push(sender);
            reply
        })
    })
    .await;
    let session = Session::open(&server.url());
    session.introduce(Opening::Legacy).await.unwrap();
    let soon = Patience { silence: Duration::from_millis(300), total: Duration::from_millis(300) };
    for params in [json!({}), stateless(json!({}))] {
        let outcome = session.client.request("tools/call", params.to_string().as_bytes(), soon).await;
        assert!(matches!(outcome, Err(Fault::Timeout(_))), "{outcome:?}");
    }
    let senders = std::mem::take(&mut *streams.lock().unwrap());
    for sender in senders {
        tokio::time::timeout(Duration::from_secs(10), sender.closed()).await.expect("the stream is closed");
    }
    server.wait_for("POST notifications/cancelled", 1).await;
    session.finish().await;
    let told = server.story().iter().filter(|what| *what == "POST notifications/cancelled").count();
    assert_eq!(told, 1, "only the older one is told");
}

/// A server of 2024-11-05: everything is answered on one stream.
async fn oldest(refusal: u16, endpoint: &'static str) -> Server {
    let stream: Mutex<Option<UnboundedSender<Option<Bytes>>>> = Mutex::default();
    Server::start(move |seen| match (seen.method.as_str(), seen.path.as_str()) {
        ("GET", "/mcp") => {
            let (reply, sender) = Reply::stream();
            sender.send(Some(Bytes::from(format!(": hello\n\nevent: endpoint\ndata: {endpoint}\n\n")))).unwrap();
            *stream.lock().unwrap() = Some(sender);
            reply
        }
        ("POST", "/messages?id=7") => {
            let about = json!({ "protocolVersion": "2024-11-05", "capabilities": {}, "serverInfo": { "name": "s" } });
            if seen.message()["id"].is_number() {
                let text = event(&result(seen, about));
                stream.lock().unwrap().as_ref().unwrap().send(Some(text.into())).unwrap();
            }
            if seen.message()["method"] == "end" {
                stream.lock().unwrap().take();
            }
            Reply::new(202, "text/plain", "Accepted")
        }
        _ => Reply::new(refusal, "text/html", "<p>Cannot POST /mcp</p>"),
    })
    .await
}

#[tokio::test]
async fn the_oldest_servers_are_recognised_by_their_refusals() {
    for refusal in [400, 404, 405] {
        let server = oldest(refusal, "/messages?id=7").await;
        let session = Session::open(&server.url());
        let welcome = session.introduce(Opening::Legacy).await.unwrap();
        assert_eq!(welcome.version.as_str(), "2024-11-05");
        assert!(session.ask("tools/list", &json!({})).await.is_ok());
        let paths: Vec<String> = server.seen().iter().map(|seen| format!("{} {}", seen.method, seen.path)).collect();
        assert_eq!(paths[..3], ["POST /mcp", "GET /mcp", "POST /messages?id=7"]);
        assert!(paths[3..].iter().all(|path| path == "POST /messages?id=7"), "{paths:?}");
        assert_eq!(session.finish().await, End::Finished);
    }
}

#[tokio::test]
async fn who_is_said_to_be_old_is_spoken_to_like_that_from_the_start() {
    let server = oldest(404, "/messages?id=7").await;
    let remote = Remote::new(Endpoint::new(&server.url(), Way::Sse).unwrap(), crate::stage::agent());
    let session = Session::with(remote);
    assert!(session.introduce(Opening::Legacy).await.is_ok());
    assert_eq!(server.story()[0], "GET");
    // Without its stream there is nothing left.
    let _ = session.ask("end", &json!({})).await;
    let end = tokio::time::timeout(Duration::from_secs(10), session.carried).await.unwrap().unwrap();
    assert!(matches!(end, End::Lost(Fault::Lost(_))), "{end:?}");
}

#[tokio::test]
async fn messages_are_not_sent_to_another_host_that_an_old_server_names() {
    let other = Server::start(|_| Reply::status(202)).await;
    let elsewhere: &'static str = format!("{}/messages?id=7", other.address).leak();
    let server = oldest(404, elsewhere).await;
    let session = Session::open(&server.url());
    let refused = session.introduce(Opening::Legacy).await.unwrap_err().to_string();
    assert!(refused.contains("404"), "{refused}");
    assert!(other.seen().is_empty());
}

#[tokio::test]
async fn both_eras_are_tried_in_either_order() {
    // One that knows only the newest refuses `initialize` with an error of the protocol.
    let newest = Server::start(|seen| {
        discovery(seen).unwrap_or_else(|| {
            let error = json!({ "code": -32022, "message": "Unsupported", "data": { "supported": ["2026-07-28"] } });
            let text = json!({ "jsonrpc": "2.0", "id": null, "error": error }).to_string();
            Reply::new(400, "application/json", text)
        })
    })
    .await;
    let session = Session::open(&newest.url());
    assert!(session.introduce(Opening::LegacyThenModern).await.unwrap().version.is_modern());
    // One that knows only the older ones does not know how to refuse `server/discover` properly.
    for refusal in [400, 404, 415, 500] {
        let older = Server::start(move |seen| {
            introduction(seen, "2025-06-18", Some("s")).unwrap_or_else(|| Reply::new(refusal, "text/plain", "what?"))
        })
        .await;
        let session = Session::open(&older.url());
        assert_eq!(session.introduce(Opening::ModernThenLegacy).await.unwrap().version.as_str(), "2025-06-18");
    }
}
