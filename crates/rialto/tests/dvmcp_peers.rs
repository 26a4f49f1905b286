//! Rialto's Nostr side among others: official MCP SDKs at both ends of it, events made by another implementation of Nostr,
//! and another relay in the middle.
//!
//! The peers live in `interop/` and are installed by `interop/setup`. Where they are not installed these tests say what is
//! missing and pass; with `CI=true` they fail.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stderr, reason = "a test that cannot run says so")]

#[path = "interop/peers.rs"]
mod peers;
#[path = "interop/relays.rs"]
mod relays;
#[path = "interop/report.rs"]
mod report;
#[path = "interop/run.rs"]
mod run;

use peers::{Client, Peers, Server, words};
use relays::{Relay, other_relay, our_relay};
use run::run;
use serde_json::{Value, json};
use torture::nostr_side::PATIENCE;
use torture::nostr_side::customer::Customer;
use torture::nostr_side::event::{Draft, Event, hex_key};
use torture::nostr_side::fake_provider::FakeProvider;
use torture::nostr_side::fake_relay::FakeRelay;
use torture::nostr_side::log::{Log, until};
use torture::nostr_side::world::{Provider, World};

/// A provider in front of an official server.
fn serve(peers: &Peers, world: &World, url: &str, server: Server) -> Provider {
    let server = peers.server(server);
    let server: Vec<&str> = server.iter().map(String::as_str).collect();
    world.serve_command(
        "provider",
        &[url],
        &["--name", "peer", "--rate-per-key", "0", "--max-running-per-key", "60", "--max-running", "60"],
        &server,
    )
}

/// `rialto use` of a provider, as a command for an MCP client, in a home of its own.
fn use_command(world: &World, url: &str, provider: &Provider) -> Vec<String> {
    let home = world.home("customer");
    let variable = |name: &str, part: &str| format!("{name}={}", home.join(part).display());
    let mut command = words(&["env"]);
    command.extend([
        variable("HOME", ""),
        variable("XDG_DATA_HOME", "data"),
        variable("XDG_STATE_HOME", "state"),
        variable("XDG_CONFIG_HOME", "config"),
        variable("XDG_CACHE_HOME", "cache"),
    ]);
    command.extend(words(&[
        torture::rialto(),
        "use",
        provider.ready["npub"].as_str().unwrap(),
        "--relay",
        url,
        "--prefix",
        "never",
    ]));
    command
}

/// What the wire adds to a result is no difference.
fn without_additions(value: &mut Value) {
    match value {
        Value::Object(members) => {
            if members.get("isError") == Some(&json!(false)) {
                members.remove("isError");
            }
            if let Some(metadata) = members.get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.remove("processing_time");
                metadata.remove("error");
                if metadata.is_empty() {
                    members.remove("metadata");
                }
            }
            // Who it came from stands beside what the server said.
            if let Some(meta) = members.get_mut("_meta").and_then(Value::as_object_mut) {
                meta.remove("rialto/provider");
                if meta.is_empty() {
                    members.remove("_meta");
                }
            }
            members.values_mut().for_each(without_additions);
        }
        Value::Array(items) => items.iter_mut().for_each(without_additions),
        _ => {}
    }
}

fn comparable(text: &str) -> String {
    let mut report = report::parse(text);
    // What stands beside a list, not in it, is not carried.
    report["tools"].as_object_mut().map(|list| list.remove("_meta"));
    without_additions(&mut report);
    format!("{report:#}")
}

/// A client must see the same over Nostr as directly.
fn same_over_nostr(name: &str, client: Client, server: Server, relay: Relay) {
    let Some(peers) = Peers::installed() else { return };
    let world = World::new();
    let (_relay, url) = relay(&peers, &world);
    let provider = serve(&peers, &world, &url, server);
    let only = ["--only", "wire"];
    let direct = run(&format!("{name}-direct"), &peers.client(client, &only, &peers.server(server)));
    let over = run(&format!("{name}-nostr"), &peers.client(client, &only, &use_command(&world, &url, &provider)));
    let differences = report::differences(&comparable(&direct), &comparable(&over));
    assert!(differences.is_empty(), "{name}: Nostr changed what the client sees\n{differences}");
}

