//! The buying side as a person meets it: the real binary, a relay on loopback, and a provider that does what it is told.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

mod support;

#[path = "../../consumer/tests/support/mod.rs"]
mod market;

use market::{Provider, relay, tool};
use nostr::nips::nip19::ToBech32;
use nostr::prelude::Timestamp;
use rialto_relay::embedded::Relay;
use rialto_wire::failure::{Code, Failure};
use rialto_wire::request::Body;
use serde_json::{Value, json};
use support::{Run, World};

struct Market {
    relay: Relay,
    provider: Provider,
    npub: String,
    world: std::sync::Arc<World>,
}

impl Market {
    async fn open() -> Self {
        let relay = relay().await;
        let schema = json!({ "type": "object", "properties": { "text": { "type": "string" } }, "required": ["text"] });
        let echo = json!({ "name": "echo", "description": "Says \u{1b}[31mit again", "inputSchema": schema });
        let provider = Provider::start(&relay, vec![echo, tool("other", "")]).await;
        provider.announce("parrot", true, Timestamp::now().as_secs()).await;
        let npub = provider.key().to_bech32().unwrap();
        let mut world = World::new();
        world.variable("RIALTO_RELAYS", &relay.url());
        Self { relay, provider, npub, world: std::sync::Arc::new(world) }
    }

    /// Begins to run a command, so that the provider can answer meanwhile.
    fn begin(&self, line: &str) -> tokio::task::JoinHandle<Run> {
        let (world, line) = (self.world.clone(), line.replace("NPUB", &self.npub));
        tokio::task::spawn_blocking(move || world.run(&line.split_whitespace().collect::<Vec<_>>()))
    }

    async fn run(&self, line: &str) -> Run {
        self.begin(line).await.unwrap()
    }
}

