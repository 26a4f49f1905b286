//! The gateway under test, and clients of every version that knock at it.

use std::fs;
use std::net::SocketAddr;
use std::ops::Deref;
use std::os::unix::fs::PermissionsExt;

use super::Stage;
use super::gateway::Gateway;
use super::line::Line;
use super::server::Server;
use super::wire::{Answer, Ask, Messages, Wire};

/// The versions that keep sessions over one endpoint.
pub const SESSION_VERSIONS: [&str; 3] = ["2025-03-26", "2025-06-18", "2025-11-25"];

/// What the clients of these tests must show.
pub const TOKEN: &str = "open-sesame-0123456789abcdef";

/// What a client that can do everything says it can do.
pub const ABLE: &str = r#"{"sampling":{},"elicitation":{},"roots":{"listChanged":true}}"#;

/// A running gateway.
pub struct Door {
    pub gateway: Gateway,
    place: Place,
}

/// Where a gateway is reached, from any thread.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    pub address: SocketAddr,
}

impl Deref for Door {
    type Target = Place;

    fn deref(&self) -> &Place {
        &self.place
    }
}

impl Door {
    /// In front of these servers, whose tools have their names in front.
    pub fn open(stage: &Stage, servers: &[&Server], flags: &[&str]) -> Self {
        stage.configure(servers);
        Self::start(stage, flags, &[])
    }

    /// In front of one server, whose tools keep their names.
    pub fn single(stage: &Stage, server: &Server) -> Self {
        let command = stage.command(server);
        let command: Vec<&str> = std::iter::once("--").chain(command.iter().map(String::as_str)).collect();
        Self::start(stage, &[], &command)
    }

    fn start(stage: &Stage, flags: &[&str], command: &[&str]) -> Self {
        let token = stage.path().join("token");
        fs::write(&token, TOKEN).unwrap();
        fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).unwrap();
        let fixed = ["gateway", "--http", "127.0.0.1:0", "--token-file", token.to_str().unwrap()];
        let (mut gateway, output) = stage.start(&[&fixed, flags, command].concat());
        gateway.read(output);
        let line = gateway.error_line("listening on http://");
        let address = line.split_once("http://").unwrap().1.split('/').next().unwrap().parse().unwrap();
        Self { gateway, place: Place { address } }
    }
}

impl Place {
    pub fn connect(&self) -> Wire {
        Wire::to(self.address)
    }

    /// A request as a client sends it that is allowed in.
    pub fn signed(&self, ask: &Ask) -> Ask {
        let mut ask = ask.clone();
        for (name, value) in [("Host", self.address.to_string()), ("Authorization", format!("Bearer {TOKEN}"))] {
            if !ask.has(name) {
                ask = ask.with(name, &value);
            }
        }
        ask
    }

    /// Sends a request over a connection of its own.
    pub fn send(&self, ask: &Ask) -> Wire {
        let wire = self.connect();
        wire.send(&self.signed(ask).bytes());
        wire
    }

    /// Sends a request and reads its answer to the end.
    pub fn ask(&self, ask: &Ask) -> Answer {
        self.send(ask).answer()
    }

    /// Sends a request and reads the messages that answer it, as they come.
    pub fn listen(&self, ask: &Ask) -> Messages {
        self.send(ask).messages()
    }

