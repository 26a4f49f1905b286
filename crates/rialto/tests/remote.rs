//! A gateway in front of a gateway, over HTTP: the client half and the server half of the product speak with each other.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should panic")]

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

const RIALTO: &str = env!("CARGO_BIN_EXE_rialto");
const PATIENCE: Duration = Duration::from_secs(60);

/// A running command; killed when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn rialto(home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(RIALTO);
    command.args(arguments).env_clear().env("HOME", home).env("PATH", "/usr/bin:/bin").current_dir(home);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The lines that come out of something.
fn lines(from: impl Read + Send + 'static) -> Receiver<String> {
    let (send, receive) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            if send.send(line).is_err() {
                return;
            }
        }
    });
    receive
}

/// A gateway for many clients in front of the example server; its address, and the token that it wants.
fn far(home: &Path) -> (Running, String, String) {
    let arguments = ["gateway", "--http", "127.0.0.1:0", "--", RIALTO, "mcp", "example"];
    let mut child = rialto(home, &arguments).spawn().unwrap();
    let talk = lines(child.stderr.take().unwrap());
    let running = Running(child);
    let address = loop {
        let line = talk.recv_timeout(PATIENCE).expect("it says where it listens");
        if let Some(rest) = line.strip_prefix("listening on ") {
            break rest.split(' ').next().unwrap().to_owned();
        }
    };
    let printed = rialto(home, &["gateway", "--print-token"]).output().unwrap();
    // The rest of what it says is not waited for, but must not fill its pipe.
    std::thread::spawn(move || talk.iter().for_each(drop));
    (running, address, String::from_utf8(printed.stdout).unwrap().trim().to_owned())
}

/// A gateway for one host, and both ends of its pipes.
struct Near {
    _running: Running,
    input: ChildStdin,
    output: Receiver<String>,
    talk: Receiver<String>,
}

impl Near {
    fn start(home: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut child = rialto(home, arguments).envs(variables.iter().copied()).spawn().unwrap();
        let input = child.stdin.take().unwrap();
        let (output, talk) = (lines(child.stdout.take().unwrap()), lines(child.stderr.take().unwrap()));
        Self { _running: Running(child), input, output, talk }
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.input, "{message}").unwrap();
    }

    /// Asks something and waits for its answer.
    fn ask(&mut self, id: u64, method: &str, params: &Value) -> Value {
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        loop {
            let line = self.output.recv_timeout(PATIENCE).expect("an answer");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == id {
                return message;
            }
        }
    }

    fn introduce(&mut self) -> Value {
        let hello = json!({
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" },
        });
        let answer = self.ask(0, "initialize", &hello);
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        answer
    }
}

#[test]
fn the_same_tools_come_through_both_gateways_in_either_era() {
    let home = tempfile::tempdir().unwrap();
    let (_far, address, token) = far(home.path());
    let near_alone = |arguments: &[&str]| Near::start(home.path(), arguments, &[]);
    let mut alone = near_alone(&["gateway", "--stdio", "--", RIALTO, "mcp", "example"]);
    alone.introduce();
    let expected = alone.ask(1, "tools/list", &json!({}))["result"]["tools"].clone();
    assert!(expected.as_array().unwrap().len() > 2, "{expected}");
    for era in ["legacy", "modern", "auto"] {
        let header = "Authorization: Bearer ${FAR_TOKEN}";
        let arguments = ["gateway", "--stdio", "--era", era, "--url", &address, "--header", header];
        let mut near = Near::start(home.path(), &arguments, &[("FAR_TOKEN", &token)]);
        near.introduce();
        assert_eq!(near.ask(1, "tools/list", &json!({}))["result"]["tools"], expected, "{era}");
        let called = near.ask(2, "tools/call", &json!({ "name": "echo", "arguments": { "text": "höher" } }));
        assert_eq!(called["result"]["content"][0]["text"], "höher", "{era}: {called}");
    }
}

#[test]
fn a_wrong_token_is_told_without_being_shown() {
    let home = tempfile::tempdir().unwrap();
    let (_far, address, _) = far(home.path());
    let arguments = ["gateway", "--stdio", "--url", &address, "--header", "Authorization: Bearer hunter2"];
    let mut near = Near::start(home.path(), &arguments, &[]);
    near.introduce();
    let refused = near.ask(1, "tools/call", &json!({ "name": "echo", "arguments": {} }));
    let said: String = near.talk.try_iter().collect();
    let refused = refused.to_string();
    assert!(refused.contains("bearer token is not the right one") && !refused.contains("hunter2"), "{refused}");
    assert!(said.contains("bearer token") && !said.contains("hunter2"), "{said}");
}

#[test]
fn configured_servers_and_doctor_know_remote_ones() {
    let home = tempfile::tempdir().unwrap();
    let (_far, address, token) = far(home.path());
    let file = json!({ "mcpServers": {
        "far": { "type": "http", "url": address, "headers": { "Authorization": "Bearer ${FAR_TOKEN}" } },
    } });
    std::fs::write(home.path().join("mcp.json"), file.to_string()).unwrap();
    let arguments = ["gateway", "--stdio", "--config", "mcp.json"];
    let mut near = Near::start(home.path(), &arguments, &[("FAR_TOKEN", &token)]);
    near.introduce();
    let listed = near.ask(1, "tools/list", &json!({}));
    assert!(listed.to_string().contains("far__echo"), "{listed}");
    let looked = rialto(home.path(), &["doctor", "--json"])
        .env("FAR_TOKEN", &token)
        .env("RIALTO_CONFIG", home.path().join("mcp.json"))
        .output()
        .unwrap();
    let looked = String::from_utf8(looked.stdout).unwrap();
    let about = looked.lines().find(|line| line.contains("\"far\"")).expect("a line about the server");
    assert!(about.contains("MCP 20"), "{about}");
    assert!(!looked.contains(&token), "{looked}");
}