#[tokio::test]
async fn a_call_prints_the_text_of_its_result() {
    let market = Market::open().await;
    let run = market.begin("call parrot echo text=hello");
    let asked = market.provider.next().await;
    let Body::Execute(execution) = &asked.request.body else { panic!() };
    assert_eq!(execution.arguments, r#"{"text":"hello"}"#);
    assert!(asked.sealed);
    market.provider.text(&asked, "hello");
    let run = run.await.unwrap();
    assert_eq!((run.exit, run.stdout.as_str()), (0, "hello\n"), "{}", run.stderr);
    assert!(run.stderr.starts_with("made a key for your requests: npub1"), "{}", run.stderr);

    let run = market.begin("call NPUB echo text=hello --plain --json");
    let asked = market.provider.next().await;
    assert!(!asked.sealed);
    market.provider.respond(&asked, r#"{"content":[],"n":0.10}"#);
    let run = run.await.unwrap();
    assert_eq!((run.exit, run.stdout.as_str()), (0, "{\"content\":[],\"n\":0.10}\n"));
    assert!(run.stderr.contains("public"), "{}", run.stderr);
}

#[tokio::test]
async fn each_way_to_fail_has_its_exit_code() {
    let market = Market::open().await;
    let said_no = r#"{"content":[{"type":"text","text":"not today"}],"isError":true}"#;
    for (answer, exit, words) in [
        (Ok(said_no), 5, "not today"),
        (Err(Code::Timeout), 7, "why"),
        (Err(Code::Unauthorized), 3, "why"),
        (Err(Code::UpstreamUnavailable), 4, "why"),
        (Err(Code::InvalidInput), 2, "why"),
    ] {
        let run = market.begin("call NPUB echo text=x");
        let asked = market.provider.next().await;
        match answer {
            Ok(content) => market.provider.respond(&asked, content),
            Err(code) => {
                for event in market.provider.writer().failure(&asked.request.address, &Failure::new(code, "why")) {
                    market.provider.send(&asked, event);
                }
            }
        }
        let run = run.await.unwrap();
        assert_eq!((run.exit, run.stdout.as_str()), (exit, ""), "{}", run.stderr);
        assert!(run.stderr.contains(words), "{}", run.stderr);
    }
    for (line, exit, words) in [
        ("call NPUB ecko", 2, "did you mean `echo`?"),
        ("call NPUB echo", 2, "add text=TEXT"),
        ("call NPUB echo txt=1", 2, "did you mean `text`?"),
        ("call parot echo", 4, "did you mean `parrot`?"),
        ("call NPUB echo text=x --relay ws://127.0.0.1:9", 4, "ws://127.0.0.1:9: Connection refused"),
        ("find --relay ws://127.0.0.1:9", 4, "ws://127.0.0.1:9: Connection refused"),
    ] {
        let run = market.run(line).await;
        assert_eq!((run.exit, run.stdout.as_str()), (exit, ""), "{line}: {}", run.stderr);
        assert!(run.stderr.contains(words), "{line}: {}", run.stderr);
    }
    let run = market.begin("call NPUB echo text=x --timeout-secs 1");
    let asked = market.provider.next().await;
    let run = run.await.unwrap();
    assert_eq!(run.exit, 7, "{}", run.stderr);
    assert_eq!(market.provider.next().await.request.body, Body::Cancel { target: asked.id() });
}

#[tokio::test]
async fn a_tool_that_changed_is_reviewed_before_it_is_called() {
    let market = Market::open().await;
    let run = market.begin("call NPUB other");
    let asked = market.provider.next().await;
    market.provider.text(&asked, "fine");
    assert_eq!(run.await.unwrap().exit, 0);
    *market.provider.tools.lock().unwrap() = vec![tool("other", "now with more")];
    let run = market.run("call parrot other").await;
    assert_eq!(run.exit, 3, "{}", run.stderr);
    assert!(run.stderr.contains(&format!("rialto pins review {}", market.npub)), "{}", run.stderr);
    let run = market.run("show parrot").await;
    assert!(run.stdout.contains("other  (changed)"), "{}", run.stdout);
    let run = market.run("pins review parrot").await;
    assert!(run.stdout.contains("+   \"description\": \"now with more\""), "{}", run.stdout);
    assert_eq!(market.run("pins accept parrot other").await.exit, 0);
    let run = market.begin("call parrot other");
    let asked = market.provider.next().await;
    market.provider.text(&asked, "fine again");
    assert_eq!(run.await.unwrap().stdout, "fine again\n");
}

#[tokio::test]
async fn services_are_found_and_shown() {
    let market = Market::open().await;
    let run = market.run("find again").await;
    assert_eq!(run.exit, 0, "{}", run.stderr);
    assert!(
        run.stdout.lines().nth(1).unwrap().starts_with("parrot  2 (echo other)  free   dvmcp  now"),
        "{}",
        run.stdout
    );
    assert!(run.stderr.contains("rialto show nprofile1"), "{}", run.stderr);
    let run = market.run("find --json").await;
    let all: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!((&all[0]["name"], &all[0]["sealed"]), (&json!("parrot"), &json!(true)));
    assert!(all[0]["latency_ms"].is_number());
    let link = all[0]["nprofile"].as_str().unwrap().to_owned();
    // The link alone leads there.
    let shown = link.clone();
    let run = tokio::task::spawn_blocking(move || World::new().run(&["show", &shown])).await.unwrap();
    assert_eq!(run.exit, 0, "{}", run.stderr);
    assert!(run.stdout.contains("Says it again") && !run.stdout.contains("[ESC]"), "{}", run.stdout);
    assert!(run.stdout.contains("calls      sealed"), "{}", run.stdout);
    assert!(run.stdout.contains(&format!("rialto call {link} echo text=TEXT")), "{}", run.stdout);
    let run = market.run("find zebra").await;
    assert_eq!((run.exit, run.stdout.as_str()), (0, ""));
    assert!(run.stderr.contains(&market.relay.url()), "{}", run.stderr);
}

#[tokio::test]
async fn a_name_cannot_be_unknown_where_no_relay_could_be_asked() {
    let market = Market::open().await;
    for line in ["call parrot echo text=x --relay ws://127.0.0.1:1", "show parrot --relay ws://127.0.0.1:1"] {
        let run = market.run(line).await;
        assert_eq!(run.exit, 4, "{line}: {}", run.stderr);
        assert!(run.stderr.contains("no relay can be reached"), "{line}: {}", run.stderr);
    }
}
