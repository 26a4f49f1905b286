//! `rialto mcp context` as an MCP host sees it: real processes, raw lines.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

mod support;

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};
use support::World;

const PATIENCE: Duration = Duration::from_secs(60);

/// A server with a client at its pipes.
struct Host {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    /// Answers that came before they were asked for, by id.
    early: HashMap<u64, String>,
    next: u64,
}

impl Host {
    fn start(world: &World, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_rialto"))
            .args(arguments)
            .env_clear()
            .env("HOME", world.home())
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .envs(variables.iter().copied())
            .current_dir(world.project())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take(), child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                if sender.send(line.unwrap()).is_err() {
                    break;
                }
            }
        });
        Self { child, input, lines, early: HashMap::new(), next: 0 }
    }

    /// A server of version `version`, introduced.
    fn open(world: &World, arguments: &[&str], version: &str) -> Self {
        let mut host = Self::start(world, arguments, &[]);
        let answer = host.ask("initialize", &introduction(version));
        assert_eq!(answer["result"]["protocolVersion"], version, "{answer}");
        host
    }

    fn say(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        input.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    fn send(&mut self, method: &str, params: &Value) -> u64 {
        self.next += 1;
        let id = self.next;
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string());
        id
    }

    /// The line that answers a request.
    fn line(&mut self, id: u64) -> String {
        loop {
            if let Some(line) = self.early.remove(&id) {
                return line;
            }
            let line = self.lines.recv_timeout(PATIENCE).unwrap();
            let answered = serde_json::from_str::<Value>(&line).unwrap()["id"].as_u64();
            self.early.insert(answered.unwrap_or(0), line);
        }
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        let id = self.send(method, params);
        serde_json::from_str(&self.line(id)).unwrap()
    }

    /// The `result` of a tool, as it was sent.
    fn call(&mut self, name: &str, arguments: &Value) -> String {
        let id = self.send("tools/call", &json!({ "name": name, "arguments": arguments }));
        let line = self.line(id);
        let start = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":");
        line.strip_prefix(&start).unwrap_or_else(|| panic!("{line}")).strip_suffix('}').unwrap().to_owned()
    }

    /// Ends the input and waits for the end of the process.
    fn finish(mut self) -> i32 {
        drop(self.input.take());
        self.child.wait().unwrap().code().unwrap_or(-1)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn introduction(version: &str) -> Value {
    json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } })
}

/// A project with the cache `caches/docs`.
fn world() -> World {
    let world = World::new();
    world.file(
        "docs/Guide.md",
        "# Guide\n\nDeployment of the market.\n\n## Bridge\n\nThe deployment of the \"bridge\".\n",
    );
    world.file("docs/sub/other.md", "Nothing of that kind.\n");
    let run = world.run(&["context", "build", "--sources", "docs", "--cache", "caches/docs"]);
    assert_eq!((run.exit, run.stdout.as_str()), (0, ""), "{}", run.stderr);
    world
}

fn question(query: &str, budget: u64) -> Value {
    json!({ "cache": "docs", "query": query, "budget": budget })
}

const SERVER: [&str; 4] = ["mcp", "context", "--root", "caches"];

/// The text of a result.
fn text(result: &str) -> String {
    let result: Value = serde_json::from_str(result).unwrap();
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

#[test]
fn the_text_is_what_the_command_prints_in_every_version() {
    let world = world();
    let command = ["context", "resolve", "--cache", "caches/docs", "--query", "deployment", "--budget", "100"];
    let printed = world.run(&command).stdout;
    assert!(printed.starts_with("{\"documents\":[{\"id\":\"guide.md\","), "{printed}");
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut host = Host::open(&world, &SERVER, version);
        let result = host.call("context.resolve", &question("deployment", 100));
        let in_text = serde_json::to_string(&printed).unwrap();
        let content = format!("{{\"content\":[{{\"text\":{in_text},\"type\":\"text\"}}]");
        let structured = format!(",\"structuredContent\":{}", printed.trim_end());
        let is_new = version >= "2025-06-18";
        assert_eq!(result, format!("{content}{}}}", if is_new { &structured } else { "" }), "{version}");
        assert_eq!(host.finish(), 0);
    }
    // And without a handshake, where each request says what it speaks.
    let mut host = Host::start(&world, &SERVER, &[]);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
    });
    let params = json!({ "name": "context.resolve", "arguments": question("deployment", 100), "_meta": meta });
    let answer = host.ask("tools/call", &params);
    assert_eq!(answer["result"]["content"], json!([{ "text": printed, "type": "text" }]), "{answer}");
    assert_eq!(answer["result"]["structuredContent"], serde_json::from_str::<Value>(&printed).unwrap());
}

