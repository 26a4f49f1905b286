//! A session with the gateway over HTTP, byte by byte.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::Value;

use crate::nostr_side::PATIENCE;
use crate::nostr_side::actor;
use crate::nostr_side::process::Process;
use crate::nostr_side::world::World;

const TOKEN: &str = "open-sesame-0123456789abcdef";

pub(super) struct Http {
    address: String,
    session: String,
    _gateway: Process,
}

impl Http {
    /// A gateway in front of the actor, and a client that has introduced itself.
    pub(super) fn open(world: &World) -> Self {
        let token = crate::market::secret_file(world, "token", TOKEN);
        let (program, home) = (std::env::current_exe().unwrap(), world.home("served"));
        let server = ["--", program.to_str().unwrap(), actor::ACTOR, home.to_str().unwrap()];
        let fixed = ["gateway", "--http", "127.0.0.1:0", "--token-file", token.to_str().unwrap()];
        let gateway = world.rialto("gateway", &[&fixed[..], &server[..]].concat());
        let line = gateway.says("listening on http://");
        let address = line.split_once("http://").unwrap().1.split('/').next().unwrap().to_owned();
        let mut http = Self { address, session: String::new(), _gateway: gateway };
        let hello = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
        let (_, head, body) = http.post(hello);
        assert!(body["result"].is_object(), "{head}{body}");
        let session =
            head.lines().find_map(|line| line.to_lowercase().strip_prefix("mcp-session-id: ").map(str::to_owned));
        // The name of the header is written in any case, its value is not.
        let session = session.unwrap_or_else(|| panic!("no session in {head}"));
        let at = head.to_lowercase().find(&session).unwrap();
        http.session = head[at..at + session.len()].trim().to_owned();
        http.post(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        http
    }

    /// Sends a body; gives the status, the head, and the message in the answer, if there is one.
    pub(super) fn post(&self, body: &str) -> (u16, String, Value) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let session = match self.session.as_str() {
            "" => String::new(),
            id => format!("Mcp-Session-Id: {id}\r\nMCP-Protocol-Version: 2025-11-25\r\n"),
        };
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n{session}Content-Length: {}\r\nConnection: close\r\n\r\n",
            self.address,
            body.len()
        );
        // A server that has heard enough may answer before it has read everything.
        let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
        let message = body.lines().find_map(|line| {
            let line = line.strip_prefix("data: ").unwrap_or(line);
            serde_json::from_str::<Value>(line).ok().filter(Value::is_object)
        });
        (status, head.to_owned(), message.unwrap_or_default())
    }
}
