//! The Nostr tools through the real binary: keys are given on the side, tools are called over standard input and output, and
//! a planted key is found nowhere but in its own file.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use nostr::nips::nip19::ToBech32;
use nostr::prelude::Keys;
use serde_json::{Value, json};

/// Runs the binary at its most talkative, with something on its standard input.
fn rialto(home: &Path, arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_rialto"))
        .args(arguments)
        .arg("-vv")
        .env_clear()
        .env("HOME", home)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A program that refuses its arguments does not read.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

fn files(directory: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push((path.display().to_string(), String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned()));
        }
    }
    found
}

#[test]
fn a_key_that_is_given_on_the_side_signs_and_is_never_seen() {
    let home = tempfile::tempdir().unwrap();
    let keys = Keys::generate();
    let nsec = keys.secret_key().to_bech32().unwrap();
    let hex = keys.secret_key().to_secret_hex();
    let mut said = Vec::new();
    let imported = rialto(home.path(), &["nostr", "keys", "import", "me"], &nsec);
    assert!(imported.status.success(), "{}", String::from_utf8_lossy(&imported.stderr));
    said.extend([imported.stdout, imported.stderr]);
    let about = json!({ "name": "test", "version": "1" });
    let mut lines = vec![json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params":
        { "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": about } })];
    let calls = [
        ("nostr_events_sign", json!({ "unsigned_event_json": r#"{"kind":1,"content":"hi"}"# })),
        ("nostr_keys_export", json!({ "include_private": true })),
        ("nostr_keys_verify", json!({ "key": nsec })),
        ("nostr_keys_verify", json!({ "key": hex })),
        ("nostr_keys_generate", json!({ "label": nsec })),
        ("nostr_keys_import", json!({ "label": "again", "key_material": nsec })),
        (
            "nostr_nip44_encrypt",
            json!({ "private_key": hex, "public_key": keys.public_key().to_hex(), "plaintext": nsec }),
        ),
        ("nostr_events_query", json!({ "filters": [{ "ids": [hex] }] })),
    ];
    for (number, (name, arguments)) in calls.iter().enumerate() {
        let params = json!({ "name": name, "arguments": arguments });
        lines.push(json!({ "jsonrpc": "2.0", "id": number + 1, "method": "tools/call", "params": params }));
    }
    let input: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let served = rialto(home.path(), &["mcp", "nostr"], &input);
    assert!(served.status.success(), "{}", String::from_utf8_lossy(&served.stderr));
    let answers: Vec<Value> =
        String::from_utf8_lossy(&served.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), calls.len() + 1);
    let signed = answers.iter().find(|answer| answer["id"] == 1).unwrap();
    assert_eq!(signed["result"]["structuredContent"]["pubkey"], keys.public_key().to_hex());
    let exported = answers.iter().find(|answer| answer["id"] == 2).unwrap();
    assert_eq!(exported["error"]["data"]["reason"], "not_allowed");
    said.extend([served.stdout, served.stderr]);
    let log = rialto(home.path(), &["nostr", "log", "--json"], "");
    assert!(String::from_utf8_lossy(&log.stdout).contains("nostr_events_sign"));
    said.extend([log.stdout, log.stderr]);
    for text in said.iter().map(|bytes| String::from_utf8_lossy(bytes)) {
        assert!(!text.contains(&nsec) && !text.contains(&hex), "{text}");
    }
    let own = format!("secrets/{}", keys.public_key().to_hex());
    for (path, text) in files(home.path()) {
        assert!(path.ends_with(&own) || (!text.contains(&nsec) && !text.contains(&hex)), "{path}");
    }
}

#[test]
fn a_sealed_key_needs_its_passphrase() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("passphrase");
    fs::write(&file, "correct horse\n").unwrap();
    let path = file.to_str().unwrap();
    let exposed = rialto(home.path(), &["nostr", "keys", "--passphrase-file", path, "add", "me"], "");
    assert!(String::from_utf8_lossy(&exposed.stderr).contains("chmod 600"));
    fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let made = rialto(home.path(), &["nostr", "keys", "--passphrase-file", path, "add", "me"], "");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let locked = rialto(home.path(), &["nostr", "keys", "show", "me", "--secret"], "");
    assert!(!locked.status.success());
    let shown = rialto(home.path(), &["nostr", "keys", "--passphrase-file", path, "show", "me", "--secret"], "");
    assert!(String::from_utf8_lossy(&shown.stdout).contains("nsec1"));
}

#[test]
fn several_servers_turn_the_page_of_their_log_and_lose_no_line() {
    const SERVERS: usize = 4;
    const CALLS: usize = 12;
    const PAGE: usize = 4 * 1024 * 1024;
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("nostr");
    fs::create_dir(&folder).unwrap();
    // The page is nearly full, with lines of earlier days.
    let old = json!({ "at": 1, "call": "1-1-1", "tool": "nostr_keys_generate", "outcome": "done", "message": "x".repeat(900) });
    let old = format!("{old}\n");
    let room = SERVERS * CALLS * 150;
    fs::write(folder.join("log.jsonl"), old.repeat((PAGE - room) / old.len())).unwrap();
    let (path, root) = (folder.to_str().unwrap(), home.path());
    let served: Vec<Output> = std::thread::scope(|scope| {
        let servers: Vec<_> = (0..SERVERS)
            .map(|server| {
                scope.spawn(move || {
                    let about = json!({ "name": format!("client {server}"), "version": "1" });
                    let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": about });
                    let mut lines = vec![json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello })];
                    for call in 0..CALLS {
                        let arguments = json!({ "label": format!("{server}-{call}") });
                        let params = json!({ "name": "nostr_keys_generate", "arguments": arguments });
                        lines.push(
                            json!({ "jsonrpc": "2.0", "id": call + 1, "method": "tools/call", "params": params }),
                        );
                    }
                    let input: String = lines.iter().map(|line| format!("{line}\n")).collect();
                    rialto(root, &["mcp", "nostr", "--directory", path], &input)
                })
            })
            .collect();
        servers.into_iter().map(|server| server.join().unwrap()).collect()
    });
    assert!(served.iter().all(|output| output.status.success()));
    assert!(folder.join("log.1.jsonl").exists(), "the page was turned");
    let log = rialto(home.path(), &["--json", "nostr", "log", "--last", "1000000", "--directory", path], "");
    let lines: Vec<Value> =
        String::from_utf8_lossy(&log.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for server in 0..SERVERS {
        for outcome in ["begun", "done"] {
            let client = format!("client {server}");
            let own = lines.iter().filter(|line| line["client"] == client.as_str() && line["outcome"] == outcome);
            assert_eq!(own.count(), CALLS, "{client} {outcome}");
        }
    }
}

#[test]
fn any_server_is_checked() {
    let home = tempfile::tempdir().unwrap();
    let binary = env!("CARGO_BIN_EXE_rialto");
    let ours = rialto(home.path(), &["--json", "nostr", "registry", "check"], "");
    let report: Value = serde_json::from_slice(&ours.stdout).unwrap();
    assert_eq!((ours.status.code(), &report["conformant"]), (Some(0), &json!(true)), "{report}");
    let others = Command::new(binary)
        .args(["--json", "nostr", "registry", "check", "--server", binary, "mcp", "example"])
        .env("HOME", home.path())
        .output()
        .unwrap();
    let report: Value = serde_json::from_slice(&others.stdout).unwrap();
    assert_eq!((others.status.code(), &report["conformant"]), (Some(5), &json!(false)), "{report}");
}