macro_rules! pairs {
    ($($name:ident: $client:ident => $relay:ident => $server:ident;)*) => {$(
        #[test]
        fn $name() {
            same_over_nostr(stringify!($name), Client::$client, Server::$server, $relay);
        }
    )*};
}

pairs! {
    python_client_over_nostr_to_typescript_server: PythonLegacy => our_relay => TypeScript1;
    typescript_1_client_over_nostr_to_python_server: TypeScript1 => our_relay => Python;
    modern_python_client_over_nostr_to_typescript_2_server: PythonModern => our_relay => TypeScript2;
    modern_typescript_2_client_over_nostr_to_rust_server: TypeScript2Modern => our_relay => Rust;
    typescript_1_client_over_another_relay_to_python_server: TypeScript1 => other_relay => Python;
}

/// What a customer written with nostr-tools got.
fn ask_with_nostr_tools(peers: &Peers, name: &str, question: [&str; 5]) -> Vec<Value> {
    let report = report::parse(&run(name, &[peers.nostr_customer(), words(&question)].concat()));
    report["answers"].as_array().unwrap().clone()
}

fn statuses(answers: &[Value]) -> Vec<(u64, String)> {
    let status = |answer: &Value| {
        let tags = answer["tags"].as_array().unwrap();
        let tag = tags.iter().find(|tag| tag[0] == "status");
        (answer["kind"].as_u64().unwrap(), tag.map_or_else(String::new, |tag| tag[1].as_str().unwrap().to_owned()))
    };
    answers.iter().map(status).collect()
}

fn served_to_nostr_tools(name: &str, how: &str, relay: Relay) {
    let Some(peers) = Peers::installed() else { return };
    let world = World::new();
    let (_relay, url) = relay(&peers, &world);
    let provider = serve(&peers, &world, &url, Server::TypeScript1);
    let ask = |number: u32, command: &str, content: &Value| {
        let content = content.as_str().map_or_else(|| content.to_string(), str::to_owned);
        let question = [&url, &provider.pubkey, how, command, &content];
        ask_with_nostr_tools(&peers, &format!("{name}-{number}"), question)
    };
    let body = |answers: &[Value]| report::parse(answers.last().unwrap()["content"].as_str().unwrap());
    let list = ask(1, "list-tools", &json!(""));
    assert_eq!(list.len(), 1, "{list:#?}");
    assert_eq!(body(&list)["tools"][0]["name"], "echo");
    let echo = ask(2, "execute-tool", &json!({ "name": "echo", "parameters": { "text": "Grüße ✓" } }));
    let expected = [(7000, "processing"), (7000, "success"), (6910, "success")];
    assert_eq!(statuses(&echo), expected.map(|(kind, status)| (kind, status.to_owned())));
    assert_eq!(body(&echo)["content"][0]["text"], "Grüße ✓");
    assert!(echo.iter().all(|answer| answer["author"] == provider.pubkey));
    let wrong = ask(3, "execute-tool", &json!({ "name": "echo", "parameters": { "text": 7 } }));
    assert_eq!(body(&wrong)["metadata"]["error"]["code"], "invalid_input");
}

