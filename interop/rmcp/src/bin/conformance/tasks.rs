//! The tools of the tasks extension.

use std::{fs::File, io::Read as _, time::Duration};

use rialto_rmcp_peers::{complete, text, typed};
use rmcp::{
    ErrorData,
    model::{CallToolResult, ClientCapabilities},
    task_manager::{TaskContext, TaskExit, TaskOptions},
};
use serde_json::{Value, json};

use crate::{Early, Fixture, SURFACE, call::Call};

const TOOLS: [&str; 7] = [
    "greet",
    "slow_compute",
    "failing_job",
    "protocol_error_job",
    "confirm_delete",
    "multi_input",
    "test_tool_with_task",
];

pub(crate) fn has(tool: &str) -> bool {
    TOOLS.contains(&tool)
}

/// A random key.
pub(crate) fn key() -> Vec<u8> {
    let mut key = vec![0; 32];
    let read = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut key));
    read.expect("the system has randomness");
    key
}

pub(crate) async fn call(fixture: &Fixture, call: &Call, tool: &str) -> Result<Value, Early> {
    let arguments = &call.arguments;
    match tool {
        "greet" => Ok(text(format!("Hello, {}!", arguments["name"].as_str().unwrap_or("World")))),
        "slow_compute" => {
            let seconds = arguments["seconds"].as_f64().unwrap_or_default();
            let pause = tokio::time::sleep(Duration::from_secs_f64(seconds.clamp(0.0, 300.0)));
            if !call.knows_tasks() || seconds <= 0.0 {
                pause.await;
                return Ok(text("Computed."));
            }
            start(fixture, move |context| async move {
                tokio::select! {
                    () = pause => complete(text("Computed.")).map_err(TaskExit::Error),
                    () = context.cancelled() => Err(TaskExit::Cancelled),
                }
            })
        }
        "failing_job" | "test_tool_with_task" if !call.knows_tasks() => {
            let required: ClientCapabilities = typed(json!({ "extensions": { rmcp::model::TASKS_EXTENSION_ID: {} } }))?;
            Err(ErrorData::missing_required_client_capability(required).into())
        }
        "failing_job" => start(fixture, |_| async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let mut result = text("The job could not be done.");
            result["isError"] = true.into();
            complete(result).map_err(TaskExit::Error)
        }),
        "protocol_error_job" => {
            let error = ErrorData::internal_error("The job broke down", None);
            if !call.knows_tasks() {
                return Err(error.into());
            }
            start(fixture, |_| async { Err(TaskExit::Error(error)) })
        }
        "confirm_delete" => wait_or_ask(fixture, call, &["delete"]).await,
        "multi_input" => wait_or_ask(fixture, call, &["first", "second"]).await,
        "test_tool_with_task" => {
            let answer = call.ask("user_name").await?;
            let name = answer["content"]["name"].as_str().unwrap_or_default().to_owned();
            start(fixture, move |_| async move { complete(text(format!("Hello, {name}!"))).map_err(TaskExit::Error) })
        }
        _ => Err(ErrorData::invalid_params(format!("Unknown tool: {tool}"), None).into()),
    }
}

fn start<F>(fixture: &Fixture, work: impl FnOnce(TaskContext) -> F) -> Result<Value, Early>
where
    F: Future<Output = Result<CallToolResult, TaskExit>> + Send + 'static,
{
    let options = TaskOptions::new().with_poll_interval_ms(100);
    Err(Early::Task(Box::new(fixture.tasks.spawn(options, |context| Box::pin(work(context))))))
}

/// A task that waits for answers or, where the client knows no tasks, the questions themselves.
async fn wait_or_ask(fixture: &Fixture, call: &Call, keys: &'static [&'static str]) -> Result<Value, Early> {
    if !call.knows_tasks() {
        let mut answers = Vec::new();
        for key in keys {
            answers.push(call.ask(key).await?);
        }
        return Ok(text(json!(answers).to_string()));
    }
    start(fixture, move |context| async move {
        let mut asked = tokio::task::JoinSet::new();
        for &key in keys {
            let (context, request) = (context.clone(), typed(SURFACE["questions"][key].clone())?);
            asked.spawn(async move { context.request_input(key, request).await });
        }
        let mut answers = Vec::new();
        while let Some(answer) = asked.join_next().await {
            answers.push(answer.map_err(|error| ErrorData::internal_error(error.to_string(), None))??);
        }
        complete(text(json!(answers).to_string())).map_err(TaskExit::Error)
    })
}
