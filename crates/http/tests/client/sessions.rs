//! Sessions that the server forgets.

use crate::stage::{Reply, Server, Session, introduction, result};
use rialto_http::client::End;
use rialto_mcp::client::Opening;
use rialto_mcp::pending::Fault;
use serde_json::json;
use std::time::Duration;

#[tokio::test]
async fn a_forgotten_session_is_told_apart_from_a_refused_request() {
    let refusals = [
        (
            404,
            "application/json",
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}"#,
        ),
        (404, "text/plain", "gone"),
        (404, "", ""),
        (
            400,
            "application/json",
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"No valid session ID"}}"#,
        ),
    ];
    for (status, kind, body) in refusals {
        let server = Server::start(move |seen| {
            introduction(seen, "2025-11-25", Some("s")).unwrap_or_else(|| Reply::new(status, kind, body))
        })
        .await;
        let session = Session::open(&server.url());
        session.introduce(Opening::Legacy).await.unwrap();
        assert_eq!(session.ask("tools/call", &json!({})).await, Err(Fault::SessionGone), "{status} {kind}");
        let end = tokio::time::timeout(Duration::from_secs(10), session.carried).await.unwrap().unwrap();
        assert_eq!(end, End::SessionGone);
    }
}

#[tokio::test]
async fn without_a_session_not_found_is_just_that() {
    let server =
        Server::start(|seen| introduction(seen, "2025-11-25", None).unwrap_or_else(|| Reply::status(404))).await;
    let session = Session::open(&server.url());
    session.introduce(Opening::Legacy).await.unwrap();
    let outcome = session.ask("tools/call", &json!({})).await;
    assert!(matches!(outcome, Err(Fault::Status { status: 404, .. })), "{outcome:?}");
    assert_eq!(session.finish().await, End::Finished);
}

#[tokio::test]
async fn answers_that_are_on_their_way_when_a_session_ends_still_count() {
    let server = Server::start(|seen| {
        introduction(seen, "2025-11-25", Some("s")).unwrap_or_else(|| match seen.what().as_str() {
            "POST slow" => {
                let (reply, sender) = Reply::stream();
                let text = crate::stage::event(&result(seen, json!({ "done": true })));
                tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    let _ = sender.send(Some(text.into()));
                });
                reply
            }
            _ => Reply::status(404),
        })
    })
    .await;
    let session = Session::open(&server.url());
    session.introduce(Opening::Legacy).await.unwrap();
    let (slow, params) = (session.client.clone(), json!({}).to_string());
    let slow = tokio::spawn(async move { slow.request("slow", params.as_bytes(), crate::stage::PATIENCE).await });
    server.wait_for("POST slow", 1).await;
    assert_eq!(session.ask("tools/call", &json!({})).await, Err(Fault::SessionGone));
    assert!(slow.await.unwrap().unwrap().result().is_some());
}
