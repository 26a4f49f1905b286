//! A service offered, found and used over Nostr: every step is the command that you would type, in a process of its own,
//! with keys and state in a folder that is gone afterwards.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use rialto_relay::embedded::{Options, Relay};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};

use super::Teller;
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};

/// Generous for a machine under load; everything here takes milliseconds.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

pub(super) async fn show(teller: &Teller) -> Outcome {
    let home = std::env::temp_dir().join(format!("rialto-demo-{}", std::process::id()));
    make_private(&home).map_err(|error| failed("make a folder", &error))?;
    let begun = Instant::now();
    let relay = Relay::start(Options::default()).await.map_err(|error| failed("start a relay", &error))?;
    let url = relay.url();
    teller.say("relay", &format!("a Nostr relay is up at {url}"), begun, &json!({ "url": url }))?;
    let stage = Stage { teller, home: home.clone(), url };
    let played = Box::pin(stage.play()).await;
    relay.stop().await;
    // Left-over files in a temporary folder harm nobody.
    let _ = std::fs::remove_dir_all(&home);
    played
}

pub(super) fn make_private(folder: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().mode(0o700).create(folder)
}

pub(super) fn failed(what: &str, error: &std::io::Error) -> Failure {
    Failure::unexpected(format!("cannot {what}")).because(error)
}

pub(super) struct Stage<'a> {
    pub(super) teller: &'a Teller,
    pub(super) home: PathBuf,
    pub(super) url: String,
}

impl Stage<'_> {
    async fn play(&self) -> Outcome {
        let (service, link) = self.serve(&[]).await?;
        let outcome = Box::pin(self.buy(&link)).await;
        self.end(service).await?;
        outcome
    }

    pub(super) fn command(&self, arguments: &[&str]) -> Result<Command, Failure> {
        let program = std::env::current_exe().map_err(|error| failed("find this program", &error))?;
        let mut command = Command::new(program);
        command.args(arguments).env("RIALTO_RELAYS", &self.url).stdin(Stdio::null()).kill_on_drop(true);
        for variable in ["HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"] {
            command.env(variable, &self.home);
        }
        Ok(command)
    }

    /// Offers the example server with these flags, and waits until it can be called.
    pub(super) async fn serve(&self, flags: &[&str]) -> Result<(Child, String), Failure> {
        let begun = Instant::now();
        let program = std::env::current_exe().map_err(|error| failed("find this program", &error))?;
        let arguments = ["serve", "--quiet", "--json", "--name", "example", "--about", "A few tools to try"];
        let mut command = self.command(&[&arguments, flags, &["--"]].concat())?;
        command.arg(program.as_os_str()).args(["mcp", "example"].map(OsStr::new)).stdout(Stdio::piped());
        let mut service = command.spawn().map_err(|error| failed("start the service", &error))?;
        let Some(output) = service.stdout.take() else { return Err(Failure::unexpected("the service has no pipes")) };
        let mut line = String::new();
        let read = tokio::time::timeout(PATIENCE, BufReader::new(output).read_line(&mut line)).await;
        let ready: Value = match read {
            Ok(Ok(_)) => serde_json::from_str(&line).unwrap_or_default(),
            _ => Value::Null,
        };
        let Some(link) = ready["ready"]["nprofile"].as_str().map(ToOwned::to_owned) else {
            return Err(
                Failure::new(Exit::Unreachable, "the service did not start").hint("rialto serve -- rialto mcp example")
            );
        };
        let flags: String =
            flags.iter().map(|flag| format!(" {}", flag.replace(&*self.home.to_string_lossy(), "…"))).collect();
        let tools = ready["ready"]["tools"].as_array().map_or(0, Vec::len);
        let words = format!("rialto serve{flags} -- rialto mcp example: {tools} tools announced by {}…", &link[..20]);
        self.teller.say("serve", &words, begun, &ready["ready"])?;
        Ok((service, link))
    }

    async fn buy(&self, link: &str) -> Outcome {
        let begun = Instant::now();
        let found = self.output(&["find", "--json", "example"]).await?;
        let found: Value = serde_json::from_str(&found).unwrap_or_default();
        let first = found.get(0).cloned().unwrap_or_default();
        let name = first["name"].as_str().unwrap_or("nothing");
        self.teller.say("find", &format!("rialto find example: `{name}` is alive"), begun, &found)?;

        self.call(link, &["add", "a=19", "b=2.5"]).await?;
        self.call(link, &["echo", "text=hello, Rialto"]).await?;
        self.call(link, &["add", "a=1", "b=2", "--wire", "manifest"]).await?;
        self.host(link).await
    }

    pub(super) async fn call(&self, link: &str, words: &[&str]) -> Outcome {
        let begun = Instant::now();
        let arguments = [&["call", "--quiet", link], words].concat();
        let output = self.output(&arguments).await?;
        let said = output.trim();
        let line = format!("rialto call example {} says: {said}", words.join(" "));
        self.teller.say("call", &line, begun, &json!({ "call": words, "output": said }))
    }

    /// An MCP host that has `rialto use` in its configuration.
    async fn host(&self, link: &str) -> Outcome {
        let begun = Instant::now();
        let mut child = self
            .command(&["use", "--quiet", link])?
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| failed("start `rialto use`", &error))?;
        let (Some(mut input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Failure::unexpected("`rialto use` has no pipes"));
        };
        let about = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "demo", "version": "1" } });
        let call = json!({ "name": "echo", "arguments": { "text": "from far away" } });
        let lines = [
            json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about }),
            json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
            json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call }),
        ];
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        input.write_all(text.as_bytes()).await.map_err(|error| failed("talk to `rialto use`", &error))?;
        let mut lines = BufReader::new(output).lines();
        let answer = async {
            while let Ok(Some(line)) = lines.next_line().await {
                let message: Value = serde_json::from_str(&line).unwrap_or_default();
                if message["id"] == 2 {
                    return message["result"]["content"][0]["text"].as_str().unwrap_or_default().to_owned();
                }
            }
            String::new()
        };
        let answer = tokio::time::timeout(PATIENCE, answer).await.unwrap_or_default();
        drop(input);
        let _ = tokio::time::timeout(PATIENCE, child.wait()).await;
        let words = format!("rialto use, in an MCP host: the tool `echo` says: {answer}");
        self.teller.say("use", &words, begun, &json!({ "answer": answer }))
    }

    pub(super) async fn output(&self, arguments: &[&str]) -> Result<String, Failure> {
        let what = format!("rialto {}", arguments.first().unwrap_or(&""));
        let running = self.command(arguments)?.output();
        let output = tokio::time::timeout(PATIENCE, running)
            .await
            .map_err(|_| Failure::new(Exit::Timeout, format!("`{what}` did not end")))?
            .map_err(|error| failed("start a command", &error))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(Failure::new(Exit::Unreachable, format!("`{what}` failed")).cause(said))
    }

    /// Stops the service as Ctrl-C would: its announcement is withdrawn.
    pub(super) async fn end(&self, mut service: Child) -> Outcome {
        let begun = Instant::now();
        if let Some(pid) = service.id().and_then(|id| Pid::from_raw(id.cast_signed())) {
            // One that has ended already need not be ended.
            let _ = kill_process(pid, Signal::TERM);
        }
        let _ = tokio::time::timeout(PATIENCE, service.wait()).await;
        self.teller.say("stop", "the service has stopped and withdrawn its announcement", begun, &Value::Null)
    }
}
