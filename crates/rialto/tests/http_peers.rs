//! Clients written with the official SDKs talk to our gateway over HTTP, and must see what they see when they start the
//! server behind it themselves.
//!
//! The gateway wants a token here, as it does unless it is told otherwise. What is shown is everything that a report holds:
//! definitions, results, progress, cancellation, questions to the user and the model, subscriptions and changes.

#![cfg(unix)]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "interop/peers.rs"]
mod peers;
#[path = "interop/report.rs"]
mod report;
#[path = "interop/run.rs"]
mod run;
#[path = "interop/serving.rs"]
mod serving;

use peers::{Client, Peers, Server, words};
use run::run;
use serde_json::json;
use serving::Serving;

const TOKEN: &str = "a-token-for-this-test-of-at-least-thirty-two-characters";

/// Our gateway in front of one server, adding nothing to its names.
fn gateway(name: &str, server: &[String]) -> Serving {
    let file = run::scratch(&format!("{name}.token"));
    std::fs::write(&file, TOKEN).expect("the build directory is writable");
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("the file is ours");
    let file = file.to_string_lossy();
    let options = ["--http", "127.0.0.1:0", "--token-file", &file, "--prefix", "never", "--startup-grace-ms", "30000"];
    let gateway = [&[env!("CARGO_BIN_EXE_rialto"), "gateway"][..], &options, &["--"]].concat();
    Serving::start(&[words(&gateway), server.to_vec()].concat())
}

/// A client with the token in its environment.
fn with_token(client: Vec<String>) -> Vec<String> {
    [words(&["env", &format!("MCP_TOKEN={TOKEN}")]), client].concat()
}

/// The way in which a client reaches the gateway.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// One endpoint for everything.
    Streamable,
    /// The two endpoints of 2024-11-05.
    Oldest,
}

fn same_over_http(name: &str, client: Client, way: Way, server: Server) {
    let Some(peers) = Peers::installed() else { return };
    let server = peers.server(server);
    let direct = run(&format!("http-{name}-direct"), &peers.client(client, &[], &server));
    let gateway = gateway(name, &server);
    let url = match way {
        Way::Streamable => gateway.url.clone(),
        Way::Oldest => gateway.url.replace("/mcp", "/sse"),
    };
    let over_http = run(&format!("http-{name}"), &with_token(peers.client(client, &[], &[url])));
    let differences = report::differences(&direct, &over_http);
    assert!(differences.is_empty(), "{name}: the client sees something else over HTTP\n{differences}");
}

macro_rules! pairs {
    ($($name:ident: $client:ident over $way:ident => $server:ident;)*) => {$(
        #[test]
        fn $name() {
            same_over_http(stringify!($name), Client::$client, Way::$way, Server::$server);
        }
    )*};
}

pairs! {
    python_client: PythonLegacy over Streamable => Rust;
    modern_python_client: PythonModern over Streamable => TypeScript2;
    python_client_of_2024: PythonLegacy over Oldest => TypeScript1;
    typescript_1_client: TypeScript1 over Streamable => Python;
    typescript_1_client_of_2024: TypeScript1 over Oldest => Rust;
    typescript_2_client: TypeScript2Legacy over Streamable => Python;
    modern_typescript_2_client: TypeScript2Modern over Streamable => Rust;
}

#[test]
fn inspector_calls_a_tool() {
    let Some(peers) = Peers::installed() else { return };
    let gateway = gateway("inspector", &words(&[env!("CARGO_BIN_EXE_rialto"), "mcp", "example"]));
    for era in ["legacy", "modern"] {
        let header = format!("Authorization: Bearer {TOKEN}");
        let target = words(&[&gateway.url, "--transport", "http", "--header", &header, "-q", "--protocol-era", era]);
        let ask = |name: &str, method: &[&str]| {
            let command = [peers.inspector(), target.clone(), words(&["--method"]), words(method)].concat();
            report::parse(&run(&format!("http-inspector-{era}-{name}"), &command))
        };
        let list = ask("list", &["tools/list", "--strict"]);
        assert!(list["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == "echo"), "{era}: {list:#}");
        let result = ask("call", &["tools/call", "--tool-name", "echo", "--tool-arg", "text=hello"]);
        assert_eq!(result["content"], json!([{ "type": "text", "text": "hello" }]), "{era}: {result:#}");
    }
}
