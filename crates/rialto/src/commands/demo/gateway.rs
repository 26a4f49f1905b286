//! A real gateway with real servers behind it, used by a real client.

use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rialto_mcp::client::{Client, Host, Opening};
use rialto_mcp::json;
use rialto_mcp::message::{Notification, Request, Response};
use rialto_mcp::outlet::outlet;
use rialto_mcp::peer::Profile;
use rialto_mcp::pending::{Asker, Patience, Progress, Reason};
use rialto_mcp::reply::Answer;
use serde_json::{Value, json};
use tokio::process::{Child, Command};

use super::Teller;
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};

/// Generous for a machine under load; everything here takes milliseconds.
const PATIENCE: Patience = Patience { silence: Duration::from_secs(30), total: Duration::from_secs(60) };

pub(super) async fn show(teller: &Teller) -> Outcome {
    let mut stage = Stage::start(teller).await?;
    let played = stage.play().await;
    stage.end().await;
    played
}

/// The gateway's process and our connection to it.
struct Stage<'a> {
    teller: &'a Teller,
    gateway: Child,
    client: Arc<Client>,
}

/// The host's side of the conversation: it answers questions meant for a user.
struct Audience;

impl Host for Audience {
    async fn request(&self, request: Request, _reason: Reason) -> Answer {
        match request.method() {
            "elicitation/create" => Answer::Result(br#"{"action":"accept","content":{"colour":"blue"}}"#.to_vec()),
            method => Answer::Error(rialto_mcp::error::Error::method_not_found(method)),
        }
    }

    async fn notification(&self, _note: Notification) {}

    fn stray(&self, _text: &[u8]) {}
}

impl<'a> Stage<'a> {
    async fn start(teller: &'a Teller) -> Result<Self, Failure> {
        let begun = Instant::now();
        let failed = |error: &std::io::Error| Failure::unexpected("cannot start the gateway").because(error);
        let program = std::env::current_exe().map_err(|error| failed(&error))?;
        let server = json!({ "command": program, "args": ["mcp", "example"] });
        let config = json!({ "mcpServers": { "left": server, "right": server } }).to_string();
        let file = std::env::temp_dir().join(format!("rialto-demo-{}.json", std::process::id()));
        write_private(&file, &config).map_err(|error| failed(&error))?;
        let mut gateway = Command::new(&program)
            .args(["gateway", "--stdio", "--quiet", "--config"])
            .arg(&file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| failed(&error))?;
        let (Some(input), Some(output)) = (gateway.stdin.take(), gateway.stdout.take()) else {
            return Err(Failure::unexpected("the gateway has no pipes"));
        };
        let (outlet, drain) = outlet();
        tokio::spawn(drain.pump(input));
        let client = Client::new(outlet);
        tokio::spawn({
            let client = client.clone();
            async move {
                let _ = client.run(&Arc::new(Audience), output).await;
                client.close("the gateway has ended");
            }
        });
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": { "elicitation": {} },
            "clientInfo": { "name": "rialto-demo", "version": env!("CARGO_PKG_VERSION") },
        });
        let profile = Profile::from_initialize(params.to_string().as_bytes());
        let profile = profile.map_err(|error| Failure::unexpected("cannot introduce the demo").because(&error))?;
        let welcome = client.introduce(&profile, Opening::Legacy, PATIENCE).await;
        // The gateway has read its configuration by now.
        let _ = std::fs::remove_file(&file);
        let welcome = welcome.map_err(|error| {
            Failure::new(Exit::Unreachable, "the gateway does not answer").because(&error).hint("rialto demo -v")
        })?;
        let stage = Self { teller, gateway, client };
        let words = format!("a gateway over two servers is up, speaking MCP {}", welcome.version);
        stage.say("start", &words, begun, &json!({ "version": welcome.version.as_str() }))?;
        Ok(stage)
    }

    async fn play(&mut self) -> Outcome {
        let begun = Instant::now();
        let listed = self.ask("tools/list", &json!({})).await?;
        let names: Vec<_> =
            listed["tools"].as_array().into_iter().flatten().filter_map(|tool| tool["name"].as_str()).collect();
        self.say("list", &format!("{} tools: {}", names.len(), names.join(", ")), begun, &json!({ "tools": names }))?;

        self.call("left__echo", json!({ "text": "hello, Rialto" })).await?;
        self.call("right__add", json!({ "a": 19, "b": 2.5 })).await?;
        self.call("left__ask", json!({})).await?;
        self.count().await?;
        self.many().await?;
        self.call("right__fail", json!({})).await?;
        self.call("left__echo", json!({ "text": 7 })).await?;
        self.call("left__crash", json!({})).await?;
        self.call("left__echo", json!({ "text": "back again" })).await
    }

    async fn call(&self, tool: &str, arguments: Value) -> Outcome {
        let begun = Instant::now();
        let result = self.ask("tools/call", &json!({ "name": tool, "arguments": arguments })).await?;
        let text = result["content"][0]["text"].as_str().unwrap_or_default();
        let verdict = if result["isError"] == true { "says no" } else { "says" };
        self.say(
            "call",
            &format!("{tool} {arguments} {verdict}: {text}"),
            begun,
            &json!({ "tool": tool, "result": result }),
        )
    }

    /// A call that reports progress.
    async fn count(&self) -> Outcome {
        let begun = Instant::now();
        let (outlet, mut reports) = outlet();
        let asker =
            Asker { progress: Some(Progress { token: "\"demo\"".into(), outlet: outlet.clone() }), reason: None };
        let params = json!({
            "name": "right__count", "arguments": { "to": 3, "pause_ms": 20 }, "_meta": { "progressToken": "demo" },
        });
        let response = self.client.request_for("tools/call", params.to_string().as_bytes(), PATIENCE, asker).await;
        result_of("tools/call", response)?;
        outlet.finish();
        let text = reports.take(Vec::new()).await.unwrap_or_default();
        let steps = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count();
        let words = format!("right__count reported progress {steps} times");
        self.say("progress", &words, begun, &json!({ "reports": steps }))
    }

    /// Many calls at once, to both servers.
    async fn many(&self) -> Outcome {
        const CALLS: usize = 1000;
        let begun = Instant::now();
        let mut calls = tokio::task::JoinSet::new();
        for number in 0..CALLS {
            let client = self.client.clone();
            let tool = if number % 2 == 0 { "left__echo" } else { "right__echo" };
            let params = json!({ "name": tool, "arguments": { "text": number.to_string() } }).to_string();
            calls.spawn(async move {
                let response = client.request("tools/call", params.as_bytes(), PATIENCE).await;
                let result = result_of("tools/call", response)?;
                Ok::<_, Failure>(result["content"][0]["text"].as_str() == Some(&number.to_string()))
            });
        }
        let mut right = 0;
        while let Some(call) = calls.join_next().await {
            right += usize::from(call.map_err(|error| Failure::unexpected("a call broke").because(&error))??);
        }
        let words = format!("{CALLS} calls at once: {right} answered with the right text");
        self.say("many", &words, begun, &json!({ "calls": CALLS, "right": right }))
    }

    async fn ask(&self, method: &str, params: &Value) -> Result<Value, Failure> {
        result_of(method, self.client.request(method, params.to_string().as_bytes(), PATIENCE).await)
    }

    fn say(&self, step: &str, words: &str, begun: Instant, details: &Value) -> Outcome {
        self.teller.say(step, words, begun, details)
    }

    async fn end(mut self) {
        self.client.outlet().finish();
        let _ = tokio::time::timeout(Duration::from_secs(5), self.gateway.wait()).await;
    }
}

/// Creates a file that only we can read, and that nobody else has put there.
fn write_private(file: &Path, text: &str) -> std::io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(file)?;
    file.write_all(text.as_bytes())
}

fn result_of(method: &str, response: Result<Response, rialto_mcp::pending::Fault>) -> Result<Value, Failure> {
    let unreachable = |words: String| Failure::new(Exit::Unreachable, words);
    let response = response.map_err(|fault| unreachable(format!("{method} got no answer")).because(&fault))?;
    let Some(result) = response.result() else {
        let why =
            response.error().and_then(|error| json::get_string(error, "message")).unwrap_or_default().into_owned();
        return Err(Failure::new(Exit::ToolSaidNo, format!("{method} was refused: {why}")));
    };
    serde_json::from_slice(result).map_err(|error| Failure::unexpected("the answer cannot be read").because(&error))
}
