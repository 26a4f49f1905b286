//! The registry in the repository is what the code says, and its checker finds what is wrong.
//!
//! `BLESS=1 cargo test -p rialto-nostr-tools --test registry` writes the files anew; read the difference before committing it.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should panic")]

mod support;

use bytes::Bytes;
use rialto_mcp::call::Call;
use rialto_mcp::client::{Client, Host, Opening};
use rialto_mcp::error::Error;
use rialto_mcp::message::{Notification, Request};
use rialto_mcp::outlet::outlet;
use rialto_mcp::peer::{Peer, Profile};
use rialto_mcp::pending::{Patience, Reason};
use rialto_mcp::reply::Answer;
use rialto_mcp::serve::{Streams, serve};
use rialto_mcp::server::{Description, Service};
use rialto_nostr_tools::conformance::{Level, Report, Rule, check};
use rialto_nostr_tools::{Server, Session, registry, tools};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use support::{SOON, World};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn compare(path: &str, value: &Value) {
    let path = repository().join(path);
    let text = format!("{}\n", serde_json::to_string_pretty(value).unwrap());
    if std::env::var_os("BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &text).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == text, "{} is stale; run this test with BLESS=1", path.display());
}

#[test]
fn the_registry_is_what_the_code_says() {
    compare("registry/tools.json", &registry::document());
}

#[test]
fn there_is_an_example_of_every_call() {
    compare("examples/nostr/calls.json", &registry::calls());
}

#[test]
fn the_registry_fits_its_schemas() {
    let read = |path: &str| -> Value {
        serde_json::from_str(&std::fs::read_to_string(repository().join(path)).unwrap()).expect(path)
    };
    let (mut whole, tool) = (read("schemas/registry.schema.json"), read("schemas/tool.schema.json"));
    for schema in [&whole, &tool] {
        assert!(jsonschema::draft7::meta::is_valid(schema));
    }
    let document = registry::document();
    let validator = jsonschema::validator_for(&tool).unwrap();
    for entry in document["tools"].as_array().unwrap() {
        assert!(validator.validate(entry).is_ok(), "{}: {:?}", entry["name"], validator.validate(entry));
    }
    // Nothing is fetched here, so what is referred to was looked at above.
    assert_eq!(whole["properties"]["tools"]["items"], json!({ "$ref": "tool.schema.json" }));
    whole["properties"]["tools"]["items"] = json!({});
    assert!(jsonschema::is_valid(&whole, &document));
    assert_eq!(document["spec_version"], document["registry_version"]);
}

#[test]
fn every_domain_is_described() {
    let page = std::fs::read_to_string(repository().join("docs/tool-naming.md")).unwrap();
    for tool in tools() {
        let domain = tool.about.name.split('_').nth(1).unwrap();
        assert!(page.contains(&format!("`{domain}`")), "docs/tool-naming.md does not name `{domain}`");
    }
}

struct Nobody;

impl Host for Nobody {
    async fn request(&self, request: Request, _reason: Reason) -> Answer {
        Answer::Error(Error::method_not_found(request.method()))
    }

    async fn notification(&self, _note: Notification) {}

    fn stray(&self, _text: &[u8]) {}
}

async fn check_service<S: Service>(service: S) -> Report {
    let (ours, theirs) = tokio::io::duplex(1024 * 1024);
    let (reader, writer) = tokio::io::split(theirs);
    let streams =
        Streams { reader: Box::pin(reader), writer: Box::pin(writer), closed: Box::pin(std::future::pending()) };
    tokio::spawn(serve(Arc::new(service), streams));
    let (output, input) = tokio::io::split(ours);
    let (outlet, drain) = outlet();
    tokio::spawn(drain.pump(input));
    let client = Client::new(outlet);
    tokio::spawn({
        let client = client.clone();
        async move { client.run(&Arc::new(Nobody), output).await }
    });
    let about = json!({ "name": "test", "version": "1" });
    let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": about });
    let profile = Profile::from_initialize(params.to_string().as_bytes()).unwrap();
    client.introduce(&profile, Opening::Legacy, Patience { silence: SOON, total: SOON }).await.unwrap();
    check(&client).await.unwrap()
}

#[tokio::test]
async fn our_server_keeps_the_rules() {
    let world = World::new().await;
    let mut client = world.client("2025-06-18").await;
    client.call("nostr_keys_generate", json!({ "label": "work" })).await.unwrap();
    let report = check_service(Server::new(Session::open(world.options()).unwrap())).await;
    assert_eq!(report.findings, []);
    assert_eq!(report.tools, tools().len());
}

/// A server that says yes to everything.
struct Lax;

impl Service for Lax {
    fn info(&self) -> Bytes {
        Bytes::from_static(br#"{"name":"lax","version":"1"}"#)
    }

    async fn describe(&self, _peer: &Arc<Peer>, _profile: &Arc<Profile>) -> Description {
        Description {
            capabilities: br#"{"tools":{}}"#.to_vec(),
            info: self.info(),
            instructions: None,
            more: Vec::new(),
        }
    }

    async fn request(&self, call: &Call) -> Answer {
        let tools = json!([
            { "name": "nostr_keys_verify", "inputSchema": { "type": "object", "properties": { "key": { "type": ["string", "null"] } } } },
            { "name": "nostr_keys_list", "inputSchema": { "type": "object" }, "outputSchema": { "type": "object" } },
            { "name": "nostr_keys_list", "inputSchema": { "type": "object" } },
            { "name": "nostr_nip19_analyze", "inputSchema": { "type": "object", "properties": { "input": { "type": "integer" } }, "required": ["input", "extra"] } },
            { "name": "postNote", "inputSchema": { "type": "object" } },
        ]);
        let result = match call.method() {
            "tools/list" => json!({ "tools": tools }),
            _ => json!({ "content": [{ "type": "text", "text": "{\"done\":true}" }] }),
        };
        Answer::Result(result.to_string().into_bytes())
    }
}

#[tokio::test]
async fn what_is_wrong_with_a_server_is_found() {
    let report = check_service(Lax).await;
    assert!(!report.is_conformant());
    assert_eq!(report.tools, 3);
    let has = |level: Level, rule: Rule, tool: &str, words: &str| {
        let found = report.findings.iter().any(|finding| {
            finding.level == level
                && finding.rule == rule
                && finding.tool.as_deref() == Some(tool)
                && finding.message.contains(words)
        });
        assert!(found, "{tool} {words}: {:#?}", report.findings);
    };
    has(Level::Error, Rule::Names, "nostr_keys_generate", "missing");
    has(Level::Error, Rule::Names, "nostr_keys_list", "twice");
    has(Level::Warning, Rule::Names, "postNote", "no name of the form");
    has(Level::Warning, Rule::Schemas, "nostr_keys_verify", "several types");
    has(Level::Error, Rule::Schemas, "nostr_nip19_analyze", "of type");
    has(Level::Warning, Rule::Schemas, "nostr_nip19_analyze", "requires \"extra\"");
    has(Level::Error, Rule::Input, "nostr_keys_verify", "accepted");
    has(Level::Error, Rule::Output, "nostr_keys_verify", "does not fit the registry");
    has(Level::Error, Rule::Output, "nostr_keys_list", "structuredContent");
}
