//! R12: messages and schemas that are made to take all memory or all time, through Nostr and through the gateway.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::super::{Row, Setting};
use crate::machine;
use crate::nostr_side::customer::Customer;
use crate::nostr_side::desk::UNLIMITED;
use crate::nostr_side::event::Draft;
use crate::nostr_side::fake_relay::FakeRelay;
use crate::nostr_side::world::World;
use crate::nostr_side::{PATIENCE, actor, harm};
use crate::score::Score;
use crate::stage::Stage;
use crate::stage::gateway::Gateway;
use crate::stage::line::Line;

pub(super) const ROW: Row = Row::new("R12", "bombs: sizes, depths, schemas, patterns, floods", run);

const MEBIBYTE: usize = 1 << 20;

/// What a bomb may add to the memory of the program, in KiB.
const MOST_GROWTH: u64 = 32 * 1024;

/// Judged where the code was optimised, and only shown where it was not.
const FASTEST: Duration = Duration::from_millis(100);

/// Expressions that take for ever where a machine tries one way after the other.
const PATTERNS: [&str; 6] =
    ["^(a+)+$", "^(a|a)*$", "^(a|aa)+$", "(a*)*b$", "^(([a-z])+.)+[A-Z]([a-z])+$", "^(.*a){12}x$"];

/// What was seen, on one side.
#[derive(Default)]
struct Tally {
    bombs: usize,
    wrong: Vec<String>,
    /// From a bomb that can be answered to its error.
    slowest: Duration,
    /// The most that one added, in KiB.
    growth: u64,
    panics: usize,
}

impl Tally {
    /// Throws a bomb and looks at what it did to the memory of a process.
    fn bomb(&mut self, name: &str, pid: i32, throw: impl FnOnce(&mut Self)) {
        machine::forget_peak(pid);
        let before = machine::memory(pid);
        throw(self);
        let growth = machine::peak_memory(pid).saturating_sub(before);
        self.bombs += 1;
        if growth > MOST_GROWTH {
            self.wrong.push(format!("{name}: {growth} KiB of memory"));
        }
        self.growth = self.growth.max(growth);
    }

    fn expect(&mut self, what: &str, got: &str, wanted: &str) {
        if got != wanted {
            self.wrong.push(format!("{what}: {got:.200} in place of {wanted}"));
        }
    }

    /// The same for an answer that came after this time.
    fn expect_soon(&mut self, what: &str, got: &str, wanted: &str, begun: Instant) {
        self.slowest = self.slowest.max(begun.elapsed());
        self.expect(what, got, wanted);
    }
}

fn run(setting: Setting) -> Score {
    let (mut nostr, local) = (nostr(setting), local(setting));
    let mut score = Score::default();
    score.at_least("bombs", nostr.bombs + local.bombs, 20_usize);
    score.none("wrong answers", nostr.wrong.len() + local.wrong.len());
    score.none("panics", nostr.panics + local.panics);
    score.at_most("most memory for one KiB", nostr.growth.max(local.growth), MOST_GROWTH);
    nostr.slowest = nostr.slowest.max(local.slowest);
    if cfg!(debug_assertions) {
        score.tell("slowest error s", nostr.slowest);
    } else {
        score.at_most("slowest error s", nostr.slowest, FASTEST);
    }
    nostr.wrong.iter().chain(&local.wrong).take(12).for_each(|wrong| score.note(wrong));
    score
}

/// Schemas by the name of their tool: bombs that must not be offered, and patterns that may be.
fn schemas() -> Map<String, Value> {
    let keywords = ["anyOf", "oneOf", "allOf"];
    let bombs = (27..=40).map(|levels| (format!("bomb_{levels}"), doubled(levels, keywords[levels % keywords.len()])));
    let patterns = PATTERNS.iter().enumerate().map(|(number, pattern)| {
        let schema = json!({ "type": "object", "properties": { "x": { "type": "string", "pattern": pattern } } });
        (format!("pattern_{number}"), schema)
    });
    bombs.chain(patterns).collect()
}

/// A definition that asks for the next one twice, this many times: as many steps as two to that power.
fn doubled(levels: usize, keyword: &str) -> Value {
    let mut definitions = Map::new();
    for level in 0..levels {
        let next = json!({ "$ref": format!("#/$defs/l{}", level + 1) });
        definitions.insert(format!("l{level}"), json!({ keyword: [next, next] }));
    }
    definitions.insert(format!("l{levels}"), json!({ "type": "null" }));
    json!({ "type": "object", "$defs": definitions, "properties": { "x": { "$ref": "#/$defs/l0" } } })
}

