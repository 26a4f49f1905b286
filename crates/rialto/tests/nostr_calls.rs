//! Every tool of the registry, called over standard input and output: with its example, without each thing that it needs, with
//! each thing of the wrong type, without a relay, with one that refuses, and without a key.
//!
//! The calls are those of `examples/nostr/calls.json`, so a tool that is added is called as well, and must say in
//! [`outcomes`] what it does when something is missing.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

#[path = "interop/peers.rs"]
mod peers;
#[path = "interop/relays.rs"]
mod relays;

mod nostr_calls {
    mod blobs;
    pub(crate) mod blossom;
    pub(crate) mod invoice;
    pub(crate) mod outcomes;
    mod resources;
    pub(crate) mod stage;
    pub(crate) mod web;
}

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::thread;

use nostr_calls::outcomes::{NO_RELAY, OUTCOMES, Outcome};
use nostr_calls::stage::{Stage, User};
use peers::Peers;
use relays::other_relay;
use serde_json::{Value, json};
use torture::nostr_side::PATIENCE;
use torture::nostr_side::client::Client;
use torture::nostr_side::event::{Event, hex_key};
use torture::nostr_side::fake_relay::{FakeRelay, Verdict};
use torture::nostr_side::host::Host;
use torture::nostr_side::log::Log;
use torture::nostr_side::world::World;

/// The version whose errors have numbers of their own.
const VERSION: &str = "2025-06-18";

/// The one that has no handshake.
const STATELESS: &str = "2026-07-28";

/// Those in which errors look different.
const ERAS: [&str; 3] = [VERSION, "2025-11-25", STATELESS];

/// How many tools are tried at once.
const AT_ONCE: usize = 6;

fn file(path: &str) -> Value {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// The tools of the registry, in its order, each with its example.
fn tools() -> Vec<(String, Value, Value)> {
    let calls = file("examples/nostr/calls.json");
    let examples: BTreeMap<&str, &Value> =
        calls.as_array().unwrap().iter().map(|call| (call["name"].as_str().unwrap(), &call["arguments"])).collect();
    let registry = file("registry/tools.json");
    let tools = registry["tools"].as_array().unwrap().iter();
    tools
        .map(|tool| {
            let name = tool["name"].as_str().unwrap();
            (name.to_owned(), tool.clone(), examples[name].clone())
        })
        .collect()
}

/// What came of a call. What is given must be what the tool says that it gives.
fn outcome(tool: &Value, answer: &Value) -> Outcome {
    if let Some(error) = answer.get("error") {
        let reason = error["data"]["reason"].as_str().unwrap_or_default().to_owned();
        return Outcome::Fails(error["code"].as_i64().unwrap(), reason.leak());
    }
    let result = &answer["result"];
    assert_ne!(result["isError"], true, "{answer}");
    let output = &result["structuredContent"];
    let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(&text, output, "the text says the same");
    if let Err(misfit) = jsonschema::validate(&tool["output_schema"], output) {
        panic!("{}: {misfit} in {output}", tool["name"]);
    }
    Outcome::Works
}

/// Does something with every tool, several at a time, and complains about all at once.
fn with_every_tool(check: impl Fn(&str, &Value, &Value) -> Result<(), String> + Sync) {
    let left = Mutex::new(tools());
    let complaints = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let next = left.lock().unwrap_or_else(PoisonError::into_inner).pop();
                    let Some((name, tool, example)) = next else { return };
                    if let Err(complaint) = check(&name, &tool, &example) {
                        complaints.lock().unwrap().push(format!("{name}: {complaint}"));
                    }
                }
            });
        }
    });
    let complaints = complaints.into_inner().unwrap();
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

/// Calls a tool with its example, and gives the whole answer.
fn call(stage: &Stage, name: &str, example: &Value) -> Value {
    let arguments = stage.arguments(name, example);
    let mut host = stage.serve(VERSION);
    let id = host.call(name, &arguments);
    host.answer(id)
}

/// Calls every tool in one situation; each must do what it says there.
fn in_situation(place: usize, stage: impl Fn() -> Stage + Sync) {
    with_every_tool(|name, tool, example| {
        let declared = OUTCOMES.iter().find(|(one, _)| *one == name);
        let (_, outcomes) = declared.ok_or("it is not said what it does when something is missing")?;
        let answer = call(&stage(), name, example);
        let found = outcome(tool, &answer);
        if found == outcomes[place] {
            Ok(())
        } else {
            Err(format!("{:?} is expected, and there is {answer}", outcomes[place]))
        }
    });
}

