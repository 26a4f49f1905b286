//! Tools of the actor that do harm: to whoever reads what they say, and to the machine if it lets them.

use std::fs;
use std::io::{self, Write};
use std::net::{TcpStream, UdpSocket};
use std::os::unix::process::parent_id;
use std::process::{Child, Command, Stdio, exit};
use std::time::Duration;

use rustix::process::{Pid, test_kill_process};
use serde_json::{Value, json};

/// The option of the actor that adds them.
pub const HARM: &str = "harm";

/// If a file with this name is in its directory, the actor dies as soon as it is started.
pub const STILLBORN: &str = "stillborn";

/// What stands where messages should.
const RUBBISH: [&[u8]; 8] = [
    b"[debug] not a message at all \x1b[31m",
    b"{\"jsonrpc\":\"2.0\",\"id\":999999,\"result\":{}}",
    b"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"Parse error\"}}",
    b"{\"jsonrpc\":\"1.0\",\"result\":1}",
    b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":12345}}",
    b"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
    b"\xff\xfe{\x80\x00",
    b"",
];

pub fn definitions() -> Vec<Value> {
    let tool = |name: &str, description: &str, properties: Value| json!({ "name": name, "description": description, "inputSchema": { "type": "object", "properties": properties } });
    let number = json!({ "type": "integer" });
    vec![
        tool("pour", "Answers with one line this long, in bytes", json!({ "bytes": number })),
        tool("garble", "Says rubbish before it answers", json!({ "times": number })),
        tool("flood", "Reports progress as fast as it can", json!({ "count": number })),
        tool("surroundings", "Tells all that it sees of its environment", json!({})),
        tool(
            "attempt",
            "Tries what it should not do",
            json!({ "what": { "type": "string" }, "at": { "type": "string" } }),
        ),
    ]
}

/// What they answer; `None` for a tool that is not of these.
pub fn answer(name: &str, id: &Value, params: &Value) -> Option<Option<Value>> {
    let number = |key: &str| params["arguments"][key].as_u64().unwrap_or(0);
    let text = |text: String| Some(json!({ "content": [{ "type": "text", "text": text }] }));
    Some(match name {
        "pour" => {
            pour(id, number("bytes"));
            None
        }
        "garble" => {
            for _ in 0..number("times") {
                RUBBISH.iter().for_each(|line| write(&[line, b"\n"]));
            }
            text("in the end".to_owned())
        }
        "flood" => {
            let token = &params["_meta"]["progressToken"];
            for step in (1..=number("count")).filter(|_| !token.is_null()) {
                let params = json!({ "progressToken": token, "progress": step, "message": "x".repeat(200) });
                let line = json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params });
                write(&[line.to_string().as_bytes(), b"\n"]);
            }
            text("dry".to_owned())
        }
        "surroundings" => {
            let variables: Vec<String> = std::env::vars().map(|(name, value)| format!("{name}={value}")).collect();
            text(variables.join("\n"))
        }
        "attempt" => {
            let argument = |key: &str| params["arguments"][key].as_str().unwrap_or_default();
            text(match attempt(argument("what"), argument("at")) {
                Ok(()) => "done".to_owned(),
                Err(error) => format!("denied: {error}"),
            })
        }
        _ => return None,
    })
}

/// More processes than any server needs; a bomb would not stop there.
const BOMB: usize = 600;

/// Tries to get at what is not its own.
fn attempt(what: &str, at: &str) -> io::Result<()> {
    match what {
        "read" => fs::read(at).map(drop),
        "write" => fs::write(at, "I was here"),
        "connect" => TcpStream::connect(at).map(drop),
        "send" => UdpSocket::bind("127.0.0.1:0")?.send_to(b"I was here", at).map(drop),
        "look into" => fs::File::open(format!("/proc/{}/mem", parent_id())).map(drop),
        "signal" => {
            let parent = Pid::from_raw(parent_id().cast_signed()).ok_or(io::ErrorKind::NotFound)?;
            Ok(test_kill_process(parent)?)
        }
        "fork" => {
            let mut children: Vec<Child> = Vec::new();
            let result = (0..BOMB).try_for_each(|_| {
                let mut sleep = Command::new("/bin/sleep");
                children.push(sleep.arg("60").stdin(Stdio::null()).stdout(Stdio::null()).spawn()?);
                Ok(())
            });
            for mut child in children {
                let _ = child.kill();
                let _ = child.wait();
            }
            result
        }
        // Whether a server can still work.
        "work" => {
            fs::write("own", "mine")?;
            std::thread::spawn(|| std::thread::sleep(Duration::from_millis(1)))
                .join()
                .map_err(|_| io::Error::other("no"))?;
            let said = Command::new("/bin/sh").args(["-c", "cat own"]).output()?;
            if said.stdout == b"mine" { Ok(()) } else { Err(io::Error::other("nothing came of it")) }
        }
        other => Err(io::Error::other(format!("unknown: {other}"))),
    }
}

/// An answer that is made while it is said, as it may be longer than our memory.
fn pour(id: &Value, bytes: u64) {
    let before = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"content\":[{{\"type\":\"text\",\"text\":\"");
    let piece = vec![b'x'; 1 << 20];
    let mut out = io::stdout().lock();
    let mut pour = || {
        out.write_all(before.as_bytes())?;
        for _ in 0..bytes >> 20 {
            out.write_all(&piece)?;
        }
        out.write_all(b"\"}]}}\n")?;
        out.flush()
    };
    if pour().is_err() {
        exit(0);
    }
}

fn write(pieces: &[&[u8]]) {
    let mut out = io::stdout().lock();
    if pieces.iter().try_for_each(|piece| out.write_all(piece)).and_then(|()| out.flush()).is_err() {
        exit(0);
    }
}
