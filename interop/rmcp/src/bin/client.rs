//! An MCP client written with the official Rust SDK that uses everything a peer server offers and prints a report:
//!
//! `client [--era legacy|modern] [--only echo] -- COMMAND ARGUMENTS…`
//!
//! The report has sorted keys and no names, ids or times of this run, so that the report of a direct session and the
//! report of a session through a gateway must be equal byte by byte.

#![allow(deprecated, reason = "logging, sampling and roots are part of the surface")]

use std::{collections::BTreeMap, error::Error, process::Stdio, time::Duration};

use rialto_rmcp_peers::{SURFACE, typed};
use rmcp::{
    ClientHandler, ClientServiceExt, ErrorData, RoleClient, model::*, service::*, transport::TokioChildProcess,
};
use serde_json::{Value, json};
use tokio::{process::Command, sync::watch};

/// For the whole session; a hang must end as a failure.
const RUN_LIMIT: Duration = Duration::from_secs(60);
/// For a notification that was promised.
const EVENT_LIMIT: Duration = Duration::from_secs(10);
const CONCURRENT: usize = 50;
/// What differs between any two sessions and says nothing about a loss.
const PRIVATE: [&str; 3] =
    ["io.modelcontextprotocol/serverInfo", "io.modelcontextprotocol/subscriptionId", "progressToken"];

type Failure = Box<dyn Error + Send + Sync>;
type Session = RunningService<RoleClient, Events>;

/// The value without names and ids of this run.
fn plain(value: Value) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(plain).collect(),
        Value::Object(members) => members
            .into_iter()
            .filter(|(key, _)| !PRIVATE.contains(&key.as_str()))
            .map(|(key, value)| (key, plain(value)))
            .filter(|(key, value)| key != "_meta" || value != &json!({}))
            .collect(),
        other => other,
    }
}

/// The result of a call, or the error the server answered with. What is no answer fails the session.
fn outcome<T: serde::Serialize>(result: Result<T, ServiceError>) -> Result<Value, Failure> {
    match result {
        Ok(result) => Ok(plain(serde_json::to_value(result)?)),
        Err(ServiceError::McpError(error)) => Ok(json!({ "error": error })),
        Err(error) => Err(error.into()),
    }
}

/// Notifications and requests that came from the server, in order per kind.
#[derive(Clone, Default)]
struct Events(watch::Sender<BTreeMap<&'static str, Vec<Value>>>);

impl Events {
    fn add(&self, kind: &'static str, value: Value) {
        self.0.send_modify(|seen| seen.entry(kind).or_default().push(plain(value)));
    }

    fn count(&self, kind: &str) -> usize {
        self.0.borrow().get(kind).map_or(0, Vec::len)
    }

    async fn wait(&self, kind: &'static str, count: usize) {
        let mut seen = self.0.subscribe();
        let enough = seen.wait_for(|seen| seen.get(kind).map_or(0, Vec::len) >= count);
        if tokio::time::timeout(EVENT_LIMIT, enough).await.is_err() {
            self.add("missing", json!(format!("{count} × {kind}")));
        }
    }
}

impl ClientHandler for Events {
    fn get_info(&self) -> ClientConfig {
        typed(json!({
            "protocolVersion": ProtocolVersion::V_2025_11_25,
            "capabilities": { "elicitation": { "form": {} }, "sampling": {}, "roots": {} },
            "clientInfo": { "name": "rmcp-client", "version": "1" },
        }))
        .expect("a constant in the SDK's own shape")
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        self.add("elicitation", json!(request));
        typed(SURFACE["replies"]["elicitation"].clone())
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        self.add("sampling", json!(params));
        typed(SURFACE["replies"]["sampling"].clone())
    }

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        self.add("roots", json!({}));
        typed(SURFACE["replies"]["roots"].clone())
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.add("progress", json!(params));
    }

    async fn on_logging_message(&self, params: LoggingMessageNotificationParam, _: NotificationContext<RoleClient>) {
        self.add("log", json!(params));
    }

    async fn on_resource_updated(&self, params: ResourceUpdatedNotificationParam, _: NotificationContext<RoleClient>) {
        self.add("updated", json!(params));
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.add("toolsChanged", json!({}));
    }
}