#[test]
fn every_line_is_about_a_tool() {
    let names: Vec<String> = tools().into_iter().map(|(name, ..)| name).collect();
    let lines: Vec<&str> = OUTCOMES.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, lines);
}

/// Sends sealed messages, which its result does not name.
const SEALED: &str = "nostr_messages_send";

/// Tools that publish elsewhere than on relays.
const ELSEWHERE: [&str; 2] = ["nostr_zaps_prepare_anonymous", "nostr_blobs_upload"];

/// Tools that publish what is not signed by the user.
const OTHERS: [&str; 2] = ["nostr_events_publish_signed", "nostr_events_post_anonymous"];

/// What a relay has of this sort.
fn stored(url: &str, filter: &Value) -> Vec<Event> {
    let found: Log<Event> = Log::default();
    let kept = found.clone();
    let client = Client::connect(url, move |_, event| kept.push(event));
    client.subscribe("read back", std::slice::from_ref(filter));
    found.look(<[Event]>::to_vec)
}

/// What a tool says that it has published must be on the relay, whole and by the right author.
fn read_back(name: &str, stage: &Stage, output: &Value) -> Result<(), String> {
    let url = stage.url();
    let filter = match name {
        SEALED => json!({ "kinds": [1059], "#p": [stage.friend()] }),
        _ => {
            // Some tools tell more than how it was published.
            let report = output.get("result").unwrap_or(output);
            let taken = report.get("success").or(report.get("success_relays"));
            if taken != Some(&json!([url])) {
                return Err(format!("it is not said that {url} has it: {output}"));
            }
            json!({ "ids": [report.get("id").or(report.get("event_id"))] })
        }
    };
    let found = stored(url, &filter);
    let [event] = found.as_slice() else { return Err(format!("{} events fit {filter}", found.len())) };
    if let Some(problem) = event.problem() {
        return Err(problem.to_owned());
    }
    let is_mine = event.pubkey == hex_key(&stage.me);
    if is_mine == (OTHERS.contains(&name) || name == SEALED) {
        return Err(format!("it is by {}", event.pubkey));
    }
    Ok(())
}

/// Calls every tool with its example, and looks for what the publishing ones have published. `searches` says whether the
/// relay can be searched (NIP-50).
fn works(url: &str, searches: bool) {
    let publishing: Vec<&str> = rialto_nostr_tools::tools()
        .iter()
        .filter(|tool| tool.about.effect.is_publishing() && !ELSEWHERE.contains(&tool.about.name))
        .map(|tool| tool.about.name)
        .collect();
    with_every_tool(|name, tool, example| {
        let stage = published(url, User::Somebody);
        let answer = call(&stage, name, example);
        let expected = if name == "nostr_events_search" && !searches { NO_RELAY } else { Outcome::Works };
        if outcome(tool, &answer) != expected {
            return Err(answer.to_string());
        }
        match publishing.contains(&name) {
            true => read_back(name, &stage, &answer["result"]["structuredContent"]),
            false => Ok(()),
        }
    });
}

#[test]
fn every_tool_works() {
    let world = World::new();
    let (_relay, url) = world.relay();
    works(&url, true);
}

#[test]
fn every_tool_works_with_another_relay() {
    let Some(peers) = Peers::installed() else { return };
    let world = World::new();
    let (_relay, url) = other_relay(&peers, &world);
    works(&url, false);
}

#[test]
fn a_relay_that_is_away_is_told_about() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("ws://{}", listener.local_addr().unwrap());
    drop(listener);
    in_situation(0, || Stage::new(&url, User::Somebody));
}

#[test]
fn a_relay_that_refuses_everything_is_told_about() {
    let relay = FakeRelay::start();
    relay.judge(|_, _| Verdict::Refuse("blocked: go away"));
    relay.rules(|rules| rules.closes = Some("restricted: go away"));
    in_situation(1, || Stage::new(&relay.url(), User::Somebody));
}

#[test]
fn without_a_key_nothing_is_signed() {
    let world = World::new();
    let (_relay, url) = world.relay();
    in_situation(2, || published(&url, User::Nobody));
}

#[test]
fn a_key_that_is_only_watched_signs_nothing() {
    let world = World::new();
    let (_relay, url) = world.relay();
    in_situation(3, || published(&url, User::Watched));
}

fn published(url: &str, user: User) -> Stage {
    let stage = Stage::new(url, user);
    stage.publish();
    stage
}

