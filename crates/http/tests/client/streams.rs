//! Streams that break off, wait, and carry more than answers.

use crate::stage::{Reply, Server, Session, event, introduction, result, stateless};
use rialto_mcp::client::Opening;
use rialto_mcp::pending::Fault;
use serde_json::json;
use std::sync::Mutex;
use std::time::{Duration, Instant};

#[tokio::test]
async fn a_broken_stream_is_taken_up_where_it_broke_off_after_the_pause_that_was_asked_for() {
    let times: std::sync::Arc<Mutex<Vec<Instant>>> = std::sync::Arc::default();
    let record = times.clone();
    let asked: Mutex<serde_json::Value> = Mutex::default();
    let server = Server::start(move |seen| match (seen.what().as_str(), seen.header("last-event-id")) {
        ("POST tools/call", _) => {
            *asked.lock().unwrap() = result(seen, json!({ "late": true }));
            record.lock().unwrap().push(Instant::now());
            Reply::events("id: one\nretry: 300\ndata: \n\n")
        }
        ("GET", Some("one")) => {
            record.lock().unwrap().push(Instant::now());
            // Once more, with another place.
            Reply::events(&format!("id: two\n{}", event(&json!({ "jsonrpc": "2.0", "method": "notifications/x" }))))
        }
        ("GET", Some("two")) => Reply::events(&event(&asked.lock().unwrap())),
        _ => introduction(seen, "2025-11-25", Some("s")).unwrap(),
    })
    .await;
    let mut session = Session::open(&server.url());
    session.introduce(Opening::Legacy).await.unwrap();
    assert_eq!(session.ask("tools/call", &json!({})).await, Ok(json!({ "late": true })));
    assert_eq!(session.note().await, "notifications/x");
    let times = times.lock().unwrap();
    assert!(times[1] - times[0] >= Duration::from_millis(290), "{:?}", times[1] - times[0]);
    assert_eq!(server.story().iter().filter(|what| *what == "POST tools/call").count(), 1, "it is asked once");
}

#[tokio::test]
async fn a_stream_without_a_place_to_come_back_to_is_lost_and_nothing_is_repeated() {
    for (params, stream) in [
        (json!({}), ": nothing\n\n"),
        // The newest version has no places to come back to.
        (stateless(json!({})), "id: one\nretry: 1\ndata: \n\n"),
    ] {
        let server = Server::start(move |seen| {
            introduction(seen, "2025-11-25", Some("s")).unwrap_or_else(|| Reply::events(stream))
        })
        .await;
        let session = Session::open(&server.url());
        session.introduce(Opening::Legacy).await.unwrap();
        let outcome = session.ask("tools/call", &params).await;
        assert!(matches!(outcome, Err(Fault::Lost(_))), "{outcome:?}");
        assert_eq!(server.story().iter().filter(|what| *what == "POST tools/call").count(), 1);
    }
}

#[tokio::test]
async fn a_stream_that_never_brings_the_answer_is_given_up() {
    let server = Server::start(|seen| match seen.what().as_str() {
        "POST tools/call" | "GET" if seen.header("last-event-id").is_some() || seen.method == "POST" => {
            Reply::events("id: same\nretry: 1\ndata: \n\n")
        }
        _ => Reply::status(405),
    })
    .await;
    let session = Session::open(&server.url());
    let outcome = session.ask("tools/call", &json!({})).await;
    assert!(matches!(outcome, Err(Fault::Lost(_))), "{outcome:?}");
    let again = server.story().iter().filter(|what| *what == "GET").count();
    assert!((1..=10).contains(&again), "{again}");
}

#[tokio::test]
async fn what_the_server_says_by_itself_is_heard_and_answered() {
    let streams = std::sync::Arc::new(Mutex::new(Vec::new()));
    let kept = streams.clone();
    let server = Server::start(move |seen| match seen.what().as_str() {
        "GET" => {
            let (reply, sender) = Reply::stream();
            let note = event(&json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }));
            let ping = event(&json!({ "jsonrpc": "2.0", "id": "p-1", "method": "ping" }));
            // In pieces, as they may come.
            for piece in format!("id: 5\n{note}{ping}").as_bytes().chunks(7) {
                sender.send(Some(bytes::Bytes::copy_from_slice(piece))).unwrap();
            }
            kept.lock().unwrap().push(sender);
            reply
        }
        _ => introduction(seen, "2025-11-25", Some("s")).unwrap_or_else(|| Reply::status(202)),
    })
    .await;
    let mut session = Session::open(&server.url());
    session.introduce(Opening::Legacy).await.unwrap();
    assert_eq!(session.note().await, "notifications/tools/list_changed");
    server.wait_for("POST", 1).await;
    let answer = server.seen().into_iter().find(|seen| seen.what() == "POST").unwrap();
    assert_eq!(answer.message(), json!({ "jsonrpc": "2.0", "id": "p-1", "result": {} }));
    assert_eq!(answer.header("mcp-session-id"), Some("s"));
    // When the stream breaks, it is opened again where it was.
    streams.lock().unwrap().clear();
    server.wait_for("GET", 2).await;
    let again = server.seen().into_iter().filter(|seen| seen.what() == "GET").nth(1).unwrap();
    assert_eq!(again.header("last-event-id"), Some("5"));
}

#[tokio::test]
async fn progress_and_questions_on_the_stream_of_an_answer_are_passed_on() {
    let server = Server::start(|seen| {
        introduction(seen, "2025-11-25", None).unwrap_or_else(|| match seen.what().as_str() {
            "POST tools/call" => {
                let question = json!({ "jsonrpc": "2.0", "id": 9, "method": "roots/list" });
                let note = json!({ "jsonrpc": "2.0", "method": "notifications/message" });
                Reply::events(&[event(&question), event(&note), event(&result(seen, json!({ "a": 1 })))].concat())
            }
            _ => Reply::status(202),
        })
    })
    .await;
    let mut session = Session::open(&server.url());
    session.introduce(Opening::Legacy).await.unwrap();
    assert_eq!(session.ask("tools/call", &json!({})).await, Ok(json!({ "a": 1 })));
    assert_eq!(session.note().await, "notifications/message");
    server.wait_for("POST", 1).await;
}