/// Sends any request; the SDK parses the answer into its own types before we see it.
async fn request(session: &Session, method: &str, params: Value) -> Result<Value, Failure> {
    let request =
        if params.is_null() { json!({ "method": method }) } else { json!({ "method": method, "params": params }) };
    outcome(session.peer().send_request(typed(request)?).await)
}

/// Calls a tool and answers input_required results on the way.
async fn call(session: &Session, name: &str, arguments: Value) -> Result<Value, Failure> {
    call_with(session, json!({ "name": name, "arguments": arguments })).await
}

async fn call_with(session: &Session, params: Value) -> Result<Value, Failure> {
    outcome(session.call_tool(typed(params)?).await)
}

/// Many calls at once: each must get its own answer.
async fn concurrent(session: &Session) -> Result<usize, Failure> {
    let mut calls = tokio::task::JoinSet::new();
    for number in 0..CONCURRENT {
        let peer = session.peer().clone();
        calls.spawn(async move {
            let text = format!("call {number}");
            let params = json!({ "name": "echo", "arguments": { "text": text } });
            let result = outcome(peer.call_tool(typed(params)?).await)?;
            Ok::<_, Failure>(result["content"][0]["text"] == text)
        });
    }
    let mut matched = 0;
    while let Some(result) = calls.join_next().await {
        matched += usize::from(result??);
    }
    Ok(matched)
}

/// Cancels a call that has begun; the server then says how its calls ended.
async fn cancel(session: &Session) -> Result<Value, Failure> {
    let begun = session.service().count("progress");
    let params = json!({ "name": "slow", "arguments": { "ms": 600_000 } });
    let request = typed(json!({ "method": "tools/call", "params": params }))?;
    let running = session.peer().send_cancellable_request(request, PeerRequestOptions::no_options()).await?;
    session.service().wait("progress", begun + 1).await;
    running.cancel(Some("enough".into())).await?;
    call(session, "slow", json!({ "ms": 0 })).await
}

/// Subscribes, makes the server announce changes, and ends the subscription.
async fn update(session: &Session, modern: bool) -> Result<Value, Failure> {
    if modern {
        let filter = json!({ "toolsListChanged": true, "resourceSubscriptions": ["peer://note"] });
        let mut subscription = session.peer().listen(typed(filter)?).await?;
        let result = call(session, "update", json!({})).await?;
        for _ in 0..2 {
            match tokio::time::timeout(EVENT_LIMIT, subscription.next()).await {
                Ok(Ok(Some(ServerNotification::ResourceUpdatedNotification(note)))) => {
                    session.service().add("updated", json!(note.params));
                }
                Ok(Ok(Some(ServerNotification::ToolListChangedNotification(_)))) => {
                    session.service().add("toolsChanged", json!({}));
                }
                other => session.service().add("missing", json!(format!("change, but {other:?}"))),
            }
        }
        let honored = json!(subscription.acknowledged());
        subscription.cancel().await?;
        return Ok(json!({ "honored": honored, "result": result }));
    }
    let uri = json!({ "uri": "peer://note" });
    let subscribe = request(session, "resources/subscribe", uri.clone()).await?;
    let result = call(session, "update", json!({})).await?;
    session.service().wait("updated", 1).await;
    session.service().wait("toolsChanged", 1).await;
    let unsubscribe = request(session, "resources/unsubscribe", uri).await?;
    Ok(json!({ "subscribe": subscribe, "result": result, "unsubscribe": unsubscribe }))
}

