//! `rialto use` asks the person behind the MCP host before it pays what no budget allows.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

mod support;

use rialto_consumer::bridge::{Bridge, Chosen, Options, Prefix};
use rialto_consumer::ongoing::PATIENCE;
use rialto_consumer::payment::Payer;
use rialto_consumer::pins::Pins;
use rialto_consumer::reference::Reference;
use rialto_consumer::remote::Terms;
use rialto_ledger::spending::{Approval, Spending};
use rialto_mcp::serve::{Streams, serve};
use rialto_payment::invoice::Network;
use rialto_wire::dvmcp::answer::Progress;
use serde_json::{Value, json};
use std::sync::Arc;
use support::wallet::{Scripted, invoice};
use support::{Asked, Provider, customer, relay, soon, target, tool};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf, duplex, split};

/// What the host says to the question; `None` if it cannot ask anybody.
type Answers = Option<Value>;

struct Host {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    writer: WriteHalf<DuplexStream>,
}

impl Host {
    async fn say(&mut self, message: Value) {
        self.writer.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn hear(&mut self) -> Value {
        serde_json::from_str(&soon(self.lines.next_line()).await.unwrap().unwrap()).unwrap()
    }

    /// The next message with this id or method.
    async fn next(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.hear().await;
            if fits(&message) {
                return message;
            }
        }
    }
}

async fn demand(provider: &Provider, asked: &Asked, invoice: &str) {
    let mut event = provider.writer().feedback(&asked.request.address, &Progress::Begun);
    let mut tags: Vec<_> = event.tags.to_vec().into_iter().filter(|tag| tag.kind() != "status").collect();
    tags.push(nostr::prelude::Tag::parse(["status", "payment-required"]).unwrap());
    tags.push(nostr::prelude::Tag::parse(["amount", "5", invoice]).unwrap());
    event.tags = nostr::prelude::Tags::from_list(tags);
    provider.publish(event).await;
}

/// Calls a tool that costs 5 sat; gives the result, and what has left the wallet.
async fn call(version: &str, answers: Answers) -> (Value, usize, Vec<Approval>) {
    let relay = relay().await;
    let provider = Provider::start(&relay, vec![tool("echo", "says it again")]).await;
    provider.announce("shop", false, 1000).await;
    let directory = tempfile::tempdir().unwrap();
    let (wallet, spending) = (Arc::new(Scripted::default()), Spending::open(directory.path()).unwrap());
    let payer = Arc::new(Payer::new(Some(wallet.clone()), spending.clone(), Network::Regtest));
    let options =
        Options { prefix: Prefix::Automatic, patience: PATIENCE, payer: Some(payer), notices: Box::new(|_| ()) };
    let chosen = Chosen { typed: "shop".into(), reference: Reference::Key(target(&provider)), terms: Terms::PLAIN };
    let bridge = Bridge::start(customer(&[&relay]), Pins::in_directory(directory.path()), vec![chosen], options);
    let (ours, theirs) = duplex(1 << 20);
    let (reader, writer) = split(theirs);
    let closed = Box::pin(std::future::pending());
    tokio::spawn(serve(bridge, Streams { reader: Box::pin(reader), writer: Box::pin(writer), closed }));
    let (reader, writer) = split(ours);
    let mut host = Host { lines: BufReader::new(reader).lines(), writer };
    let capabilities = if answers.is_some() { json!({ "elicitation": {} }) } else { json!({}) };
    let params = json!({ "protocolVersion": version, "capabilities": capabilities, "clientInfo": { "name": "t", "version": "1" } });
    host.say(json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params })).await;
    host.next(|message| message["id"] == 1).await;
    host.say(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
    let params = json!({ "name": "echo", "arguments": {} });
    host.say(json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params })).await;
    let asked = provider.next().await;
    demand(&provider, &asked, &invoice(5)).await;
    if let Some(answer) = answers {
        let question = host.next(|message| message["method"] == "elicitation/create").await;
        let words = question["params"]["message"].as_str().unwrap();
        assert!(words.starts_with("Pay 5 sat to shop for echo?"), "{words}");
        assert_eq!(question["params"]["requestedSchema"]["required"], json!(["pay"]));
        host.say(json!({ "jsonrpc": "2.0", "id": question["id"], "result": answer })).await;
    }
    let paid = async {
        while wallet.moved().is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        provider.text(&asked, "here");
        std::future::pending::<()>().await;
    };
    let answer = tokio::select! {
        answer = host.next(|message| message["id"] == 2) => answer,
        () = paid => unreachable!(),
    };
    let approved = spending.history(10).unwrap().iter().map(|entry| entry.spend.approved).collect();
    (answer["result"].clone(), wallet.moved().len(), approved)
}

#[tokio::test]
async fn a_person_who_agrees_pays() {
    for version in ["2025-06-18", "2025-11-25"] {
        let (result, payments, approved) =
            call(version, Some(json!({ "action": "accept", "content": { "pay": true } }))).await;
        assert_eq!((result["content"][0]["text"].as_str(), payments), (Some("here"), 1), "{result}");
        assert_eq!(approved, [Approval::Person]);
    }
}

#[tokio::test]
async fn a_person_who_does_not_agree_does_not_pay() {
    for answer in [json!({ "action": "decline" }), json!({ "action": "accept", "content": { "pay": false } })] {
        let (result, payments, approved) = call("2025-06-18", Some(answer)).await;
        assert_eq!((result["isError"].as_bool(), payments, approved), (Some(true), 0, vec![]), "{result}");
    }
}

#[tokio::test]
async fn where_nobody_can_be_asked_a_model_reads_what_to_do() {
    for version in ["2024-11-05", "2025-06-18", "2025-11-25"] {
        let (result, payments, _) = call(version, None).await;
        let error = &result["structuredContent"]["error"];
        assert_eq!((error["code"].as_str(), error["amount_sat"].as_u64()), (Some("payment_required"), Some(5)));
        assert!(error["invoice"].as_str().unwrap().starts_with("lnbcrt"), "{error}");
        assert!(error["hint"].as_str().unwrap().contains("rialto budget set"), "{error}");
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("lnbcrt") && text.contains("no budget is set"), "{text}");
        assert_eq!((result["isError"].as_bool(), payments), (Some(true), 0));
    }
}