/// A value that a schema does not take, and where in it the fault is.
fn ill_typed(schema: &Value) -> Vec<(Value, String)> {
    let mut cases = match schema["type"].as_str() {
        Some("string") => vec![(json!(7), String::new())],
        Some("array" | "object") => vec![(json!("x"), String::new())],
        Some(_) => vec![(json!("x"), String::new()), (json!([]), String::new())],
        None => Vec::new(),
    };
    if schema["type"] == "array" {
        let items = ill_typed(&schema["items"]).into_iter();
        cases.extend(items.map(|(value, place)| (json!([value]), format!("/0{place}"))));
    }
    if schema["enum"].is_array() {
        cases.push((json!("no such word"), String::new()));
    }
    if schema["minimum"] == 0 {
        cases.push((json!(-1), String::new()));
    }
    cases
}

/// Calls of a tool with something missing or of the wrong type, and where.
fn faults(tool: &Value, example: &Value) -> Vec<(Value, String)> {
    let schema = &tool["input_schema"];
    let mut cases = vec![(json!([1]), String::new())];
    for required in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        let mut arguments = example.clone();
        let removed = arguments.as_object_mut().unwrap().remove(required);
        assert!(removed.is_some(), "{}: the example lacks {required}", tool["name"]);
        cases.push((arguments.clone(), format!("/{required}")));
        arguments[required] = Value::Null;
        cases.push((arguments, format!("/{required}")));
    }
    for (argument, schema) in schema["properties"].as_object().into_iter().flatten() {
        for (value, place) in ill_typed(schema) {
            let mut arguments = example.clone();
            arguments[argument] = value;
            cases.push((arguments, format!("/{argument}{place}")));
        }
    }
    cases
}

/// The error in an answer, as this version of the protocol shows it.
fn error<'a>(version: &str, answer: &'a Value) -> &'a Value {
    if version <= VERSION {
        return &answer["error"];
    }
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    &answer["result"]["structuredContent"]["error"]
}

#[test]
fn what_is_missing_or_of_the_wrong_type_is_named() {
    let cases: Vec<(String, Value, String)> = tools()
        .into_iter()
        .flat_map(|(name, tool, example)| {
            faults(&tool, &example).into_iter().map(move |(arguments, pointer)| (name.clone(), arguments, pointer))
        })
        .collect();
    for version in ERAS {
        let mut host = Stage::new("ws://127.0.0.1:9", User::Somebody).serve(version);
        let ids: Vec<u64> =
            cases.iter().map(|(name, arguments, _)| call_in(version, &mut host, name, arguments)).collect();
        let answers = answers(&host, &ids);
        for (id, (name, arguments, pointer)) in ids.iter().zip(&cases) {
            let answer = &answers[id];
            let error = error(version, answer);
            assert_eq!(error["code"], -32602, "{version} {name} {arguments}: {answer}");
            assert_eq!(error["data"]["pointer"], *pointer, "{version} {name} {arguments}: {answer}");
            assert!(error["message"].as_str().is_some_and(|text| !text.is_empty()), "{name}: {answer}");
        }
    }
}

/// Calls a tool as this version of the protocol wants it; gives the id of the request.
fn call_in(version: &str, host: &mut Host, name: &str, arguments: &Value) -> u64 {
    let params = json!({ "name": name, "arguments": arguments });
    host.request("tools/call", &if version == STATELESS { stateless(params) } else { params })
}

/// What every request says of who asks, where there is no handshake.
fn stateless(mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": STATELESS,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": "host", "version": "1" },
    });
    params
}

/// Waits for the answers to all of these requests.
fn answers(host: &Host, ids: &[u64]) -> BTreeMap<u64, Value> {
    // The last id is the number of requests, the handshake among them.
    let count = usize::try_from(*ids.last().unwrap()).unwrap();
    let lines = host.process.stdout.wait(PATIENCE, |lines| (lines.len() >= count).then(|| lines.to_vec()));
    let lines = lines.unwrap_or_else(|| panic!("not everything is answered\n{}", host.process.told()));
    let messages = lines.iter().map(|line| serde_json::from_str::<Value>(line).unwrap());
    messages.filter_map(|message| Some((message["id"].as_u64()?, message))).collect()
}

#[test]
fn an_unknown_tool_is_an_error_of_the_protocol() {
    for version in ERAS {
        let mut host = Stage::new("ws://127.0.0.1:9", User::Nobody).serve(version);
        let id = call_in(version, &mut host, "nostr_no_such_tool", &json!({}));
        assert_eq!(host.answer(id)["error"]["code"], -32602, "{version}");
    }
}