#[test]
fn the_command_takes_every_budget_of_64_bits() {
    let world = world();
    let arguments =
        ["context", "resolve", "--cache", "caches/docs", "--query", "x", "--budget", "18446744073709551615"];
    let run = world.run(&arguments);
    assert_eq!(run.exit, 0, "{}", run.stderr);
    assert!(run.stdout.contains(r#""budget":18446744073709551615,"#), "{}", run.stdout);
}

#[test]
fn tools_are_described_as_far_as_the_client_can_read() {
    let world = world();
    for (version, has_annotations, has_schema) in [
        ("2024-11-05", false, false),
        ("2025-03-26", true, false),
        ("2025-06-18", true, true),
        ("2025-11-25", true, true),
    ] {
        let mut host = Host::open(&world, &SERVER, version);
        let answer = host.ask("tools/list", &json!({}));
        let tools = answer["result"]["tools"].as_array().unwrap();
        let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["context.resolve", "context.list_caches", "context.inspect_cache", "context.search"]);
        for tool in tools {
            assert_eq!(tool["annotations"]["readOnlyHint"] == true, has_annotations, "{version}: {tool}");
            assert_eq!(tool["annotations"]["idempotentHint"] == true, has_annotations, "{version}: {tool}");
            assert_eq!(tool["outputSchema"]["type"] == "object", has_schema, "{version}: {tool}");
        }
    }
    let mut host = Host::open(&world, &[&SERVER[..], &["--tool-names", "underscore"]].concat(), "2025-11-25");
    let answer = host.ask("tools/list", &json!({}));
    assert_eq!(answer["result"]["tools"][0]["name"], "context_resolve");
    // Both spellings are the same tool.
    let both =
        ["context.inspect_cache", "context_inspect_cache"].map(|name| host.call(name, &json!({ "cache": "docs" })));
    assert_eq!(both[0], both[1]);
    assert!(text(&both[0]).contains("\"document_count\":2,"), "{}", both[0]);
}

#[test]
fn the_first_version_alone_has_nothing_around_it() {
    let world = world();
    let mut host = Host::start(&world, &["mcp", "context", "--profile", "v0"], &[("CONTEXT_CACHE_ROOT", "caches")]);
    let answer = host.ask("initialize", &introduction("2024-11-05"));
    assert_eq!(answer["result"]["protocolVersion"], "2024-11-05");
    assert_eq!(answer["result"]["serverInfo"]["name"], "mcp-context-server");
    assert_eq!(answer["result"]["capabilities"], json!({ "tools": {} }));
    // Right after the answer to `initialize`, without a word in between.
    let listed = host.call("context.list_caches", &json!({}));
    assert_eq!(
        listed,
        r#"{"content":[{"text":"{\"caches\":[{\"path\":\"docs\",\"has_manifest\":true}]}","type":"text"}]}"#
    );
    let tools = host.ask("tools/list", &json!({}))["result"]["tools"].take();
    let tools = tools.as_array().unwrap();
    assert_eq!(tools.len(), 3);
    for tool in tools {
        let keys: Vec<&String> = tool.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["description", "inputSchema", "name"]);
    }
    assert_eq!(host.ask("tools/call", &json!({ "name": "context.search" }))["error"]["code"], -32602);
    assert!(host.ask("resources/list", &json!({}))["error"].is_object());
    let refused = host.call("context.resolve", &json!({ "cache": "absent", "query": "", "budget": 0 }));
    assert_eq!(
        refused,
        r#"{"content":[{"text":"{\"error\":{\"code\":\"cache_missing\",\"message\":\"Cache does not exist\"}}\n","type":"text"}],"isError":true}"#
    );
    assert_eq!(host.finish(), 0);
}

