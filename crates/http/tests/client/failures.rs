//! Servers that refuse, break, lie, lead elsewhere or never end.

use crate::stage::{PATIENCE, Reply, Server, Session, endpoint, event, introduction, result};
use rialto_http::client::Remote;
use rialto_mcp::client::Opening;
use rialto_mcp::line::DEFAULT_LIMIT;
use rialto_mcp::pending::{Fault, Patience};
use serde_json::json;
use std::time::{Duration, Instant};

/// What becomes of a request that is answered with `reply`.
async fn outcome(
    reply: impl Fn(&crate::stage::Seen) -> Reply + Send + Sync + 'static,
) -> Result<serde_json::Value, Fault> {
    let server = Server::start(reply).await;
    Session::open(&server.url()).ask("tools/call", &json!({})).await
}

#[tokio::test]
async fn errors_of_the_protocol_are_passed_on_whatever_the_status() {
    for (status, id) in [(400, "null"), (404, "1"), (500, "1"), (200, "1")] {
        let text =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32602,"message":"no","data":{{"x":1.50}}}}}}"#);
        let error = outcome(move |_| Reply::new(status, "application/json; charset=utf-8", text.clone())).await;
        assert_eq!(error, Ok(json!({ "code": -32602, "message": "no", "data": { "x": 1.5 } })), "{status}");
    }
    let without = r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"no"}}"#;
    assert_eq!(
        outcome(move |_| Reply::new(400, "application/json", without)).await,
        Ok(json!({ "code": -32600, "message": "no" }))
    );
}

#[tokio::test]
async fn other_refusals_are_told_by_their_status_and_not_by_what_a_stranger_writes() {
    for status in [400, 401, 403, 413, 429, 500, 502, 503] {
        let fault =
            outcome(move |_| Reply::new(status, "text/html", "<b>your token was hunter2</b>")).await.unwrap_err();
        assert!(matches!(&fault, Fault::Status { status: told, .. } if *told == status), "{fault:?}");
        assert!(!format!("{fault} {fault:?}").contains("hunter2"), "{fault:?}");
    }
}

#[tokio::test]
async fn answers_that_are_none_are_told() {
    let cases: [fn(&crate::stage::Seen) -> Reply; 6] = [
        |_| Reply::new(200, "text/html", "<p>Welcome</p>"),
        |_| Reply::status(202),
        |_| Reply::new(200, "application/json", "nonsense"),
        |_| Reply::new(200, "application/json", ""),
        |_| Reply::json(&json!({ "jsonrpc": "2.0", "id": 77, "result": {} })),
        |_| Reply::json(&json!({ "jsonrpc": "2.0", "method": "notifications/x" })),
    ];
    for (number, case) in cases.into_iter().enumerate() {
        let outcome = outcome(case).await;
        assert!(matches!(outcome, Err(Fault::Unreadable(_))), "{number}: {outcome:?}");
    }
}

#[tokio::test]
async fn garbage_among_the_events_does_not_hide_the_answer() {
    let answer = outcome(|seen| {
        let answer = event(&result(seen, json!({ "ok": true })));
        Reply::events(&format!("<html>\n\ndata: not json\n\nevent: other\ndata: {{}}\n\n\u{0}\u{1}\r\r\n{answer}"))
    })
    .await;
    assert_eq!(answer, Ok(json!({ "ok": true })));
}

#[tokio::test]
async fn answers_beyond_the_limit_are_not_kept() {
    let long = "x".repeat(DEFAULT_LIMIT);
    for is_stream in [false, true] {
        let long = long.clone();
        let outcome = outcome(move |seen| {
            let answer = result(seen, json!({ "text": long }));
            if is_stream { Reply::events(&event(&answer)) } else { Reply::json(&answer) }
        })
        .await;
        assert_eq!(outcome.map(|_| ()), Err(Fault::TooLong), "stream: {is_stream}");
    }
}

#[tokio::test]
async fn an_endless_body_ends_at_the_limit() {
    let server = Server::start(|_| {
        let (reply, sender) = Reply::stream();
        tokio::spawn(async move {
            let piece = bytes::Bytes::from(vec![b'x'; 64 * 1024]);
            // Far more than the limit, unless somebody closes the door.
            for _ in 0..16 * DEFAULT_LIMIT / piece.len() {
                if sender.send(Some(piece.clone())).is_err() {
                    return;
                }
                tokio::task::yield_now().await;
            }
        });
        reply
    })
    .await;
    let outcome = Session::open(&server.url()).ask("tools/call", &json!({})).await;
    assert_eq!(outcome, Err(Fault::TooLong));
}

