//! Manifests and encrypted messages among others: an SDK that calls and serves by kind 4, and customers and a provider
//! written with another implementation of Nostr, on our relay and on another.
//!
//! The peers live in `interop/` and are installed by `interop/setup`. Where they are not installed these tests say what is
//! missing and pass; with `CI=true` they fail.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

#[path = "interop/peers.rs"]
mod peers;
#[path = "interop/relays.rs"]
mod relays;
#[path = "interop/report.rs"]
mod report;
#[path = "interop/run.rs"]
mod run;

use std::process::Command;
use std::thread;

use nostr::key::Keys;
use nostr::nips::nip19::ToBech32 as _;
use peers::{Peers, Server, words};
use relays::{Relay, other_relay, our_relay};
use run::run;
use serde_json::{Value, json};
use torture::nostr_side::PATIENCE;
use torture::nostr_side::client::Client;
use torture::nostr_side::event::{Draft, hex_key};
use torture::nostr_side::host::Host;
use torture::nostr_side::log::until;
use torture::nostr_side::process::Process;
use torture::nostr_side::world::{Provider, World};

/// How many calls are made at once.
const MANY: usize = 50;

/// Relays and providers of one test, in a world of their own. What is started last ends first.
struct Place {
    name: String,
    url: String,
    _relay: Process,
    world: World,
    peers: Peers,
}

impl Place {
    fn new(relay: Relay) -> Option<Self> {
        let peers = Peers::installed()?;
        let world = World::new();
        let (process, url) = relay(&peers, &world);
        // The harness gives each test a thread with its name.
        let name = thread::current().name().unwrap_or("manifest").to_owned();
        Some(Self { name, url, _relay: process, world, peers })
    }

    /// `rialto serve` in front of an official server.
    fn serve(&self) -> Provider {
        let server = self.peers.server(Server::TypeScript1);
        let server: Vec<&str> = server.iter().map(String::as_str).collect();
        let running = MANY.to_string();
        let flags = ["--name", "peer", "--rate-per-key", "0", "--max-running-per-key", &running];
        self.world.serve_command("provider", &[&self.url], &flags, &server)
    }

    /// Runs a peer to its end and gives what it printed.
    fn run(&self, peer: &str, command: &[String]) -> Value {
        report::parse(&run(&format!("{}-{peer}", self.name), command))
    }

    /// A customer with agentstr-sdk makes these calls, each with a key of its own.
    fn agentstr(&self, provider: &str, calls: &[(&str, Value)]) -> Vec<Value> {
        let mut command = [self.peers.agentstr_client(), words(&[&self.url, provider])].concat();
        for (tool, arguments) in calls {
            command.extend([(*tool).to_owned(), arguments.to_string()]);
        }
        self.run("agentstr", &command).as_array().unwrap().clone()
    }

    /// A customer with nostr-tools sends these messages at once.
    fn send(&self, provider: &Provider, how: &str, messages: &Value) -> Value {
        let command = words(&[&self.url, &provider.pubkey, how, &messages.to_string()]);
        self.run("nostr-tools", &[self.peers.dm_customer(), command].concat())
    }

    /// What a provider has published about itself, read with nostr-tools.
    fn published(&self, provider: &str, kind: u64) -> Vec<Value> {
        let command = [self.peers.dm_customer(), words(&[&self.url, provider, "read"])].concat();
        let read = self.run("nostr-tools", &command);
        read["events"].as_array().unwrap().iter().filter(|event| event["kind"] == kind).cloned().collect()
    }

    /// A provider made with nostr-tools.
    fn other_provider(&self, options: &Value) -> Other {
        let command = self.peers.dm_provider();
        let options = options.to_string();
        Other::start(Command::new(&command[0]).args(&command[1..]).args([&self.url, &options]))
    }