#[test]
fn nostr_tools_and_our_fake_provider_understand_each_other() {
    let Some(peers) = Peers::installed() else { return };
    let relay = FakeRelay::start();
    for how in ["plain", "sealed"] {
        let mut provider = FakeProvider::new(&relay);
        let pubkey = hex_key(&provider.keys);
        let answering = std::thread::spawn(move || {
            let asked = provider.execute_request();
            provider.say(&asked, "well");
            asked.sealed
        });
        let question = [&relay.url(), &pubkey, how, "execute-tool", r#"{"name":"say","parameters":{}}"#];
        let answers = ask_with_nostr_tools(&peers, &format!("nostr-tools-fake-{how}"), question);
        assert_eq!(statuses(&answers), [(6910, "success".to_owned())]);
        assert_eq!(answering.join().unwrap(), how == "sealed");
    }
}

#[test]
fn our_client_speaks_to_another_relay() {
    let Some(peers) = Peers::installed() else { return };
    let world = World::new();
    let (_relay, url) = other_relay(&peers, &world);
    let log = Log::default();
    let kept = log.clone();
    let client = torture::nostr_side::client::Client::connect(&url, move |_, event| kept.push(event));
    let event = Draft::new(5910, "hello").tag(&["c", "list-tools"]).sign(&nostr::key::Keys::generate());
    assert!(client.publish(&event).0);
    client.subscribe("all", &[json!({ "kinds": [5910], "#c": ["list-tools"] })]);
    assert_eq!(log.look(<[Event]>::to_vec), [event]);
}

#[test]
fn a_plain_request_made_by_nostr_tools_is_served() {
    served_to_nostr_tools("nostr-tools-plain", "plain", our_relay);
}

#[test]
fn a_sealed_request_made_by_nostr_tools_is_served_sealed() {
    served_to_nostr_tools("nostr-tools-sealed", "sealed", our_relay);
}

#[test]
fn a_plain_request_made_by_nostr_tools_is_served_over_another_relay() {
    served_to_nostr_tools("nostr-tools-plain-other", "plain", other_relay);
}

#[test]
fn a_sealed_request_made_by_nostr_tools_is_served_over_another_relay() {
    served_to_nostr_tools("nostr-tools-sealed-other", "sealed", other_relay);
}

/// Runs a command of the customer to its end and gives its output.
fn customer(world: &World, arguments: &[&str]) -> String {
    let mut process = world.rialto("customer", arguments);
    let status = process.end();
    assert!(status.success(), "{arguments:?}: {status}\n{}", process.told());
    process.output()
}

#[test]
fn our_own_commands_work_over_another_relay() {
    let Some(peers) = Peers::installed() else { return };
    let world = World::new();
    let (_relay, url) = other_relay(&peers, &world);
    let provider =
        world.serve_command("provider", &[&url], &["--name", "example"], &[torture::rialto(), "mcp", "example"]);
    let npub = provider.ready["npub"].as_str().unwrap();
    let found = customer(&world, &["find", "--relay", &url, "--json"]);
    assert!(found.contains(&provider.pubkey) || found.contains(npub), "{found}");
    let shown = customer(&world, &["show", npub, "--relay", &url, "--json"]);
    assert!(shown.contains("echo"), "{shown}");
    for flags in [&["--plain"][..], &[]] {
        let call = ["call", npub, "add", "--args", r#"{"a":2,"b":3}"#, "--relay", &url];
        let result = customer(&world, &[&call[..], flags].concat());
        assert!(result.contains('5'), "{result}");
    }
    let raw = Customer::new(&url, &provider.pubkey);
    assert_eq!(raw.call("echo", &json!({ "text": "hello" })).text(), "hello");
    assert_eq!(raw.ask_sealed("execute-tool", &json!({ "name": "nothing", "parameters": {} })).error(), "unknown_tool");
}

#[test]
fn a_stop_withdraws_the_announcement_from_another_relay() {
    let Some(peers) = Peers::installed() else { return };
    let world = World::new();
    let (_relay, url) = other_relay(&peers, &world);
    let mut provider =
        world.serve_command("provider", &[&url], &["--name", "gone"], &[torture::rialto(), "mcp", "example"]);
    let announced = || {
        let log = Log::default();
        let kept = log.clone();
        let client = torture::nostr_side::client::Client::connect(&url, move |_, event| kept.push(event));
        client.subscribe("all", &[json!({ "kinds": [31990], "authors": [provider.pubkey] })]);
        log.look(<[Event]>::len)
    };
    until("it is announced", PATIENCE, || announced() == 1);
    assert!(provider.process.stop().success());
    until("it is withdrawn", PATIENCE, || announced() == 0);
}
