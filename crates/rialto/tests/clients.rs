//! Several clients on one hub, in front of one real server: their ids, tokens and questions never meet.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should panic")]

use std::sync::Arc;
use std::time::Duration;

use rialto_hub::Hub;
use rialto_hub::event::Events;
use rialto_hub::guard::Guard;
use rialto_hub::plan::{Plan, Prefix, ServerPlan};
use rialto_mcp::serve::{Streams, serve};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf};

const RIALTO: &str = env!("CARGO_BIN_EXE_rialto");
const PATIENCE: Duration = Duration::from_secs(30);

fn hub() -> Arc<Hub> {
    let server = ServerPlan::new("example", RIALTO, vec!["mcp".into(), "example".into()]);
    let plan = Plan { servers: vec![server], prefix: Prefix::Never, startup_grace: PATIENCE };
    Hub::start(plan, Guard::new(RIALTO.into(), "__guard").unwrap(), Events::new(|_| ()))
}

/// One client, connected to the hub in this process.
struct Client {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    writer: WriteHalf<DuplexStream>,
}

impl Client {
    async fn connect(hub: &Arc<Hub>) -> Self {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let (reader, writer) = tokio::io::split(theirs);
        let streams =
            Streams { reader: Box::pin(reader), writer: Box::pin(writer), closed: Box::pin(std::future::pending()) };
        tokio::spawn(serve(hub.clone(), streams));
        let (reader, writer) = tokio::io::split(ours);
        let mut client = Self { lines: BufReader::new(reader).lines(), writer };
        let hello = json!({
            "protocolVersion": "2025-11-25", "capabilities": { "elicitation": {} }, "clientInfo": { "name": "c", "version": "1" },
        });
        client.send(json!({ "jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": hello })).await;
        client.take(|message| message["id"] == "hello").await;
        client.send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        client
    }

    async fn send(&mut self, message: Value) {
        self.writer.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn call(&mut self, id: u64, tool: &str, arguments: Value) {
        let params = json!({ "name": tool, "arguments": arguments, "_meta": { "progressToken": "same" } });
        self.send(json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })).await;
    }

    async fn next(&mut self) -> Value {
        let line = tokio::time::timeout(PATIENCE, self.lines.next_line()).await.expect("nothing came").unwrap();
        serde_json::from_str(&line.unwrap()).unwrap()
    }

    /// Skips messages until one fits; gives all of them, the fitting one last.
    async fn take(&mut self, fits: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut seen = Vec::new();
        loop {
            seen.push(self.next().await);
            if fits(&seen[seen.len() - 1]) {
                return seen;
            }
        }
    }
}

fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text in {answer}"))
}

#[tokio::test]
async fn a_hundred_clients_with_the_same_ids_get_their_own_answers() {
    const CLIENTS: usize = 100;
    const CALLS: u64 = 50;
    let hub = hub();
    let mut clients = tokio::task::JoinSet::new();
    for number in 0..CLIENTS {
        let hub = hub.clone();
        clients.spawn(async move {
            let mut client = Client::connect(&hub).await;
            for id in 0..CALLS {
                client.call(id, "echo", json!({ "text": format!("{number}/{id}") })).await;
            }
            let mut open: std::collections::BTreeSet<_> = (0..CALLS).collect();
            while !open.is_empty() {
                let answer = client.next().await;
                let id = answer["id"].as_u64().unwrap();
                assert!(open.remove(&id), "answered twice: {answer}");
                assert_eq!(text(&answer), format!("{number}/{id}"));
            }
        });
    }
    clients.join_all().await;
    hub.stop().await;
}

#[tokio::test]
async fn progress_with_the_same_token_reaches_the_one_who_asked() {
    let hub = hub();
    let (mut one, mut two) = (Client::connect(&hub).await, Client::connect(&hub).await);
    one.call(1, "count", json!({ "to": 3, "pause_ms": 30 })).await;
    two.call(1, "count", json!({ "to": 5, "pause_ms": 20 })).await;
    for (client, total) in [(&mut one, 3), (&mut two, 5)] {
        let seen = client.take(|message| message["id"] == 1).await;
        let totals: Vec<_> = seen.iter().filter_map(|message| message["params"]["total"].as_u64()).collect();
        assert_eq!(totals, vec![total; usize::try_from(total).unwrap()], "{seen:?}");
        assert!(seen.iter().all(|message| message["id"] == 1 || message["params"]["progressToken"] == "same"));
    }
    hub.stop().await;
}

#[tokio::test]
async fn a_client_is_asked_for_its_own_calls_only() {
    let hub = hub();
    let (mut one, mut two) = (Client::connect(&hub).await, Client::connect(&hub).await);
    // With a call of one client alone, that client is asked.
    two.call(1, "ask", json!({})).await;
    let question = two.take(|message| message["method"] == "elicitation/create").await.pop().unwrap();
    let answer = json!({ "action": "accept", "content": { "colour": "green" } });
    two.send(json!({ "jsonrpc": "2.0", "id": question["id"], "result": answer })).await;
    assert_eq!(text(&two.take(|message| message["id"] == 1).await.pop().unwrap()), "You like green.");
    // With calls of both running, nobody is, and the server is told so.
    one.call(2, "count", json!({ "to": 1, "pause_ms": 1500 })).await;
    // A round trip, so that the first call is under way.
    one.call(3, "echo", json!({ "text": "on its way" })).await;
    one.take(|message| message["id"] == 3).await;
    two.call(2, "ask", json!({})).await;
    let seen = two.take(|message| message["id"] == 2).await;
    assert_eq!(seen.len(), 1, "two was asked although it is unclear whose question it is: {seen:?}");
    assert_eq!(seen[0]["result"]["isError"], true, "{seen:?}");
    let seen = one.take(|message| message["id"] == 2).await;
    assert!(seen.iter().all(|message| message["method"] != "elicitation/create"), "one was asked for two: {seen:?}");
    hub.stop().await;
}

#[tokio::test]
async fn one_client_that_goes_takes_only_its_own_calls_with_it() {
    let hub = hub();
    let (mut one, mut two) = (Client::connect(&hub).await, Client::connect(&hub).await);
    one.call(1, "count", json!({ "to": 1000, "pause_ms": 1000 })).await;
    two.call(1, "count", json!({ "to": 2, "pause_ms": 50 })).await;
    drop(one);
    assert_eq!(text(&two.take(|message| message["id"] == 1).await.pop().unwrap()), "Counted to 2.");
    hub.stop().await;
}
