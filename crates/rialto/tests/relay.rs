//! `rialto relay` as a process: ready when it says so, ended by a signal, and with its events after a kill.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should panic")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// Signed once for these tests.
const EVENT: &str = r#"{"kind":1,"content":"kept over a kill","tags":[],"created_at":1700000000,"pubkey":"989c0b76cb563971fdc9bef31ec06c3560f3249d6ee9e5d83c57625596e05f6f","id":"91cef075b452fdc38b55d1a46586a355c45f50414f09c8c1f6b6c39d618da0ca","sig":"28dd11e9da4d6606a577e64e1d1826003aee05034aba6a178938faef5826b58ff1c49bbd3e6d9dc6ed9a8acc314472a46fec73638a9cacd16bf1f5f4c2fd03ab"}"#;

/// A running `rialto relay` and what it said when it was ready. It does not outlive the test.
struct Running {
    child: Child,
    ready: Value,
}

impl Running {
    fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_rialto"))
            .args(["--json", "relay", "--listen", "127.0.0.1:0"])
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { child, ready: serde_json::from_str(&line).unwrap() }
    }

    fn address(&self) -> &str {
        self.ready["address"].as_str().unwrap()
    }

    fn signal(mut self, signal: Signal) -> Option<i32> {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
        self.child.wait().unwrap().code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A WebSocket by hand: one short frame there, and frames back until one begins with the wanted words.
fn ask(address: &str, message: &str, wanted: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let opening = "GET / HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\nconnection: upgrade\r\n\
                   sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    stream.write_all(opening.as_bytes()).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        assert!(reader.read_line(&mut line).unwrap() > 0, "the relay hung up");
    }
    let mut frame = vec![0x81, 0xfe];
    frame.extend(u16::try_from(message.len()).unwrap().to_be_bytes());
    frame.extend([0; 4]);
    frame.extend(message.as_bytes());
    stream.write_all(&frame).unwrap();
    loop {
        let mut head = [0; 2];
        reader.read_exact(&mut head).unwrap();
        let mut length = usize::from(head[1]);
        if length == 126 {
            reader.read_exact(&mut head).unwrap();
            length = u16::from_be_bytes(head).into();
        }
        let mut payload = vec![0; length];
        reader.read_exact(&mut payload).unwrap();
        let text = String::from_utf8(payload).unwrap();
        if text.starts_with(wanted) {
            return text;
        }
    }
}

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rialto")).arg("relay").args(arguments).output().unwrap()
}

#[test]
fn it_tells_its_address_and_ends_with_a_signal() {
    for signal in [Signal::TERM, Signal::INT] {
        let relay = Running::start(&[]);
        assert_eq!(relay.ready["url"], json!(format!("ws://{}", relay.address())));
        assert_eq!(relay.ready["store"], Value::Null);
        assert_eq!(ask(relay.address(), "[\"REQ\",\"x\",{}]", "[\"EOSE\""), "[\"EOSE\",\"x\"]");
        assert_eq!(relay.signal(signal), Some(0));
    }
}

#[test]
fn what_was_accepted_survives_a_kill() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("events.jsonl");
    let store = ["--store", file.to_str().unwrap()];
    let relay = Running::start(&store);
    let answer = ask(relay.address(), &format!("[\"EVENT\",{EVENT}]"), "[\"OK\"");
    assert!(answer.ends_with(",true,\"\"]"), "{answer}");
    assert_eq!(relay.signal(Signal::KILL), None);
    let relay = Running::start(&store);
    let answer = ask(relay.address(), "[\"REQ\",\"x\",{\"kinds\":[1]}]", "[\"EVENT\"");
    assert_eq!(answer, format!("[\"EVENT\",\"x\",{EVENT}]"));

    let second = run(&["--listen", "127.0.0.1:0", store[0], store[1]]);
    assert_failure(&second, "another relay uses this file", "give each relay its own --store");
}

#[test]
fn a_port_in_use_is_said_with_what_to_do() {
    let relay = Running::start(&[]);
    let second = run(&["--listen", relay.address()]);
    assert_failure(&second, "Address already in use", "rialto relay --listen 127.0.0.1:0");
    let nowhere = run(&["--listen", "127.0.0.1:0", "--store", Path::new("no/such/folder").to_str().unwrap()]);
    assert_failure(&nowhere, "cannot use the file no/such/folder", "");
}

fn assert_failure(output: &Output, cause: &str, hint: &str) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.starts_with("error: the relay cannot start\n"), "{stderr}");
    assert!(stderr.contains(cause) && stderr.contains(hint), "{stderr}");
}