#[test]
fn errors_are_results_in_every_version() {
    let world = world();
    world.file("caches/text/manifest.json", "not json");
    for version in ["2024-11-05", "2025-11-25"] {
        let mut host = Host::open(&world, &SERVER, version);
        for (tool, arguments, code) in [
            ("context.resolve", json!({ "cache": "absent", "query": "", "budget": 0 }), "cache_missing"),
            ("context.resolve", json!({ "cache": "../docs", "query": "", "budget": 0 }), "cache_missing"),
            ("context.resolve", json!({ "cache": 7, "query": "", "budget": 0 }), "cache_missing"),
            ("context.resolve", json!({ "cache": "text", "query": "", "budget": 0 }), "cache_invalid"),
            ("context.resolve", json!({ "cache": "absent", "query": "", "budget": -1 }), "invalid_budget"),
            ("context.resolve", json!({ "cache": "docs", "query": "", "budget": "10" }), "invalid_budget"),
            ("context.resolve", json!({ "cache": "docs", "query": "" }), "invalid_budget"),
            ("context.resolve", json!({ "cache": "docs", "query": null, "budget": 1 }), "invalid_query"),
            ("context.resolve", json!({}), "invalid_query"),
            ("context.search", json!({ "cache": "absent", "query": "", "budget": 0 }), "cache_missing"),
            ("context.inspect_cache", json!({}), "cache_missing"),
            ("context.inspect_cache", json!({ "cache": "absent" }), "cache_missing"),
        ] {
            let result: Value = serde_json::from_str(&host.call(tool, &arguments)).unwrap();
            assert_eq!(result.as_object().unwrap().len(), 2, "{result}");
            assert_eq!(result["isError"], true);
            let text = result["content"][0]["text"].as_str().unwrap();
            assert!(
                text.starts_with(&format!("{{\"error\":{{\"code\":\"{code}\",\"message\":\"")),
                "{arguments}: {text}"
            );
            assert!(text.ends_with("\"}}\n"), "{text}");
        }
        // What cannot be read is a fact about the cache, not an error.
        let found = text(&host.call("context.inspect_cache", &json!({ "cache": "text" })));
        assert_eq!(found, r#"{"cache_version":"","document_count":0,"total_bytes":0,"valid":false}"#);
        assert_eq!(host.ask("tools/call", &json!({ "name": "context.absent" }))["error"]["code"], -32602);
    }
    let mut host = Host::open(&world, &["mcp", "context", "--root", "absent"], "2025-11-25");
    assert!(text(&host.call("context.list_caches", &json!({}))).contains("\"io_error\""));
    let mut host = Host::start(&world, &SERVER, &[("CONTEXT_TOOL_TIMEOUT_SECS", "0")]);
    host.ask("initialize", &introduction("2025-11-25"));
    assert!(text(&host.call("context.resolve", &question("", 9))).contains("\"internal_error\""));
}

#[test]
fn damage_and_replacement_are_noticed_while_serving() {
    let world = world();
    let mut host = Host::open(&world, &SERVER, "2025-11-25");
    assert!(text(&host.call("context.resolve", &question("market", 1000))).contains("Deployment of the market"));
    let documents = world.project().join("caches/docs/documents");
    let victim = fs::read_dir(&documents).unwrap().next().unwrap().unwrap().path();
    let whole = fs::read(&victim).unwrap();
    fs::write(&victim, "{}").unwrap();
    assert!(text(&host.call("context.resolve", &question("market", 1000))).contains("\"cache_invalid\""));
    fs::write(&victim, whole).unwrap();
    assert!(text(&host.call("context.resolve", &question("market", 1000))).contains("Deployment of the market"));
    world.file("docs/new.md", "market market market");
    assert_eq!(world.run(&["context", "build", "--sources", "docs", "--cache", "caches/docs", "--force"]).exit, 0);
    let answer = text(&host.call("context.resolve", &question("market", 1000)));
    assert!(answer.starts_with("{\"documents\":[{\"id\":\"new.md\""), "{answer}");
}

#[test]
fn a_pipe_in_a_cache_holds_nobody() {
    let world = world();
    fs::create_dir_all(world.project().join("caches/pipe")).unwrap();
    let pipe = world.project().join("caches/pipe/manifest.json");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::from_raw_mode(0o600), 0)
        .unwrap();
    let mut host = Host::open(&world, &SERVER, "2025-11-25");
    let stuck = json!({ "cache": "pipe", "query": "", "budget": 9 });
    assert!(text(&host.call("context.resolve", &stuck)).contains("\"cache_invalid\""));
    assert!(text(&host.call("context.inspect_cache", &stuck)).contains("\"valid\":false"));
    assert!(text(&host.call("context.list_caches", &json!({}))).contains("{\"path\":\"pipe\",\"has_manifest\":false}"));
    assert_eq!(host.finish(), 0);
}