fn write_schemas(world: &World) -> PathBuf {
    let path = world.path().join("schemas.json");
    fs::write(&path, Value::from(schemas()).to_string()).unwrap();
    path
}

fn nostr(setting: Setting) -> Tally {
    let mut tally = Tally::default();
    let (world, relay) = (World::new(), FakeRelay::start());
    let schemas = format!("schemas={}", write_schemas(&world).display());
    let provider = world.serve_actor(&[&relay.url()], &UNLIMITED, &[harm::HARM, &schemas]);
    let customer = Customer::new(&relay.url(), &provider.pubkey);
    let pid = provider.process.pid();
    let still_serves = |tally: &mut Tally, after: &str| {
        let text = customer.call("note", &json!({ "text": "on" })).text();
        tally.expect(&format!("a call after {after}"), &text, "on");
    };
    still_serves(&mut tally, "the start");
    registration(&customer, &mut tally);
    for (number, _) in PATTERNS.iter().enumerate() {
        let tool = format!("pattern_{number}");
        tally.bomb(&tool, pid, |tally| {
            let begun = Instant::now();
            let error = customer.call(&tool, &json!({ "x": "a".repeat(30_000) + "!" })).error();
            tally.expect_soon(&tool, &error, "invalid_input", begun);
        });
    }
    let call = |text: &str| format!("{{\"name\":\"note\",\"parameters\":{{\"text\":{text}}}}}");
    let deep = |levels: usize| call(&("[".repeat(levels) + &"]".repeat(levels)));
    // What the relay passes on and we can read is answered.
    for (name, content, code) in [
        ("an argument of 200 KiB", call(&format!("\"{}\"", "x".repeat(200 << 10))), "too_large"),
        ("brackets 50,000 deep", deep(50_000), "invalid_request"),
        ("brackets 100,000 deep", deep(100_000), "too_large"),
    ] {
        tally.bomb(name, pid, |tally| {
            let begun = Instant::now();
            let error = customer.ask("execute-tool", &json!(content)).error();
            tally.expect_soon(name, &error, code, begun);
        });
    }
    // What is larger than any event may be is left unread, and keeps being so however often the relay has it.
    let draft = |content: String| customer.draft("execute-tool", &json!(content));
    let tags = (0..100_000).fold(draft(call("\"x\"")), |draft, _| draft.tag(&["t", "bomb"]));
    let huge: [(&str, Draft); 3] = [
        ("100,000 tags", tags),
        ("an argument of 10 MiB", draft(call(&format!("\"{}\"", "x".repeat(10 * MEBIBYTE))))),
        ("a frame of 50 MiB", draft(call(&format!("\"{}\"", "x".repeat(50 * MEBIBYTE))))),
    ];
    for (name, draft) in huge {
        tally.bomb(name, pid, |tally| {
            relay.publish(&draft.sign(&customer.keys));
            still_serves(tally, name);
        });
    }
    let output = setting.choose(100, 1024) * MEBIBYTE;
    tally.bomb("an endless result", pid, |tally| {
        let error = customer.call("pour", &json!({ "bytes": output })).error();
        tally.expect("an endless result", &error, "result_too_large");
        still_serves(tally, "an endless result");
    });
    tally.bomb("a flood of progress", pid, |tally| {
        let text = customer.call("flood", &json!({ "count": setting.choose(20_000, 200_000) })).text();
        tally.expect("a flood of progress", &text, "dry");
        still_serves(tally, "a flood of progress");
    });
    let told = provider.process.stderr.look(|lines| lines.join("\n"));
    tally.panics += told.matches("panicked at").count();
    tally
}

/// Bombs are not offered; patterns that run in linear time are.
fn registration(customer: &Customer, tally: &mut Tally) {
    let list = customer.ask("list-tools", &json!("")).body();
    let names: Vec<&str> = list["tools"].as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
    for name in schemas().keys() {
        let wanted = if name.starts_with("bomb") { "not offered" } else { "offered" };
        tally.expect(name, if names.contains(&name.as_str()) { "offered" } else { "not offered" }, wanted);
    }
    let error = customer.call("bomb_40", &json!({ "x": 1 })).error();
    tally.expect("a call of a bomb", &error, "unknown_tool");
    tally.bombs += schemas().len() - PATTERNS.len();
}