    /// A provider made with agentstr-sdk. It knows no manifests, so the test publishes one for it.
    fn agentstr_provider(&self) -> Other {
        let keys = Keys::generate();
        let command = self.peers.agentstr_server();
        let nsec = keys.secret_key().to_bech32().unwrap();
        let other = Other::start(Command::new(&command[0]).args(&command[1..]).arg(&self.url).env("NOSTR_NSEC", nsec));
        assert_eq!(other.pubkey, hex_key(&keys));
        let schema =
            json!({ "type": "object", "properties": { "a": { "type": "integer" }, "b": { "type": "integer" } } });
        let tool = json!({ "tool_name": "add", "description": "Adds two numbers.", "input_schema": schema });
        let manifest = json!({ "mcp_version": "0.1", "name": "adder", "description": "Adds", "tools": [tool] });
        let manifest = Draft::new(30200, manifest.to_string()).tag(&["d", "adder"]).tag(&["t", "mcp"]);
        let (taken, why) = Client::connect(&self.url, |_, _| ()).publish(&manifest.sign(&keys));
        assert!(taken, "{why}");
        other
    }

    /// Runs `rialto` for the customer; gives whether it succeeded and all it said.
    fn customer(&self, arguments: &[&str]) -> Said {
        let mut process = self.world.rialto("customer", &[arguments, &["--relay", &self.url, "--json"]].concat());
        let success = process.end().success();
        Said { success, told: process.told(), output: process.output() }
    }

    fn call(&self, npub: &str, tool: &str, arguments: &Value) -> Said {
        self.customer(&["call", npub, tool, "--args", &arguments.to_string()])
    }

    fn host(&self, npub: &str) -> Host {
        Host::start(&self.world, &[npub, "--relay", &self.url, "--prefix", "never"])
    }
}

struct Said {
    success: bool,
    output: String,
    told: String,
}

impl Said {
    #[track_caller]
    fn json(&self) -> Value {
        assert!(self.success, "{}", self.told);
        serde_json::from_str(&self.output).unwrap_or_else(|error| panic!("{error}: {}", self.told))
    }

    /// It failed, and said this.
    #[track_caller]
    fn failed(&self, part: &str) {
        assert!(!self.success && self.told.contains(part), "no failure with {part:?}:\n{}", self.told);
    }
}

/// A provider that is not ours.
struct Other {
    process: Process,
    pubkey: String,
    npub: String,
}

impl Other {
    fn start(command: &mut Command) -> Self {
        let process = Process::start(command);
        let ready = process.json_line("ready")["ready"].clone();
        let [pubkey, npub] = ["pubkey", "npub"].map(|name| ready[name].as_str().unwrap().to_owned());
        Self { process, pubkey, npub }
    }

    /// The requests that it has had.
    fn asked(&self) -> Vec<Value> {
        self.process.stdout.look(|lines| {
            let lines = lines.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            lines.filter_map(|line| line.get("asked").cloned()).collect()
        })
    }
}