async fn drive(session: &Session, modern: bool) -> Result<Value, Failure> {
    let mut report = serde_json::Map::new();
    let mut add = |name: &str, value: Value| report.insert(name.into(), value);
    for (name, method) in [
        ("tools", "tools/list"),
        ("resources", "resources/list"),
        ("resourceTemplates", "resources/templates/list"),
        ("prompts", "prompts/list"),
    ] {
        add(name, request(session, method, json!({})).await?);
    }
    add("echo", call(session, "echo", json!({ "text": "Grüße ✓ \u{2028} \"quoted\" \\ 𝄞" })).await?);
    add("add", call(session, "add", json!({ "a": 0.1, "b": 2 })).await?);
    for name in ["fail", "ask", "sample", "roots"] {
        add(name, call(session, name, json!({})).await?);
    }
    add("unknownTool", call(session, "no-such-tool", json!({})).await?);
    add("progress", call(session, "progress", json!({ "steps": 4 })).await?);
    session.service().wait("progress", 4).await;
    add("cancel", cancel(session).await?);
    for (name, uri) in [("readNote", "peer://note"), ("readItem", "peer://item/42"), ("readMissing", "peer://nothing")]
    {
        add(name, request(session, "resources/read", json!({ "uri": uri })).await?);
    }
    let greet = json!({ "name": "greet", "arguments": { "name": "Ada" } });
    add("prompt", request(session, "prompts/get", greet).await?);
    let argument =
        json!({ "ref": { "type": "ref/prompt", "name": "greet" }, "argument": { "name": "name", "value": "A" } });
    add("completion", request(session, "completion/complete", argument).await?);
    add("concurrent", json!(concurrent(session).await?));
    add("update", update(session, modern).await?);
    let mut log = json!({ "name": "log", "arguments": {} });
    if modern {
        log["_meta"] = json!({ "io.modelcontextprotocol/logLevel": "debug" });
    } else {
        add("setLevel", request(session, "logging/setLevel", json!({ "level": "debug" })).await?);
        add("ping", request(session, "ping", Value::Null).await?);
    }
    add("log", call_with(session, log).await?);
    session.service().wait("log", 1).await;
    add("events", json!(*session.service().0.borrow()));
    Ok(Value::Object(report))
}

async fn run(mut arguments: std::env::Args) -> Result<Value, Failure> {
    let (mut modern, mut only_echo) = (false, false);
    let program = loop {
        match arguments.next().ok_or("usage: client [--era legacy|modern] [--only echo] -- COMMAND…")?.as_str() {
            "--era" => modern = arguments.next().as_deref() == Some("modern"),
            "--only" => only_echo = arguments.next().as_deref() == Some("echo"),
            "--" => break arguments.next().ok_or("no command after --")?,
            other => return Err(format!("unknown argument {other}").into()),
        }
    };
    let mut command = Command::new(program);
    command.args(arguments);
    let (transport, _) = TokioChildProcess::builder(command).stderr(Stdio::inherit()).spawn()?;
    let lifecycle = if modern {
        ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
    } else {
        ClientLifecycleMode::Initialize
    };
    let session = Events::default().serve_with_lifecycle(transport, lifecycle).await?;
    let mut report = if only_echo {
        let echo = call(&session, "echo", json!({ "text": "hello" })).await?;
        json!({ "echo": echo, "concurrent": concurrent(&session).await? })
    } else {
        drive(&session, modern).await?
    };
    let server = session.peer().peer_info().ok_or("the server did not introduce itself")?;
    report["version"] = json!(server.protocol_version);
    if !only_echo {
        report["capabilities"] = json!(server.capabilities);
        report["instructions"] = json!(server.instructions);
    }
    session.cancel().await?;
    Ok(report)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args();
    arguments.next();
    let report = tokio::time::timeout(RUN_LIMIT, run(arguments)).await.map_err(|_| "no report in time")??;
    println!("{report:#}");
    Ok(())
}
