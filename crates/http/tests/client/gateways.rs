//! Remote servers behind a hub: they are found again when they forget us, and no call is made twice.

use crate::stage::{Reply, Seen, Server, agent, endpoint, event, introduction, result};
use bytes::Bytes;
use rialto_http::client::Remote;
use rialto_http::client::oauth::{Authorizer, Settings, Vault};
use rialto_hub::Hub;
use rialto_hub::event::{Event, Events};
use rialto_hub::guard::Guard;
use rialto_hub::plan::{EraChoice, Plan, Prefix, ServerPlan, Transport};
use rialto_mcp::local::{Local, Notes};
use rialto_mcp::reply::Answer;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc::UnboundedSender;

type Told = Arc<Mutex<Vec<Event>>>;

fn hub_of(remote: Remote, era: EraChoice) -> (Arc<Hub>, Told) {
    let mut server = ServerPlan::over("far", Transport::Http(Box::new(remote)));
    server.era = era;
    let plan = Plan { servers: vec![server], prefix: Prefix::Never, startup_grace: Duration::from_secs(10) };
    let told = Told::default();
    let heard = told.clone();
    // No child is ever started, so that nothing has to be guarded.
    let guard = Guard::new("/nonexistent".into(), "").unwrap();
    (Hub::start(plan, guard, Events::new(move |event| heard.lock().unwrap().push(event))), told)
}

async fn open(server: &Server, era: EraChoice) -> (Arc<Hub>, Local<Hub>, Notes, Told) {
    let (hub, told) = hub_of(Remote::new(endpoint(&server.url()), agent()), era);
    let (local, _, notes) = Local::open(hub.clone(), "{\"name\":\"test\",\"version\":\"1\"}").await;
    (hub, local, notes, told)
}

/// The result, or the words of the error.
async fn call(local: &Local<Hub>, tool: &str) -> Result<Value, String> {
    let params = json!({ "name": tool, "arguments": {} }).to_string();
    match local.request("tools/call", params.as_bytes()).await {
        Answer::Response(response) => Ok(serde_json::from_slice(response.result().unwrap()).unwrap()),
        Answer::Result(result) => Ok(serde_json::from_slice(&result).unwrap()),
        Answer::Error(error) => Err(error.message),
    }
}