#[test]
fn many_calls_at_once_a_ping_among_them_and_one_cancelled() {
    let world = world();
    let mut host = Host::open(&world, &SERVER, "2025-11-25");
    let expected = host.call("context.resolve", &question("deployment", 100));
    let ids: Vec<u64> = (0..200)
        .map(|_| {
            host.send("tools/call", &json!({ "name": "context.resolve", "arguments": question("deployment", 100) }))
        })
        .collect();
    // Cancelled while the others are before it: there is no answer, and the next ones come.
    let call = json!({ "jsonrpc": "2.0", "id": 9001, "method": "tools/call",
        "params": { "name": "context.resolve", "arguments": question("deployment", 100) } });
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 9001 } });
    host.say(&format!("{call}\n{cancel}"));
    let ping = host.send("ping", &json!({}));
    host.line(ping);
    for id in ids {
        let line = host.line(id);
        assert_eq!(line, format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{expected}}}"));
    }
    assert_eq!(host.call("context.resolve", &question("deployment", 100)), expected);
    let ping = host.send("ping", &json!({}));
    host.line(ping);
    assert!(!host.early.contains_key(&9001));
    assert_eq!(host.finish(), 0);
}

#[test]
fn search_gives_sections_with_their_reasons() {
    let world = world();
    let mut host = Host::open(&world, &SERVER, "2025-06-18");
    let result = host.call("context.search", &question("bridge deployment", 100));
    assert_eq!(
        result,
        host.call("context.search", &question("deployment BRIDGE bridge", 100))
            .replace("deployment BRIDGE bridge", "bridge deployment")
    );
    let found: Value = serde_json::from_str(&text(&result)).unwrap();
    let first = &found["results"][0];
    assert_eq!(first["id"], "guide.md");
    assert_eq!(first["headings"], json!(["Guide", "Bridge"]));
    assert_eq!(first["lines"], json!({ "first": 5, "last": 7 }));
    assert_eq!(first["content"], "## Bridge\n\nThe deployment of the \"bridge\".\n");
    let parts = first["why"]["terms"].as_array().unwrap();
    let sum: u64 = parts.iter().map(|part| part["score"].as_u64().unwrap()).sum();
    assert_eq!((parts.len(), Some(sum)), (2, first["score"].as_u64()));
    // Pinned: another number means another version of the ranking.
    assert_eq!(first["score"], 161_799);
    assert_eq!(found["ranking"]["name"], "bm25-chunks");
    assert_eq!(found["ranking"]["chunks"], 3);
    let inspected: Value =
        serde_json::from_str(&text(&host.call("context.inspect_cache", &json!({ "cache": "docs" })))).unwrap();
    assert_eq!(found["cache_version"], inspected["cache_version"]);
    assert_eq!(found["selection"]["chunks_selected"], 2);
    let structured: Value = serde_json::from_str(&result).unwrap();
    assert_eq!(structured["structuredContent"], found);
    // Nothing is added for the budget's sake, and nothing above it.
    let small: Value = serde_json::from_str(&text(&host.call("context.search", &question("nothing", 3)))).unwrap();
    assert_eq!(small["results"], json!([]));
    assert_eq!(small["selection"]["chunks_excluded_by_budget"], 1);
}