fn local(setting: Setting) -> Tally {
    let mut tally = Tally::default();
    let (stage, world) = (Stage::new(), World::new());
    let program = std::env::current_exe().unwrap();
    let schemas = format!("schemas={}", write_schemas(&world).display());
    let command = [program.to_str().unwrap(), actor::ACTOR, world.path().to_str().unwrap(), harm::HARM, &schemas];
    let (mut gateway, output) = stage.start(&[&["gateway", "--stdio", "--"], &command[..]].concat());
    gateway.read(output);
    gateway.begin("2025-06-18");
    let pid = gateway.pid();
    let still_serves = |gateway: &mut Gateway, tally: &mut Tally, after: &str| {
        let id = format!("\"after {after}\"");
        gateway.send(&of_tool(&id, "note", r#""arguments":{"text":"on"}"#));
        // A server that is still pouring cannot say anything else.
        let answer = gateway.find_within(2 * PATIENCE, after, |line| line.has_id(&id)).unwrap_or(Line(String::new()));
        tally.expect(
            &format!("a call after {after}"),
            if answer.0.contains("\"on\"") { "on" } else { &answer.0 },
            "on",
        );
    };
    still_serves(&mut gateway, &mut tally, "the start");
    let list = gateway.ask("\"list\"", "tools/list", "{}");
    // The schemas of one's own servers are not run, and so are passed on.
    tally.expect("all tools", if list.0.contains("bomb_40") { "listed" } else { &list.0 }, "listed");
    let note = |id: &str, text: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"note","arguments":{{"text":{text}}}}}}}"#
        )
    };
    tally.bomb("an argument of 10 MiB", pid, |tally| {
        gateway.send(&note("\"ten\"", &format!("\"{}\"", "x".repeat(10 * MEBIBYTE))));
        let length = gateway.find_within(PATIENCE, "10 MiB", |line| line.has_id("\"ten\"")).map(|line| line.0.len());
        tally.expect("10 MiB there and back", if length > Some(10 * MEBIBYTE) { "whole" } else { "cut" }, "whole");
    });
    let (long, deep) = ("x".repeat(50 * MEBIBYTE), "[".repeat(100_000) + &"]".repeat(100_000));
    for (name, id, text, wanted) in [
        ("a line of 50 MiB", "\"long\"", format!("\"{long}\""), "\"invalid_request\""),
        ("brackets 100,000 deep", "\"deep\"", deep, "\"parse_error\""),
    ] {
        tally.bomb(name, pid, |tally| {
            gateway.send(&note(id, &text));
            let sent = Instant::now();
            let answer = gateway.find_within(PATIENCE, name, |line| line.has_id(id) || line.has_id("null"));
            let code = answer.and_then(|answer| answer.find(&["error", "data", "code"])).unwrap_or_default();
            tally.expect_soon(name, &code, wanted, sent);
            still_serves(&mut gateway, tally, name);
        });
    }
    let bytes = setting.choose(100, 1024) * MEBIBYTE;
    tally.bomb("an endless result", pid, |tally| {
        gateway.send(&of_tool("\"pour\"", "pour", &format!(r#""arguments":{{"bytes":{bytes}}}"#)));
        let answer = gateway.find_within(PATIENCE, "the error", |line| line.has_id("\"pour\""));
        let code = answer.and_then(|answer| answer.find(&["error", "data", "code"])).unwrap_or_default();
        tally.expect("an endless result", &code, "\"tool_failed\"");
        still_serves(&mut gateway, tally, "an endless result");
    });
    let count = setting.choose(20_000, 100_000);
    tally.bomb("a flood of progress", pid, |tally| {
        let params = format!(r#""arguments":{{"count":{count}}},"_meta":{{"progressToken":"p"}}"#);
        gateway.send(&of_tool("\"flood\"", "flood", &params));
        let answer = gateway.find_within(PATIENCE, "the end of the flood", |line| line.has_id("\"flood\""));
        tally.expect("a flood of progress", if answer.is_some() { "dry" } else { "nothing" }, "dry");
        let steps = gateway.unclaimed().iter().filter(|line| line.is_method("notifications/progress")).count();
        tally.expect("steps", &steps.to_string(), &count.to_string());
        still_serves(&mut gateway, tally, "a flood of progress");
    });
    tally.panics += stage.transcript.find("panicked at").len();
    tally
}

fn of_tool(id: &str, tool: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}",{params}}}}}"#)
}
