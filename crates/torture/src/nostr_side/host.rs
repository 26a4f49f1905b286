//! An MCP host that uses services through `rialto use`.

use serde_json::{Value, json};

use super::PATIENCE;
use super::process::Process;
use super::world::World;

pub struct Host {
    pub process: Process,
    next: u64,
}

impl Host {
    /// Starts `rialto use` with these arguments and shakes hands.
    #[track_caller]
    pub fn start(world: &World, arguments: &[&str]) -> Self {
        let mut host = Self::start_silent(world, arguments);
        host.begin();
        host
    }

    /// The same without the handshake.
    pub fn start_silent(world: &World, arguments: &[&str]) -> Self {
        Self::over(world.rialto("customer", &[&["use"], arguments].concat()))
    }

    /// A host of an MCP server that was started already.
    pub fn over(process: Process) -> Self {
        Self { process, next: 0 }
    }

    #[track_caller]
    pub fn begin(&mut self) -> Value {
        self.begin_as("2025-06-18")
    }

    /// Shakes hands in this version of the protocol.
    #[track_caller]
    pub fn begin_as(&mut self, version: &str) -> Value {
        let params = json!({
            "protocolVersion": version, "capabilities": {}, "clientInfo": { "name": "host", "version": "1" }
        });
        let answer = self.ask("initialize", &params);
        self.notify("notifications/initialized", &json!({}));
        answer
    }

    pub fn notify(&mut self, method: &str, params: &Value) {
        self.process.write(&json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string());
    }

    /// Sends a request; gives its id.
    pub fn request(&mut self, method: &str, params: &Value) -> u64 {
        self.next += 1;
        let request = json!({ "jsonrpc": "2.0", "id": self.next, "method": method, "params": params });
        self.process.write(&request.to_string());
        self.next
    }

    /// Waits for a message that fits.
    #[track_caller]
    pub fn wait(&self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let found = self.process.stdout.wait(PATIENCE, |lines| {
            let mut messages = lines.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            messages.find(|message| fits(message))
        });
        found.unwrap_or_else(|| panic!("no {what}\n{}", self.process.told()))
    }

    /// Waits for the answer to a request.
    #[track_caller]
    pub fn answer(&self, id: u64) -> Value {
        self.wait(&format!("answer to {id}"), |message| message["id"] == id && message.get("method").is_none())
    }

    /// Asks and waits for the result.
    #[track_caller]
    pub fn ask(&mut self, method: &str, params: &Value) -> Value {
        let id = self.request(method, params);
        let answer = self.answer(id);
        assert!(answer.get("error").is_none(), "{method}: {answer:#}");
        answer["result"].clone()
    }

    pub fn call(&mut self, tool: &str, arguments: &Value) -> u64 {
        self.request("tools/call", &json!({ "name": tool, "arguments": arguments }))
    }
}