#[test]
fn documents_are_resources_page_by_page() {
    let world = world();
    for number in 0..700 {
        world.file(&format!("many/{number:03}.md"), format!("text {number}"));
    }
    assert_eq!(world.run(&["context", "build", "--sources", "many", "--cache", "caches/a b"]).exit, 0);
    world.file("caches/broken/manifest.json", "{}");
    let mut host = Host::open(&world, &SERVER, "2025-11-25");
    let (mut uris, mut cursor, mut pages) = (Vec::new(), Value::Null, 0);
    loop {
        let params = if cursor.is_null() { json!({}) } else { json!({ "cursor": cursor }) };
        let page = host.ask("resources/list", &params)["result"].take();
        uris.extend(page["resources"].as_array().unwrap().iter().map(|one| one["uri"].as_str().unwrap().to_owned()));
        cursor = page["nextCursor"].clone();
        pages += 1;
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!((pages, uris.len()), (2, 702));
    assert!(uris.is_sorted());
    assert_eq!(uris[0], "context://a%20b/000.md");
    assert_eq!(uris[701], "context://docs/sub/other.md");
    let read = host.ask("resources/read", &json!({ "uri": uris[701] }));
    assert_eq!(
        read["result"]["contents"],
        json!([{ "uri": uris[701], "mimeType": "text/markdown", "text": "Nothing of that kind.\n" }])
    );
    for uri in
        ["context://docs/absent.md", "context://absent/a.md", "context://broken/a.md", "context://../docs/a.md", "x:y"]
    {
        let answer = host.ask("resources/read", &json!({ "uri": uri }));
        assert_eq!(answer["error"]["data"]["code"], "resource_not_found", "{uri}: {answer}");
    }
    assert_eq!(host.ask("resources/list", &json!({ "cursor": "x" }))["error"]["code"], -32602);
    let templates = host.ask("resources/templates/list", &json!({}));
    assert_eq!(templates["result"]["resourceTemplates"][0]["uriTemplate"], "context://{cache}/{+id}");
}

#[test]
fn through_a_gateway_the_bytes_are_the_same() {
    let world = world();
    let program = env!("CARGO_BIN_EXE_rialto");
    let mut direct = Host::open(&world, &SERVER, "2025-11-25");
    let mut through = Host::open(
        &world,
        &[&["gateway", "--stdio", "--prefix", "never", "--startup-grace-ms", "20000", "--", program][..], &SERVER]
            .concat(),
        "2025-11-25",
    );
    for (tool, arguments) in [
        ("context.resolve", question("deployment", 100)),
        ("context.resolve", question("deployment", 1)),
        ("context.search", question("bridge", 100)),
        ("context.list_caches", json!({})),
        ("context.inspect_cache", json!({ "cache": "docs" })),
        ("context.inspect_cache", json!({ "cache": "absent" })),
    ] {
        assert_eq!(through.call(tool, &arguments), direct.call(tool, &arguments), "{tool}");
    }
}

#[test]
fn over_nostr_the_bytes_are_the_same() {
    let mut world = world();
    let relay = Host::start(&world, &["relay", "--listen", "127.0.0.1:0", "--json"], &[]);
    let started: Value = serde_json::from_str(&relay.lines.recv_timeout(PATIENCE).unwrap()).unwrap();
    let url = started["url"].as_str().unwrap().to_owned();
    world.variable("RIALTO_RELAYS", &url);
    let program = env!("CARGO_BIN_EXE_rialto");
    let serve = [&["serve", "--name", "docs", "--", program][..], &SERVER].concat();
    let _provider = Host::start(&world, &serve, &[("RIALTO_RELAYS", &url)]);
    let mut direct = Host::open(&world, &SERVER, "2025-11-25");
    let expected = direct.call("context.resolve", &question("deployment", 100));
    let call = ["call", "docs", "context.resolve", "cache=docs", "query=deployment", "budget=100", "--json"];
    let until = std::time::Instant::now() + PATIENCE;
    let run = loop {
        // The service is announced some time after its process has started.
        let run = world.run(&call);
        if run.exit == 0 || std::time::Instant::now() > until {
            break run;
        }
    };
    assert_eq!(run.exit, 0, "{}", run.stderr);
    // The wire has two members of its own before those of the result.
    assert!(run.stdout.trim_end().ends_with(&expected[1..]), "{}", run.stdout);
}

/// Every member that is there is in the schema, at every depth.
fn assert_described(schema: &Value, value: &Value) {
    match value {
        Value::Object(members) => {
            let named: Vec<&str> =
                schema["required"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
            for (name, member) in members {
                assert!(named.contains(&name.as_str()), "{name} in {schema}");
                assert_described(&schema["properties"][name], member);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| assert_described(&schema["items"], item)),
        _ => {}
    }
}

#[test]
fn structured_content_fits_its_schema() {
    let world = world();
    let mut host = Host::open(&world, &SERVER, "2025-11-25");
    let tools = host.ask("tools/list", &json!({}))["result"]["tools"].take();
    for tool in tools.as_array().unwrap() {
        let name = tool["name"].as_str().unwrap();
        // More terms than words: a score above one fits as well.
        let result = host.call(name, &question("bridge bridge bridge bridge bridge deployment of the market", 100));
        let result: Value = serde_json::from_str(&result).unwrap();
        assert_ne!(result["isError"], true, "{result}");
        let (schema, content) = (&tool["outputSchema"], &result["structuredContent"]);
        let compiled = rialto_hub::schema::Schema::compile(schema.to_string().as_bytes()).unwrap();
        compiled.check(content).unwrap_or_else(|misfit| panic!("{name}: {misfit}"));
        assert!(compiled.check(&json!({})).is_err(), "{name}");
        assert_described(schema, content);
    }
}