#[tokio::test]
async fn a_server_that_is_not_there_never_saw_the_request() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let session = Session::open(&format!("http://{address}/mcp"));
    let fault = session.ask("tools/call", &json!({})).await.unwrap_err();
    assert!(matches!(fault, Fault::Unreachable(_)) && fault.is_harmless(), "{fault:?}");
}

#[tokio::test]
async fn a_call_whose_fate_is_unknown_is_not_made_again_but_a_list_is() {
    let server = Server::start(|_| Reply::broken()).await;
    let session = Session::open(&server.url());
    for (method, times) in [("tools/call", 1), ("tools/list", 2)] {
        let fault = session.ask(method, &json!({})).await.unwrap_err();
        assert!(matches!(fault, Fault::Lost(_)) && !fault.is_harmless(), "{fault:?}");
        let asked = server.story().iter().filter(|what| **what == format!("POST {method}")).count();
        assert_eq!(asked, times, "{method}");
    }
}

#[tokio::test]
async fn a_server_that_says_nothing_is_given_up_in_time() {
    let server = Server::start(|_| Reply::silence()).await;
    let session = Session::open(&server.url());
    let begun = Instant::now();
    let soon = Patience { silence: Duration::from_millis(300), ..PATIENCE };
    let outcome = session.client.request("tools/call", b"{}", soon).await;
    assert!(matches!(outcome, Err(Fault::Timeout(_))), "{outcome:?}");
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn redirections_are_followed_within_the_same_origin_only() {
    for status in [307, 308] {
        let server = Server::start(move |seen| match seen.path.as_str() {
            "/mcp" => Reply::status(status).with("location", "/other/mcp?x=1"),
            _ => Reply::json(&result(seen, json!({ "path": seen.path, "key": seen.header("x-key") }))),
        })
        .await;
        let remote =
            Remote::new(endpoint(&server.url()).with_header("X-Key", "hunter2").unwrap(), crate::stage::agent());
        let answer = Session::with(remote).ask("tools/call", &json!({})).await;
        assert_eq!(answer, Ok(json!({ "path": "/other/mcp?x=1", "key": "hunter2" })));
    }
    // Elsewhere is another host, port or scheme; and 302 would turn a message into a request for a page.
    let other = Server::start(|_| Reply::status(200)).await;
    let elsewhere = other.url();
    for (status, location) in
        [(307, elsewhere.as_str()), (308, "https://127.0.0.1/"), (302, "/x"), (307, ""), (307, "/mcp")]
    {
        let location = location.to_owned();
        let server = Server::start(move |_| {
            let reply = Reply::status(status);
            if location.is_empty() { reply } else { reply.with("location", &location) }
        })
        .await;
        let outcome = Session::open(&server.url()).ask("tools/call", &json!({})).await;
        assert!(matches!(&outcome, Err(Fault::Status { status: told, .. }) if *told == status), "{outcome:?}");
        assert!(server.seen().len() <= 4, "a circle ends");
    }
    assert!(other.seen().is_empty(), "nothing is sent elsewhere");
}

#[tokio::test]
async fn many_requests_at_once_each_find_their_answer() {
    let server = Server::start(|seen| {
        introduction(seen, "2025-11-25", Some("s")).unwrap_or_else(|| {
            let answer = result(seen, seen.message()["params"].clone());
            if seen.message()["params"]["n"].as_u64().unwrap() % 2 == 0 {
                Reply::json(&answer)
            } else {
                Reply::events(&event(&answer))
            }
        })
    })
    .await;
    let session = Session::open(&server.url());
    session.introduce(Opening::Legacy).await.unwrap();
    let mut asked = tokio::task::JoinSet::new();
    for number in 0..300 {
        let client = session.client.clone();
        asked.spawn(async move {
            let params = json!({ "n": number });
            let response = client.request("echo", params.to_string().as_bytes(), PATIENCE).await.unwrap();
            assert_eq!(serde_json::from_slice::<serde_json::Value>(response.result().unwrap()).unwrap(), params);
        });
    }
    while let Some(one) = asked.join_next().await {
        one.unwrap();
    }
}