async fn tools(local: &Local<Hub>) -> Vec<String> {
    let Answer::Result(listed) = local.request("tools/list", b"{}").await else { panic!("no list") };
    let listed: Value = serde_json::from_slice(&listed).unwrap();
    listed["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

fn tool_list(seen: &Seen, names: &[&str]) -> Reply {
    let tools: Vec<Value> =
        names.iter().map(|name| json!({ "name": name, "inputSchema": { "type": "object" } })).collect();
    Reply::json(&result(seen, json!({ "tools": tools })))
}

#[tokio::test]
async fn a_forgotten_session_is_begun_anew_and_the_call_made_there_once() {
    // Each session is good for one call.
    let sessions = Arc::new(AtomicUsize::new(0));
    let calls = Arc::new(AtomicUsize::new(0));
    let (begun, made) = (sessions.clone(), calls.clone());
    let server = Server::start(move |seen| {
        let current = format!("s-{}", begun.load(Ordering::SeqCst));
        match seen.what().as_str() {
            "POST initialize" => {
                let session = format!("s-{}", begun.fetch_add(1, Ordering::SeqCst) + 1);
                introduction(seen, "2025-11-25", Some(&session)).unwrap()
            }
            _ if seen.header("mcp-session-id") != Some(&current) => Reply::status(404),
            "POST tools/list" => tool_list(seen, &["t"]),
            "POST tools/call" => {
                made.fetch_add(1, Ordering::SeqCst);
                // Forgotten right behind the answer.
                begun.fetch_add(1, Ordering::SeqCst);
                Reply::json(&result(seen, json!({ "in": current })))
            }
            _ => introduction(seen, "2025-11-25", None).unwrap(),
        }
    })
    .await;
    let (hub, local, _notes, _) = open(&server, EraChoice::Legacy).await;
    for number in 1..4 {
        let answer = call(&local, "t").await.unwrap();
        assert_eq!(calls.load(Ordering::SeqCst), number, "{answer}");
    }
    assert!(sessions.load(Ordering::SeqCst) >= 5);
    hub.stop().await;
    assert_eq!(server.story().last().map(String::as_str), Some("DELETE"), "{:?}", server.story());
}

#[tokio::test]
async fn a_call_that_was_lost_on_the_way_back_is_an_error_and_not_made_again() {
    let server = Server::start(|seen| match seen.what().as_str() {
        "POST tools/list" => tool_list(seen, &["good", "lost"]),
        "POST tools/call" if seen.message()["params"]["name"] == "lost" => Reply::broken(),
        "POST tools/call" => Reply::json(&result(seen, json!({ "ok": true }))),
        _ => introduction(seen, "2025-11-25", Some("s")).unwrap(),
    })
    .await;
    let (_hub, local, _notes, _) = open(&server, EraChoice::Legacy).await;
    let error = call(&local, "lost").await.unwrap_err();
    assert!(error.contains("server `far`") && error.contains("lost before the answer"), "{error}");
    assert_eq!(server.story().iter().filter(|what| *what == "POST tools/call").count(), 1);
    assert_eq!(call(&local, "good").await, Ok(json!({ "ok": true })), "the session goes on");
}

#[tokio::test]
async fn a_server_that_comes_later_is_found() {
    let is_up = Arc::new(AtomicUsize::new(0));
    let up = is_up.clone();
    let server = Server::start(move |seen| match seen.what().as_str() {
        _ if up.load(Ordering::SeqCst) == 0 => Reply::status(503),
        "POST tools/list" => tool_list(seen, &["t"]),
        "POST tools/call" => Reply::json(&result(seen, json!({ "ok": true }))),
        _ => introduction(seen, "2025-11-25", Some("s")).unwrap(),
    })
    .await;
    let (_hub, local, mut notes, told) = open(&server, EraChoice::Legacy).await;
    let error = call(&local, "t").await.unwrap_err();
    assert!(error.contains("503"), "{error}");
    assert!(told.lock().unwrap().iter().any(|event| matches!(event, Event::Down { .. })));
    is_up.store(1, Ordering::SeqCst);
    let note = tokio::time::timeout(Duration::from_secs(30), notes.next()).await.unwrap().unwrap();
    assert_eq!(note.method(), "notifications/tools/list_changed");
    assert_eq!(call(&local, "t").await, Ok(json!({ "ok": true })));
}

#[tokio::test]
async fn a_server_that_wants_a_login_says_so_in_every_error() {
    let server = Server::start(|_| Reply::status(401)).await;
    let endpoint = endpoint(&server.url());
    let hint = "rialto auth login far";
    let authorizer = Authorizer::new(&endpoint, agent(), Vault::in_memory(), Settings::default(), None, hint);
    let remote = Remote { endpoint, agent: agent(), authorizer: Some(authorizer) };
    let (hub, _) = hub_of(remote, EraChoice::Auto);
    let (local, ..) = Local::open(hub, "{\"name\":\"test\",\"version\":\"1\"}").await;
    let error = call(&local, "t").await.unwrap_err();
    assert!(error.contains("login needed: rialto auth login far"), "{error}");
}

#[tokio::test]
async fn a_stateless_server_is_used_by_an_older_client_and_heard_again_when_its_stream_breaks() {
    let names: Arc<Mutex<Vec<&'static str>>> = Arc::new(Mutex::new(vec!["one"]));
    let streams: Arc<Mutex<Vec<UnboundedSender<Option<Bytes>>>>> = Arc::default();
    let (offered, kept) = (names.clone(), streams.clone());
    let server = Server::start(move |seen| match seen.what().as_str() {
        "POST server/discover" => Reply::json(&result(
            seen,
            json!({
                "resultType": "complete", "supportedVersions": ["2026-07-28"],
                "capabilities": { "tools": { "listChanged": true } },
            }),
        )),
        "POST initialize" => {
            let error = json!({ "code": -32601, "message": "Method not found" });
            let text = json!({ "jsonrpc": "2.0", "id": seen.message()["id"], "error": error }).to_string();
            Reply::new(404, "application/json", text)
        }
        "POST tools/list" => tool_list(seen, &offered.lock().unwrap()),
        "POST subscriptions/listen" => {
            let (reply, sender) = Reply::stream();
            let about = json!({ "io.modelcontextprotocol/subscriptionId": seen.message()["id"] });
            let note = json!({
                "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
                "params": { "_meta": about, "notifications": { "toolsListChanged": true } },
            });
            sender.send(Some(event(&note).into())).unwrap();
            kept.lock().unwrap().push(sender);
            reply
        }
        _ => Reply::json(&result(seen, json!({ "resultType": "complete", "content": [] }))),
    })
    .await;
    let (_hub, local, mut notes, _) = open(&server, EraChoice::Auto).await;
    assert_eq!(tools(&local).await, ["one"]);
    assert!(call(&local, "one").await.is_ok());
    // The stream breaks, and what changes in between is noticed.
    names.lock().unwrap().push("two");
    while streams.lock().unwrap().pop().is_none() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    server.wait_for("POST subscriptions/listen", 2).await;
    // The first list was news as well.
    while tools(&local).await != ["one", "two"] {
        let note = tokio::time::timeout(Duration::from_secs(20), notes.next()).await.unwrap().unwrap();
        assert_eq!(note.method(), "notifications/tools/list_changed");
    }
}