    /// Begins a session, as a client that can do everything.
    pub fn session(&self, version: &'static str) -> Session<'_> {
        self.session_of(version, ABLE)
    }

    pub fn session_of(&self, version: &'static str, capabilities: &str) -> Session<'_> {
        let answer = self.ask(&Ask::post(initialize(version, capabilities)));
        let id = answer.head.header("mcp-session-id").unwrap_or_else(|| panic!("no session: {}", answer.text()));
        let session = Session { door: self, id: id.to_owned(), version };
        assert_eq!(answer.message().raw(&["result", "protocolVersion"]), format!("\"{version}\""));
        let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        assert_eq!(self.ask(&session.post(initialized)).status(), 202);
        session
    }

    /// Opens the stream of a 2024-11-05 client, and introduces it.
    pub fn oldest(&self, target: &str) -> Oldest<'_> {
        let mut oldest = Oldest::new(self, target);
        assert_eq!(oldest.post(initialize("2024-11-05", ABLE)), 202);
        assert_eq!(oldest.stream.answer("\"hello\"").raw(&["result", "protocolVersion"]), "\"2024-11-05\"");
        assert_eq!(oldest.post(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#), 202);
        oldest
    }
}

/// The first request of a client.
pub fn initialize(version: &str, capabilities: &str) -> String {
    request(
        "\"hello\"",
        "initialize",
        &format!(
            r#"{{"protocolVersion":"{version}","capabilities":{capabilities},"clientInfo":{{"name":"t","version":"1"}}}}"#
        ),
    )
}

pub fn request(id: &str, method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
}

/// A call of a tool, with a progress token and one argument.
pub fn call(id: &str, tool: &str, argument: &str) -> String {
    let params =
        format!(r#"{{"name":"{tool}","arguments":{{"value":{argument}}},"_meta":{{"progressToken":"token"}}}}"#);
    request(id, "tools/call", &params)
}

/// One session of the versions that have them.
pub struct Session<'a> {
    pub door: &'a Place,
    pub id: String,
    pub version: &'static str,
}

impl Session<'_> {
    /// Adds what every request of this session says.
    pub fn of(&self, ask: Ask) -> Ask {
        let ask = ask.with("Mcp-Session-Id", &self.id);
        // The oldest of these versions knows no such header.
        if self.version == "2025-03-26" { ask } else { ask.with("MCP-Protocol-Version", self.version) }
    }

    pub fn post(&self, body: impl AsRef<[u8]>) -> Ask {
        self.of(Ask::post(body))
    }

    /// Sends messages; what answers them can be read later.
    pub fn send(&self, body: impl AsRef<[u8]>) -> Wire {
        self.door.send(&self.post(body))
    }

    /// Sends a message that is not answered.
    pub fn tell(&self, body: &str) {
        let answer = self.door.ask(&self.post(body));
        assert_eq!((answer.status(), answer.body.len()), (202, 0), "{body}");
    }

    pub fn ask(&self, id: &str, method: &str, params: &str) -> Line {
        self.send(request(id, method, params)).messages().answer(id)
    }

    /// Opens the stream for what belongs to no request.
    pub fn stream(&self) -> Messages {
        let stream = self.door.listen(&self.of(Ask::get("/mcp")));
        assert_eq!(stream.head.status, 200);
        stream
    }

    /// Comes back to a stream behind the event that arrived last.
    pub fn resume(&self, last: &str) -> Messages {
        self.door.listen(&self.of(Ask::get("/mcp")).with("Last-Event-ID", last))
    }

    /// The status that a later request of this session gets.
    pub fn status(&self) -> u16 {
        self.door.ask(&self.post(r#"{"jsonrpc":"2.0","method":"notifications/vendor"}"#)).status()
    }
}

/// A client of 2024-11-05: one stream for all that is answered, and an address to post to.
pub struct Oldest<'a> {
    door: &'a Place,
    pub stream: Messages,
    pub target: String,
}

impl<'a> Oldest<'a> {
    pub fn new(door: &'a Place, target: &str) -> Self {
        let mut stream = door.listen(&Ask::get(target));
        assert_eq!(stream.head.status, 200);
        let first = stream.event().unwrap();
        assert_eq!(first.kind, "endpoint");
        Self { door, stream, target: first.data }
    }

    /// Posts and gives the status.
    pub fn post(&self, body: impl AsRef<[u8]>) -> u16 {
        self.door.ask(&Ask::post_to(&self.target, body)).status()
    }

    pub fn ask(&mut self, id: &str, method: &str, params: &str) -> Line {
        assert_eq!(self.post(request(id, method, params)), 202);
        self.stream.answer(id)
    }
}

/// What each request of a stateless client carries.
pub const META: &str = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"sampling":{}},"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"}"#;

/// A stateless request; `more` are further members of its params, each with a comma in front.
pub fn stateless(id: &str, method: &str, more: &str) -> Ask {
    let params = format!(r#"{{"_meta":{{{META},"progressToken":"token"}}{more}}}"#);
    Ask::post(request(id, method, &params)).with("MCP-Protocol-Version", "2026-07-28").with("Mcp-Method", method)
}

/// A stateless call of a tool with one argument.
pub fn stateless_call(id: &str, tool: &str, argument: &str) -> Ask {
    let more = format!(r#","name":"{tool}","arguments":{{"value":{argument}}}"#);
    stateless(id, "tools/call", &more).with("Mcp-Name", tool)
}
