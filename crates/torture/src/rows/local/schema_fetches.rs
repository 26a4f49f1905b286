//! R13: schemas that name addresses of elsewhere. Nobody may go there, neither who offers such a tool nor who uses it.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Map, Value, json};

use super::super::{Row, Setting};
use super::listener::Listener;
use crate::nostr_side::customer::Customer;
use crate::nostr_side::desk::UNLIMITED;
use crate::nostr_side::fake_relay::FakeRelay;
use crate::nostr_side::host::Host;
use crate::nostr_side::shop::{Shop, say_tool};
use crate::nostr_side::world::World;
use crate::nostr_side::{actor, harm};
use crate::score::Score;

pub(super) const ROW: Row = Row::new("R13", "schemas that name files and addresses of elsewhere", run);

fn run(_: Setting) -> Score {
    let (world, relay) = (World::new(), FakeRelay::start());
    let (web, other) = (Listener::start(), Listener::start());
    web.redirects_to(&format!("http://{}/final.json", other.address));
    let pipe = world.path().join("pipe.json");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    let schemas = schemas(&web, &other, &pipe);
    let path = world.path().join("schemas.json");
    fs::write(&path, Value::from(schemas.clone()).to_string()).unwrap();
    let option = format!("schemas={}", path.display());
    let mut calls = 0_usize;

    // Who offers them.
    let provider = world.serve_actor(&[&relay.url()], &UNLIMITED, &[harm::HARM, &option]);
    let customer = Customer::new(&relay.url(), &provider.pubkey);
    let list = customer.ask("list-tools", &json!("")).body();
    let offered = |name: &str| list["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == name);
    let offered_by_us = schemas.keys().filter(|name| offered(name)).count();
    for name in schemas.keys() {
        drop(customer.call(name, &json!({ "x": { "a": 1 } })));
        calls += 1;
    }

    // Who uses them, by way of relays.
    let mut shop = Shop::closed(&relay);
    let tool = |(name, schema): (&String, &Value)| {
        let mut tool = say_tool();
        tool["tool_name"] = json!(name);
        tool["input_schema"] = schema.clone();
        tool
    };
    shop.tools = schemas.iter().map(tool).collect();
    shop.publish(&shop.manifest("nip04 nip59"));
    let mut host = Host::start(&world, &[&shop.npub(), "--relay", &relay.url()]);
    let seen = host.ask("tools/list", &json!({}))["tools"].as_array().unwrap().len();
    for name in schemas.keys() {
        let id = host.call(name, &json!({ "x": { "a": 1 } }));
        // Some are refused before they are sent; the others are answered.
        while host.process.stdout.look(|lines| lines.iter().all(|line| !line.contains(&format!("\"id\":{id}")))) {
            if let Some(order) = shop.order_within(std::time::Duration::from_millis(200)) {
                shop.say(&order, &json!({ "content": [{ "type": "text", "text": "said" }] }));
            }
        }
        calls += 1;
    }

    // Who has such a server behind the gateway.
    let program = std::env::current_exe().unwrap();
    let server = [program.to_str().unwrap(), actor::ACTOR, world.path().to_str().unwrap(), &option];
    let mut local = Host::over(world.rialto("local", &[&["gateway", "--stdio", "--"], &server[..]].concat()));
    local.begin();
    local.ask("tools/list", &json!({}));
    for name in schemas.keys() {
        local.ask("tools/call", &json!({ "name": name, "arguments": { "x": { "a": 1 } } }));
        calls += 1;
    }

    let mut score = Score::default();
    score.at_least("schemas", schemas.len(), 30_usize);
    score.at_least("calls", calls, 90_usize);
    score.none("connections", web.count() + other.count());
    // Whoever had opened it for reading would still wait for us to write.
    let is_read = OpenOptions::new().write(true).custom_flags(NONBLOCK).open(&pipe).is_ok();
    score.none("files opened", usize::from(is_read));
    // And the traps would have worked.
    let reader = OpenOptions::new().read(true).custom_flags(NONBLOCK).open(&pipe).unwrap();
    assert!(OpenOptions::new().write(true).custom_flags(NONBLOCK).open(&pipe).is_ok());
    drop(reader);
    web.catches();
    // Without these nothing would have been tried.
    score.at_least("tools offered", offered_by_us, 1_usize);
    score.at_least("tools seen by a customer", seen, 1_usize);
    score
}

/// `O_NONBLOCK`, which the standard library has no name for.
const NONBLOCK: i32 = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();

/// Each address as a reference, as an identity, and as a dialect.
fn schemas(web: &Listener, other: &Listener, pipe: &Path) -> Map<String, Value> {
    let (web, other, pipe) = (web.address, other.address, pipe.display());
    let addresses = [
        format!("http://{web}/schema.json"),
        format!("http://{web}/redirect#/definitions/a"),
        format!("https://{web}/schema.json"),
        format!("http://localhost:{}/schema.json", web.port()),
        format!("http://user:word@{web}/schema.json"),
        format!("HTTP://{web}/SCHEMA"),
        format!("//{other}/schema.json"),
        format!("ws://{other}/schema.json"),
        format!("wss://{other}/schema.json"),
        format!("ftp://{other}/schema.json"),
        format!("file://{pipe}"),
        format!("file://localhost{pipe}"),
        format!("file:{pipe}"),
        format!("{pipe}"),
        "../../../../../../etc/passwd".to_owned(),
    ];
    let mut all = Map::new();
    all.insert("plain".to_owned(), json!({ "type": "object", "properties": { "x": { "type": "object" } } }));
    for (number, address) in addresses.iter().enumerate() {
        let object = |x: Value| json!({ "type": "object", "properties": { "x": x } });
        all.insert(format!("ref_{number}"), object(json!({ "$ref": address })));
        let mut base = object(json!({ "$ref": "more.json" }));
        base["$id"] = json!(address);
        all.insert(format!("id_{number}"), base);
        let mut own = object(json!({ "$ref": "#/$defs/a" }));
        own["$defs"] = json!({ "a": { "type": "object" } });
        own["$id"] = json!(address);
        all.insert(format!("own_{number}"), own);
        let mut dialect = object(json!(true));
        dialect["$schema"] = json!(address);
        all.insert(format!("schema_{number}"), dialect);
    }
    all
}
