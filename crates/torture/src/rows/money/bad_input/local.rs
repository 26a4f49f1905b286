//! The same mistakes by MCP hosts: over standard input to `rialto use`, over HTTP to the gateway, and to the servers that are built in.

use std::cell::RefCell;
use std::fs;

use serde_json::{Value, json};

use super::book::Book;
use super::http::Http;
use super::table::{self, Text};
use crate::nostr_side::PATIENCE;
use crate::nostr_side::desk::Desk;
use crate::nostr_side::host::Host;
use crate::nostr_side::world::World;
use crate::rows::Setting;

const VERSION: &str = "2025-11-25";

pub(super) struct Local {
    host: RefCell<Host>,
    http: Http,
    next: RefCell<u64>,
}

impl Local {
    /// A host of the service at this desk, and one of a gateway.
    pub(super) fn open(desk: &Desk) -> Self {
        let npub = desk.provider.ready["npub"].as_str().unwrap().to_owned();
        let mut host = Host::start_silent(&desk.world, &[&npub, "--relay", &desk.relay.url()]);
        host.begin_as(VERSION);
        host.ask("tools/list", &json!({}));
        Self { host: RefCell::new(host), http: Http::open(&desk.world), next: RefCell::new(5000) }
    }

    fn id(&self) -> String {
        *self.next.borrow_mut() += 1;
        self.next.borrow().to_string()
    }

    /// Sends a line; gives the next answer.
    fn say(&self, line: &str) -> Result<Value, String> {
        let mut host = self.host.borrow_mut();
        let before = host.process.stdout.look(<[String]>::len);
        host.process.write(line);
        let answer = host.process.stdout.wait(PATIENCE, |lines| {
            let mut messages = lines[before..].iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            messages.find(|message| message.get("method").is_none())
        });
        answer.ok_or_else(|| "no answer".to_owned())
    }

    pub(super) fn check(&self, book: &Book, text: &Text) {
        let Some(line) = &text.line else { return };
        let answer = self.say(&line.replacen("ID", &self.id(), 1)).and_then(|answer| judge(text.local, &answer));
        book.note(text.number, format!("{}, standard input", text.what), answer);
        if text.local == table::Local::Result || !text.is_for_the_gateway {
            return;
        }
        let (status, head, message) = self.http.post(&line.replacen("ID", &self.id(), 1));
        let found = match (text.what, status) {
            // More than is read is told by the status.
            ("a line that is too long", 413) => Ok(()),
            _ => judge(text.local, &message).map_err(|why| format!("{why}; {status} {head}")),
        };
        book.note(text.number, format!("{}, HTTP", text.what), found);
    }

    /// A call that fails is a tool result with an error.
    pub(super) fn fails(&self, book: &Book, number: u8, tool: &str, arguments: &Value) {
        let params = json!({ "name": tool, "arguments": arguments });
        let id: u64 = self.id().parse().unwrap();
        let line = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
        let found = self.say(&line.to_string()).and_then(|answer| judge(table::Local::Result, &answer));
        book.note(number, format!("{tool}, standard input"), found);
    }
}

fn judge(wanted: table::Local, answer: &Value) -> Result<(), String> {
    let is_right = match wanted {
        table::Local::Number(number) => answer["error"]["code"] == number,
        table::Local::Result => answer["result"]["isError"] == true,
        table::Local::No => true,
    };
    if is_right { Ok(()) } else { Err(format!("{wanted:?}, but {answer}")) }
}

/// A server that is built in.
fn server(world: &World, arguments: &[&str]) -> Host {
    let mut host = Host::over(world.rialto("user", &[&["mcp"], arguments].concat()));
    host.begin_as(VERSION);
    host
}

pub(super) fn nostr_tools(book: &Book, _: Setting) {
    let world = World::new();
    let (_relay, url) = world.relay();
    let mut host = server(&world, &["nostr", "--relay", &url]);
    for (tool, arguments) in [
        ("nostr_events_sign", json!({})),
        ("nostr_events_sign", json!({ "unsigned_event_json": 7 })),
        ("nostr_nip19_convert", json!({ "input": [] })),
        ("nostr_keys_verify", json!({ "key": null, "surprise": true })),
    ] {
        let id = host.call(tool, &arguments);
        let answer = host.answer(id);
        let error = &answer["result"]["structuredContent"]["error"];
        let is_told = error["code"] == -32602 && error["data"]["reason"] == "invalid_input";
        let is_right = is_told && judge(table::Local::Result, &answer).is_ok();
        book.note(29, format!("{tool} {arguments}"), if is_right { Ok(()) } else { Err(answer.to_string()) });
    }
    let id = host.call("nostr_no_such_tool", &json!({}));
    book.note(29, "a tool that there is not", judge(table::Local::Number(-32602), &host.answer(id)));
}

pub(super) fn context(book: &Book, _: Setting) {
    let world = World::new();
    let root = world.home("caches");
    fs::create_dir_all(root.join("broken")).unwrap();
    fs::write(root.join("broken/manifest.json"), "{").unwrap();
    fs::write(world.path().join("outside"), "a secret").unwrap();
    let source = world.home("texts");
    fs::write(source.join("one.md"), "# One\n\nSome words.\n").unwrap();
    let (source, good) = (source.to_str().unwrap().to_owned(), root.join("good").to_str().unwrap().to_owned());
    let mut build = world.rialto("user", &["context", "build", "--sources", &source, "--cache", &good]);
    assert!(build.end().success(), "{}", build.told());
    let mut host = server(&world, &["context", "--root", root.to_str().unwrap()]);
    let cases = [
        ("a name that leads out", json!({ "cache": "../outside", "query": "words", "budget": 100 }), "cache_missing"),
        ("a name that is a path", json!({ "cache": "/etc", "query": "words", "budget": 100 }), "cache_missing"),
        ("a cache that there is not", json!({ "cache": "nothing", "query": "words", "budget": 100 }), "cache_missing"),
        ("a broken manifest", json!({ "cache": "broken", "query": "words", "budget": 100 }), "cache_invalid"),
        ("a negative budget", json!({ "cache": "good", "query": "words", "budget": -1 }), "invalid_budget"),
        ("no budget", json!({ "cache": "good", "query": "words" }), "invalid_budget"),
        ("no query", json!({ "cache": "good", "budget": 100 }), "invalid_query"),
        ("a query that is a number", json!({ "cache": "good", "query": 7, "budget": 100 }), "invalid_query"),
    ];
    for (what, arguments, code) in cases {
        let id = host.call("context.resolve", &arguments);
        let answer = host.answer(id);
        let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_default();
        let found = serde_json::from_str::<Value>(text).unwrap_or_default()["error"]["code"].clone();
        let is_right = answer["result"]["isError"] == true && found == code;
        book.note(30, what, if is_right { Ok(()) } else { Err(format!("{code}, but {answer}")) });
    }
    let id = host.call("context.resolve", &json!({ "cache": "good", "query": "words", "budget": 100 }));
    let answer = host.answer(id);
    book.equal(30, "what is right is answered", answer["result"]["isError"] == true, false);
}