/// One answer to one request over a connection that ends with it: a server that wants a login, and gives it to everybody.
fn attend(mut stream: TcpStream, address: &str) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let target = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut headers = HashMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let Some((name, value)) = line.trim().split_once(": ") else { break };
        headers.insert(name.to_lowercase(), value.to_owned());
    }
    let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let (status, more, text) = reply(&target, &headers, &body, address);
    let head = format!("HTTP/1.1 {status} x\r\nContent-Length: {}\r\nConnection: close\r\n{more}\r\n", text.len());
    let _ = stream.write_all(format!("{head}{text}").as_bytes());
}

fn reply(target: &str, headers: &HashMap<String, String>, body: &[u8], address: &str) -> (u16, String, String) {
    let json_text = |value: Value| (200, "Content-Type: application/json\r\n".to_owned(), value.to_string());
    match target.split('?').next().unwrap() {
        "/mcp" if headers.get("authorization").map(String::as_str) != Some("Bearer hunter2") => {
            (401, "WWW-Authenticate: Bearer\r\n".to_owned(), String::new())
        }
        "/mcp" => {
            let message: Value = serde_json::from_slice(body).unwrap_or_default();
            let result = match message["method"].as_str() {
                Some("initialize") => json!({
                    "protocolVersion": "2025-11-25", "capabilities": { "tools": {} }, "serverInfo": { "name": "s", "version": "1" },
                }),
                Some("tools/list") => json!({ "tools": [{ "name": "t", "inputSchema": { "type": "object" } }] }),
                Some("tools/call") => json!({ "content": [{ "type": "text", "text": "in" }] }),
                _ => return (202, String::new(), String::new()),
            };
            json_text(json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }))
        }
        "/.well-known/oauth-protected-resource/mcp" => {
            json_text(json!({ "resource": format!("{address}/mcp"), "authorization_servers": [address] }))
        }
        "/.well-known/oauth-authorization-server" => json_text(json!({
            "issuer": address,
            "authorization_endpoint": format!("{address}/authorize"),
            "token_endpoint": format!("{address}/token"),
            "registration_endpoint": format!("{address}/register"),
            "code_challenge_methods_supported": ["S256"],
        })),
        "/register" => json_text(json!({ "client_id": "us" })),
        "/token" => json_text(json!({ "access_token": "hunter2", "token_type": "Bearer", "expires_in": 3600 })),
        _ => (404, String::new(), String::new()),
    }
}

/// Goes to the address that the login waits at, as the authorization server would send a browser there.
fn agree(login: &str) {
    let query: HashMap<&str, &str> =
        login.split_once('?').unwrap().1.split('&').filter_map(|pair| pair.split_once('=')).collect();
    assert!(query.contains_key("code_challenge") && query["code_challenge_method"] == "S256", "{login}");
    let back = query["redirect_uri"].replace("%3A", ":").replace("%2F", "/");
    let (host, path) = back.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    let request = format!("GET /{path}?code=x&state={} HTTP/1.1\r\nHost: {host}\r\n\r\n", query["state"]);
    stream.write_all(request.as_bytes()).unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    assert!(page.contains("You are logged in"), "{page}");
}

#[test]
fn a_gateway_asks_for_a_login_and_works_after_it() {
    let home = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let served = address.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let address = served.clone();
            std::thread::spawn(move || attend(stream, &address));
        }
    });
    let file = format!("[servers.files]\nurl = \"{address}/mcp\"\n");
    std::fs::write(home.path().join("rialto.toml"), file).unwrap();
    let mut near = Near::start(home.path(), &["gateway", "--stdio"], &[]);
    near.introduce();
    let refused = near.ask(1, "tools/call", &json!({ "name": "files__t", "arguments": {} }));
    assert!(refused.to_string().contains("login needed: rialto auth login files"), "{refused}");

    let mut login = Running(rialto(home.path(), &["auth", "login", "files", "--no-browser"]).spawn().unwrap());
    let talk = lines(login.0.stderr.take().unwrap());
    let said = talk.recv_timeout(PATIENCE).expect("the address to log in at");
    agree(said.strip_prefix("log in here: ").unwrap());
    assert!(login.0.wait().unwrap().success());
    let said: Vec<String> = talk.iter().collect();
    assert_eq!(said, [format!("logged in at {address}/mcp")]);
    let tokens = home.path().join(".local/state/rialto/tokens.json");
    assert_eq!(std::fs::metadata(tokens).unwrap().permissions().mode() & 0o777, 0o600);

    // The gateway that runs finds the login by itself.
    let called = (2..).map(|id| near.ask(id, "tools/call", &json!({ "name": "files__t", "arguments": {} })));
    let worked = called.take(120).any(|answer| {
        let is_in = answer["result"]["content"][0]["text"] == "in";
        if !is_in {
            std::thread::sleep(Duration::from_millis(500));
        }
        is_in
    });
    let said: String = near.talk.try_iter().collect::<Vec<_>>().join("\n");
    assert!(worked, "{said}");
    assert!(!said.contains("hunter2"), "{said}");
}
