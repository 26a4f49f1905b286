//! The tools that the suite calls.

use std::time::Duration;

use rialto_rmcp_peers::text;
use rmcp::ErrorData;
use serde_json::Value;

use crate::{
    Early, Fixture, SURFACE,
    call::{Call, broken},
    inputs, tasks,
};

const STEP: Duration = Duration::from_millis(50);

pub(crate) async fn call(fixture: &Fixture, call: &Call, name: &str) -> Result<Value, Early> {
    if let Some(result) = SURFACE["results"].get(name) {
        return Ok(result.clone());
    }
    let arguments = &call.arguments;
    match name {
        "json_schema_2020_12_tool" | "test_custom_header" => Ok(text(format!("Received: {arguments}"))),
        "test_tool_with_logging" | "test_logging_tool" => {
            for message in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
                call.log(message).await?;
                tokio::time::sleep(STEP).await;
            }
            Ok(text("Three messages were logged."))
        }
        "test_tool_with_progress" => {
            for progress in [0, 50, 100] {
                call.progress(progress).await?;
                tokio::time::sleep(STEP).await;
            }
            Ok(text("Progress was reported."))
        }
        // The SDK lets nobody go from within a call; a message before the answer makes it a stream at least.
        "test_reconnection" => {
            call.log("Tool execution started").await?;
            Ok(text("You need not come back."))
        }
        "test_trigger_tool_change" | "test_trigger_prompt_change" => {
            announce(fixture, call, name == "test_trigger_tool_change").await?;
            Ok(text("Clients were told."))
        }
        "test_sampling" => {
            let mut question = SURFACE["questions"]["prompt"].clone();
            question["params"]["messages"][0]["content"]["text"] = arguments["prompt"].clone();
            let answer = call.ask_this("prompt", question).await?;
            Ok(text(format!("LLM response: {}", answer["content"])))
        }
        "test_elicitation" => {
            let mut question = SURFACE["questions"]["user"].clone();
            question["params"]["message"] = arguments["message"].clone();
            Ok(filled(&call.ask_this("user", question).await?))
        }
        "test_elicitation_sep1034_defaults" => Ok(filled(&call.ask("details").await?)),
        "test_elicitation_sep1330_enums" => Ok(filled(&call.ask("choices").await?)),
        _ if inputs::has(name) => inputs::call(fixture, call, name).await,
        _ if tasks::has(name) => tasks::call(fixture, call, name).await,
        _ => Err(ErrorData::invalid_params(format!("Unknown tool: {name}"), None).into()),
    }
}

fn filled(answer: &Value) -> Value {
    text(format!("Elicitation completed: action={}, content={}", answer["action"], answer["content"]))
}

async fn announce(fixture: &Fixture, call: &Call, is_of_tools: bool) -> Result<(), Early> {
    let peer = &call.context.peer;
    if !call.is_modern() {
        let sent =
            if is_of_tools { peer.notify_tool_list_changed().await } else { peer.notify_prompt_list_changed().await };
        return sent.map_err(broken);
    }
    for sink in fixture.subscriptions.lock().await.iter() {
        // A sink refuses what its client did not ask for.
        let _ =
            if is_of_tools { sink.notify_tool_list_changed().await } else { sink.notify_prompt_list_changed().await };
    }
    Ok(())
}
