//! Rialto between the official SDKs: a client written with one SDK talks to a server written with another, once directly
//! and once through our gateway, and must report the same.
//!
//! The peers live in `interop/` and are installed by `interop/setup`. Where they are not installed these tests say what is
//! missing and pass; with `CI=true` they fail. Each client prints a report of everything it saw (definitions, results,
//! `_meta`, notifications, questions), without ids and names; a gateway that loses or changes anything shows up as a
//! difference between two reports.

#![cfg(unix)]
#![allow(clippy::expect_used, reason = "a test fails by panicking")]

#[path = "interop/peers.rs"]
mod peers;
#[path = "interop/report.rs"]
mod report;
#[path = "interop/run.rs"]
mod run;

use peers::{Client, Peers, Server, words};
use run::run;
use serde_json::{Value, json};

const RIALTO: &str = env!("CARGO_BIN_EXE_rialto");

/// Our gateway in front of one server, adding nothing to its names. On a busy machine an SDK takes longer to start than a
/// host would wait.
fn gateway(server: &[String]) -> Vec<String> {
    [words(&[RIALTO, "gateway", "--stdio", "--startup-grace-ms", "30000", "--prefix", "never", "--"]), server.to_vec()]
        .concat()
}

/// A client must see the same through the gateway as directly.
fn same_through_gateway(name: &str, client: Client, server: Server) {
    let Some(peers) = Peers::installed() else { return };
    let server = peers.server(server);
    let direct = run(&format!("{name}-direct"), &peers.client(client, &[], &server));
    let through = run(&format!("{name}-gateway"), &peers.client(client, &[], &gateway(&server)));
    let differences = report::differences(&direct, &through);
    assert!(differences.is_empty(), "{name}: the gateway changed what the client sees\n{differences}");
}

/// A client must be able to use our own server through our gateway.
fn our_own_server(name: &str, client: Client) {
    let Some(peers) = Peers::installed() else { return };
    let server = gateway(&words(&[RIALTO, "mcp", "example"]));
    let report = report::parse(&run(name, &peers.client(client, &["--only", "echo"], &server)));
    assert_eq!(report["version"], client.version(), "{name}: negotiated version");
    assert_eq!(report["echo"]["content"], json!([{ "type": "text", "text": "hello" }]), "{name}: {report:#}");
    assert_eq!(report["concurrent"], 50, "{name}: calls that got their own answer");
}

macro_rules! pairs {
    ($($name:ident: $client:ident => $server:ident;)*) => {$(
        #[test]
        fn $name() {
            same_through_gateway(stringify!($name), Client::$client, Server::$server);
        }
    )*};
}

// Every client and every server at least twice. The first SDK for TypeScript knows no 2026-07-28, so its server has no
// clients of the new era.
pairs! {
    python_client_to_typescript_1_server: PythonLegacy => TypeScript1;
    python_client_to_rust_server: PythonLegacy => Rust;
    typescript_1_client_to_python_server: TypeScript1 => Python;
    typescript_1_client_to_rust_server: TypeScript1 => Rust;
    typescript_2_client_to_typescript_1_server: TypeScript2Legacy => TypeScript1;
    typescript_2_client_to_python_server: TypeScript2Legacy => Python;
    rust_client_to_typescript_2_server: RustLegacy => TypeScript2;
    rust_client_to_python_server: RustLegacy => Python;
    modern_python_client_to_rust_server: PythonModern => Rust;
    modern_python_client_to_typescript_2_server: PythonModern => TypeScript2;
    modern_typescript_2_client_to_python_server: TypeScript2Modern => Python;
    modern_typescript_2_client_to_rust_server: TypeScript2Modern => Rust;
    modern_rust_client_to_python_server: RustModern => Python;
    modern_rust_client_to_typescript_2_server: RustModern => TypeScript2;
}

macro_rules! own_server {
    ($($name:ident: $client:ident;)*) => {$(
        #[test]
        fn $name() {
            our_own_server(stringify!($name), Client::$client);
        }
    )*};
}