fn text(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

fn request(tool: &str, arguments: &Value) -> String {
    json!({ "tool_name": tool, "arguments": arguments }).to_string()
}

fn served_to_agentstr(relay: Relay) {
    let Some(place) = Place::new(relay) else { return };
    let provider = place.serve();
    let calls = [
        ("echo", json!({ "text": "Grüße ✓" })),
        ("add", json!({ "a": 2, "b": 3 })),
        ("echo", json!({ "text": 7 })),
        ("nothing", json!({})),
        ("fail", json!({})),
    ];
    let answers = place.agentstr(&provider.pubkey, &calls);
    assert_eq!(answers[0], text("Grüße ✓"));
    assert_eq!(answers[1], json!({ "sum": 5 }));
    assert_eq!(answers[2]["error"]["code"], "invalid_input", "{}", answers[2]);
    assert_eq!(answers[2]["error"]["pointer"], "/text", "{}", answers[2]);
    assert_eq!(answers[3]["error"]["code"], "unknown_tool", "{}", answers[3]);
    assert_eq!(answers[4]["error"]["code"], "tool_error", "{}", answers[4]);
    assert_eq!(answers[4]["error"]["content"][0]["text"], "This tool always fails.", "{}", answers[4]);
}

#[test]
fn agentstr_calls_our_service() {
    served_to_agentstr(our_relay);
}

#[test]
fn agentstr_calls_our_service_over_another_relay() {
    served_to_agentstr(other_relay);
}

/// Its requests have an `action`, ours do not, so it complains about that. The complaint has no `e` and must arrive.
fn agentstr_answers_us(relay: Relay) {
    let Some(place) = Place::new(relay) else { return };
    let provider = place.agentstr_provider();
    let complaint = place.call(&provider.npub, "add", &json!({ "a": 2, "b": 3 })).json();
    assert_eq!(complaint["content"], text("'action'")["content"]);
    // One after the other, since nothing in an answer tells what it belongs to.
    let mut host = place.host(&provider.npub);
    let calls: Vec<u64> = (0..3).map(|number| host.call("add", &json!({ "a": number, "b": 1 }))).collect();
    for call in calls {
        assert_eq!(host.answer(call)["result"]["content"], text("'action'")["content"]);
    }
}

#[test]
fn agentstr_answers_our_calls() {
    agentstr_answers_us(our_relay);
}

#[test]
fn agentstr_answers_our_calls_over_another_relay() {
    agentstr_answers_us(other_relay);
}

#[test]
fn the_peers_understand_each_other() {
    let Some(place) = Place::new(our_relay) else { return };
    let call = [("add", json!({ "a": 2, "b": 3 }))];
    let server = place.agentstr_provider();
    assert_eq!(place.agentstr(&server.pubkey, &call), [text("5")]);
    let other = place.other_provider(&json!({}));
    assert_eq!(place.agentstr(&other.pubkey, &call), [json!({ "sum": 5 })]);
}

fn manifest_is_read(relay: Relay) {
    let Some(place) = Place::new(relay) else { return };
    let mut provider = place.serve();
    let manifests = place.published(&provider.pubkey, 30200);
    assert_eq!(manifests.len(), 1, "{manifests:#?}");
    let tags = manifests[0]["tags"].as_array().unwrap();
    for tag in [
        json!(["d", "peer"]),
        json!(["t", "mcp"]),
        json!(["t", "echo"]),
        json!(["encryption", "nip04 nip59"]),
        json!(["relays", place.url]),
    ] {
        assert!(tags.contains(&tag), "no {tag} in {tags:?}");
    }
    let content = report::parse(manifests[0]["content"].as_str().unwrap());
    assert_eq!((&content["mcp_version"], &content["name"]), (&json!("0.1"), &json!("peer")));
    let tool = |name: &str| {
        let tools = content["tools"].as_array().unwrap();
        tools.iter().find(|tool| tool["tool_name"] == name).unwrap_or_else(|| panic!("no {name} in {tools:#?}"))
    };
    let add = tool("add");
    assert_eq!(add["description"], "Adds two numbers; the sum is structured content.");
    assert_eq!(add["title"], "Add");
    assert_eq!(add["input_schema"]["required"], json!(["a", "b"]));
    assert_eq!(add["output_schema"]["required"], json!(["sum"]));
    assert!(["name", "inputSchema", "outputSchema"].iter().all(|name| add.get(name).is_none()), "{add:#}");
    assert_eq!(tool("echo")["output_schema"]["required"], json!(["content"]));
    let inboxes = place.published(&provider.pubkey, 10050);
    assert_eq!(inboxes.iter().map(|event| event["tags"].clone()).collect::<Vec<_>>(), [json!([["relay", place.url]])]);
    assert!(provider.process.stop().success());
    until("it is withdrawn", PATIENCE, || place.published(&provider.pubkey, 30200).is_empty());
}

#[test]
fn nostr_tools_reads_our_manifest_until_it_is_withdrawn() {
    manifest_is_read(our_relay);
}

#[test]
fn nostr_tools_reads_our_manifest_until_it_is_withdrawn_from_another_relay() {
    manifest_is_read(other_relay);
}

/// Many calls at once, every second one slow, and things that are not calls.
fn served_to_nostr_tools(how: &str, relay: Relay) {
    let Some(place) = Place::new(relay) else { return };
    let provider = place.serve();
    let calls = (0..MANY).map(|number| match number % 2 {
        // All different: the same text sealed twice in one second is one message.
        0 => (request("slow", &json!({ "ms": 1000 + number })), text("waited")),
        _ => (request("echo", &json!({ "text": format!("Nr. {number} ✓") })), text(&format!("Nr. {number} ✓"))),
    });
    // An answer may be as long as one event can hold, and sealing needs more room.
    let [long, too_long] = if how == "nip04" { [14_000, 20_000] } else { [7_000, 8_000] }.map(|size| "€".repeat(size));
    let others = [
        (request("echo", &json!({ "text": long })), text(&long)),
        (request("echo", &json!({ "text": too_long })), json!("result_too_large")),
        (request("add", &json!({ "a": 2, "b": 3 })), json!({ "sum": 5 })),
        (request("add", &json!({ "a": 2, "b": "3" })), json!("invalid_input")),
        (request("nothing", &json!({})), json!("unknown_tool")),
        ("[1, 2]".to_owned(), json!("invalid_request")),
        (r#"{"tool_name": "echo"}"#.to_owned(), json!("invalid_input")),
        ("Good morning!".to_owned(), json!(null)),
        (text("a late answer").to_string(), json!(null)),
        (json!({ "error": { "code": "timeout", "message": "a late error" } }).to_string(), json!(null)),
    ];
    // Those that must not be answered come first, so that they have been read when the others are answered.
    let calls: Vec<(String, Value)> = calls.chain(others).rev().collect();
    let messages = calls.iter().map(|(text, expected)| json!({ "text": text, "silent": expected.is_null() }));
    let said = place.send(&provider, how, &messages.collect());
    let answers = said["answers"].as_array().unwrap();
    let order: Vec<u64> = answers.iter().map(|answer| answer["request"].as_u64().unwrap()).collect();
    assert!(!order.is_sorted(), "nothing came out of order: {order:?}");
    for (number, (text, expected)) in calls.iter().enumerate() {
        let of_it: Vec<&Value> = answers.iter().filter(|answer| answer["request"] == number).collect();
        if expected.is_null() {
            assert!(of_it.is_empty(), "{text} was answered: {of_it:#?}");
            continue;
        }
        let what: String = text.chars().take(200).collect();
        assert_eq!(of_it.len(), 1, "answers to {what}: {of_it:#?}");
        assert_eq!(of_it[0]["kind"], if how == "nip04" { 4 } else { 14 });
        assert_eq!(of_it[0]["author"], provider.pubkey);
        assert_eq!(of_it[0]["tags"], json!([["p", said["me"]], ["e", said["ids"][number]]]));
        let body = report::parse(of_it[0]["content"].as_str().unwrap());
        let seen = if expected.is_string() { &body["error"]["code"] } else { &body };
        assert!(seen == expected, "{what}: {}", body.to_string().chars().take(400).collect::<String>());
    }
}

#[test]
fn kind_4_requests_made_by_nostr_tools_are_served() {
    served_to_nostr_tools("nip04", our_relay);
}

#[test]
fn sealed_requests_made_by_nostr_tools_are_served_sealed() {
    served_to_nostr_tools("nip17", our_relay);
}

#[test]
fn kind_4_requests_made_by_nostr_tools_are_served_over_another_relay() {
    served_to_nostr_tools("nip04", other_relay);
}

#[test]
fn sealed_requests_made_by_nostr_tools_are_served_sealed_over_another_relay() {
    served_to_nostr_tools("nip17", other_relay);
}

/// Finds, looks at and calls a provider that was written with nostr-tools.
fn other_provider_is_used(options: &Value, kind: u64, relay: Relay) {
    let Some(place) = Place::new(relay) else { return };
    let provider = place.other_provider(options);
    let npub = &provider.npub;
    let found = place.customer(&["find"]).json();
    let found = found.as_array().unwrap().iter().find(|found| found["npub"] == **npub);
    let found = found.unwrap_or_else(|| panic!("{npub} is not found"));
    assert_eq!((&found["name"], &found["sealed"]), (&json!("other"), &json!(kind == 14)), "{found:#}");
    let shown = place.customer(&["show", npub]);
    let tools: Vec<Value> = shown.json()["tools"].as_array().unwrap().clone();
    let mut names: Vec<&str> = tools.iter().map(|tool| tool["definition"]["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["add", "bare", "echo", "fail", "twice", "wrong"]);
    assert!(shown.told.contains("elsewhere"), "what is left out is not told: {}", shown.told);

    place.call(npub, "add", &json!({ "a": 2 })).failed("`b`");
    assert_eq!(provider.asked().len(), 0, "{:#?}", provider.asked());
    let sum = place.call(npub, "add", &json!({ "a": 2, "b": 3 })).json();
    assert_eq!(sum["structuredContent"], json!({ "sum": 5 }), "{sum:#}");
    assert_eq!(place.call(npub, "echo", &json!({ "text": "Grüße ✓" })).json()["content"], text("Grüße ✓")["content"]);
    assert_eq!(place.call("other", "twice", &json!({})).json()["content"], text("first")["content"]);
    assert!(place.call(npub, "bare", &json!({})).json().to_string().contains("goes"));
    place.call(npub, "fail", &json!({})).failed("not today");
    place.call(npub, "wrong", &json!({})).failed("sum");

    let asked = provider.asked();
    assert_eq!(asked[0]["request"], json!({ "tool_name": "add", "arguments": { "a": 2, "b": 3 } }));
    for asked in &asked {
        assert_eq!((&asked["kind"], &asked["tags"][0]), (&json!(kind), &json!(["p", provider.pubkey])), "{asked:#}");
        assert!(asked["tags"].as_array().unwrap().iter().all(|tag| tag[0] != "e"), "{asked:#}");
    }
}

#[test]
fn a_provider_made_with_nostr_tools_is_used_by_kind_4() {
    other_provider_is_used(&json!({}), 4, our_relay);
}

#[test]
fn a_provider_made_with_nostr_tools_is_used_by_sealed_messages() {
    other_provider_is_used(&json!({ "encryption": "nip04 nip59" }), 14, our_relay);
}

#[test]
fn a_provider_made_with_nostr_tools_that_reads_both_is_used_by_kind_4_if_asked_to() {
    let Some(place) = Place::new(our_relay) else { return };
    let provider = place.other_provider(&json!({ "encryption": "nip04 nip59" }));
    for (flags, kind) in [(&["--plain"][..], 4), (&["--wire", "manifest"], 14), (&[], 14)] {
        let call = ["call", &provider.npub, "add", "--args", r#"{"a":2,"b":3}"#];
        let sum = place.customer(&[&call[..], flags].concat()).json();
        assert_eq!(sum["structuredContent"], json!({ "sum": 5 }), "{sum:#}");
        assert_eq!(provider.asked().last().unwrap()["kind"], kind, "{flags:?}");
    }
}

#[test]
fn a_provider_made_with_nostr_tools_is_used_over_another_relay() {
    other_provider_is_used(&json!({ "encryption": "nip04" }), 4, other_relay);
}

#[test]
fn a_provider_made_with_nostr_tools_is_used_sealed_over_another_relay() {
    other_provider_is_used(&json!({ "encryption": "nip59" }), 14, other_relay);
}

/// A host makes many calls at once; gives how many were open at the other end at most.
fn hosted(options: &Value, calls: u64) -> Option<u64> {
    let place = Place::new(our_relay)?;
    let provider = place.other_provider(options);
    let mut host = place.host(&provider.npub);
    let names = host.ask("tools/list", &json!({}))["tools"].to_string();
    assert!(names.contains("echo") && !names.contains("elsewhere"), "{names}");
    let ids: Vec<u64> = (0..calls).map(|number| host.call("add", &json!({ "a": number, "b": 1000 }))).collect();
    for (number, id) in (0..).zip(ids) {
        let answer = host.answer(id);
        assert_eq!(answer["result"]["structuredContent"], json!({ "sum": number + 1000 }), "{answer:#}");
    }
    provider.asked().iter().map(|asked| asked["open"].as_u64().unwrap()).max()
}

/// The first call is answered at once, the others together and backwards.
#[test]
fn a_host_gets_answers_by_kind_4_that_come_out_of_order() {
    let Some(open) = hosted(&json!({ "hold": 10 }), 11) else { return };
    assert_eq!(open, 10);
}

#[test]
fn a_host_gets_sealed_answers_that_come_out_of_order() {
    let Some(open) = hosted(&json!({ "hold": 10, "encryption": "nip04 nip59" }), 11) else { return };
    assert_eq!(open, 10);
}

#[test]
fn a_host_waits_for_each_answer_that_does_not_tell_what_it_belongs_to() {
    for encryption in ["nip04", "nip59"] {
        let Some(open) = hosted(&json!({ "mute": true, "encryption": encryption }), 10) else { return };
        assert_eq!(open, 1, "{encryption}");
    }
}

/// Sealed messages with the same text and time have the same id, and would be one request.
#[test]
fn a_host_can_make_the_same_call_many_times_at_once() {
    for encryption in ["nip04", "nip59"] {
        let Some(place) = Place::new(our_relay) else { return };
        let provider = place.other_provider(&json!({ "encryption": encryption }));
        let mut host = place.host(&provider.npub);
        let ids: Vec<u64> = (0..10).map(|_| host.call("add", &json!({ "a": 2, "b": 3 }))).collect();
        for id in ids {
            let answer = host.answer(id);
            assert_eq!(answer["result"]["structuredContent"], json!({ "sum": 5 }), "{encryption}: {answer:#}");
        }
        assert_eq!(provider.asked().len(), 10, "{encryption}");
    }
}

/// The provider's answers do not tell what they belong to. Calls by separate processes have the same key all the same.
fn mute(encryption: &str) -> Option<(Place, Other)> {
    let place = Place::new(our_relay)?;
    let provider = place.other_provider(&json!({ "mute": true, "encryption": encryption }));
    // Makes the key, so that all share it.
    assert!(place.call(&provider.npub, "echo", &json!({ "text": "hello" })).success);
    Some((place, provider))
}

/// Answers of the same second; the relay still has the one before.
fn one_after_the_other(encryption: &str) {
    let Some((place, provider)) = mute(encryption) else { return };
    for number in 0..5 {
        let sum = place.call(&provider.npub, "add", &json!({ "a": number, "b": 1000 })).json();
        assert_eq!(sum["structuredContent"], json!({ "sum": number + 1000 }), "{sum:#}");
    }
}

#[test]
fn calls_one_after_the_other_get_their_own_answers() {
    one_after_the_other("nip04");
}

#[test]
fn sealed_calls_one_after_the_other_get_their_own_answers() {
    one_after_the_other("nip59");
}

/// A call may fail if another is open. It must not give the answer of another.
#[test]
fn calls_by_several_processes_get_their_own_answers() {
    let Some((place, provider)) = mute("nip04") else { return };
    let calls: Vec<Process> = (0..6)
        .map(|number| {
            let arguments = json!({ "a": number, "b": 1000 }).to_string();
            let call = ["call", &provider.npub, "add", "--args", &arguments, "--relay", &place.url, "--json"];
            place.world.rialto("customer", &call)
        })
        .collect();
    for (number, mut call) in (0..).zip(calls) {
        if call.end().success() {
            let sum: Value = serde_json::from_str(&call.output()).unwrap();
            assert_eq!(sum["structuredContent"], json!({ "sum": number + 1000 }), "{sum:#}");
        }
    }
}

#[test]
fn find_and_show_name_the_same_tools() {
    let Some(place) = Place::new(our_relay) else { return };
    let provider = place.other_provider(&json!({}));
    let names = |tools: &Value, at: &str| -> Vec<String> {
        tools.as_array().unwrap().iter().map(|tool| tool.pointer(at).unwrap().to_string()).collect()
    };
    let found = names(&place.customer(&["find"]).json()[0]["tools"], "/name");
    let shown = names(&place.customer(&["show", &provider.npub]).json()["tools"], "/definition/name");
    assert_eq!(found, shown);
}