own_server! {
    python_client_uses_our_server: PythonLegacy;
    modern_python_client_uses_our_server: PythonModern;
    typescript_1_client_uses_our_server: TypeScript1;
    typescript_2_client_uses_our_server: TypeScript2Legacy;
    modern_typescript_2_client_uses_our_server: TypeScript2Modern;
    rust_client_uses_our_server: RustLegacy;
    modern_rust_client_uses_our_server: RustModern;
}

const ERAS: [&str; 2] = ["legacy", "modern"];

/// What the Inspector prints for one method.
fn inspect(peers: &Peers, name: &str, era: &str, method: &[&str], server: &[String]) -> Value {
    let options = words(&["-q", "--protocol-era", era, "--method"]);
    let command = [peers.inspector(), options, words(method), words(&["--"]), server.to_vec()].concat();
    report::parse(&run(&format!("inspector-{name}-{era}-{}", method[0].replace('/', "-")), &command))
}

fn tool_names(list: &Value) -> Vec<&str> {
    list["tools"].as_array().into_iter().flatten().filter_map(|tool| tool["name"].as_str()).collect()
}

fn call_echo(peers: &Peers, name: &str, era: &str, tool: &str, server: &[String]) {
    let method = ["tools/call", "--tool-name", tool, "--tool-arg", "text=hello"];
    let result = inspect(peers, &format!("{name}-{tool}"), era, &method, server);
    assert_eq!(result["content"], json!([{ "type": "text", "text": "hello" }]), "{name}, {era}: {result:#}");
}

#[test]
fn inspector_finds_our_server_portable_and_calls_it() {
    let Some(peers) = Peers::installed() else { return };
    let server = words(&[RIALTO, "mcp", "example"]);
    for era in ERAS {
        let list = inspect(&peers, "example", era, &["tools/list", "--strict"], &server);
        assert!(tool_names(&list).contains(&"echo"), "{era}: {list:#}");
        call_echo(&peers, "example", era, "echo", &server);
    }
}

#[test]
fn inspector_finds_the_nostr_tools_portable_and_calls_one() {
    let Some(peers) = Peers::installed() else { return };
    let folder = run::scratch("nostr-tools");
    let server = words(&[RIALTO, "mcp", "nostr", "--directory", &folder.to_string_lossy()]);
    for era in ERAS {
        let list = inspect(&peers, "nostr", era, &["tools/list", "--strict"], &server);
        let ours: Vec<&str> = rialto_nostr_tools::tools().iter().map(|tool| tool.about.name).collect();
        assert_eq!(tool_names(&list), ours, "{era}");
        let input = "input=npub180cvv07tjdrrgpa0j7j7tmnyl2yr6yr7l8j4s3evf6u64th6gkwsyjh6w6";
        let method = ["tools/call", "--tool-name", "nostr_nip19_analyze", "--tool-arg", input];
        let result = inspect(&peers, "nostr", era, &method, &server);
        assert_eq!(result["structuredContent"]["input_type"], "npub", "{era}: {result:#}");
    }
}

#[test]
fn inspector_uses_two_servers_behind_one_gateway() {
    let Some(peers) = Peers::installed() else { return };
    let entry = |server: Server| {
        let command = peers.server(server);
        json!({ "command": command[0], "args": command[1..] })
    };
    let config = json!({ "mcpServers": { "alpha": entry(Server::Python), "beta": entry(Server::Rust) } });
    let file = run::scratch("two-servers.json");
    std::fs::write(&file, config.to_string()).expect("the configuration can be written");
    let gateway =
        words(&[RIALTO, "gateway", "--stdio", "--startup-grace-ms", "30000", "--config", &file.to_string_lossy()]);
    for era in ERAS {
        let list = inspect(&peers, "two-servers", era, &["tools/list", "--strict"], &gateway);
        let names = tool_names(&list);
        for tool in ["alpha__echo", "alpha__add", "beta__echo", "beta__add"] {
            assert!(names.contains(&tool), "{era}: no {tool} in {names:?}");
        }
        call_echo(&peers, "two-servers", era, "alpha__echo", &gateway);
        call_echo(&peers, "two-servers", era, "beta__echo", &gateway);
    }
}
