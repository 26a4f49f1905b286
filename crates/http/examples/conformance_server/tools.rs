//! The tools that the suite calls.

use super::asking::{self, Question};
use super::fixture::{Fixture, SURFACE, text, text_of};
use super::{inputs, tasks};
use rialto_mcp::call::Call;
use rialto_mcp::error::{Error, Kind};
use rialto_mcp::mirror::{self, Mirrored};
use rialto_mcp::peer::Change;
use rialto_mcp::reply::Answer;
use serde_json::Value;
use std::time::Duration;

/// Between two signs of life of a tool that takes its time.
const STEP: Duration = Duration::from_millis(50);

/// How long a client is left alone before the answer that it has to come back for.
const AWAY: Duration = Duration::from_millis(100);

/// What of a tool's arguments is repeated in headers.
pub(crate) fn mirrored(tool: &str) -> Vec<Mirrored> {
    let mut tools = SURFACE["tools"].as_array().into_iter().flatten();
    let definition = tools.find(|entry| entry["name"] == tool).map(Value::to_string);
    definition.and_then(|definition| mirror::of_tool(definition.as_bytes()).ok()).unwrap_or_default()
}

pub(crate) async fn call(fixture: &Fixture, call: &Call, params: &Value) -> Result<Value, Answer> {
    let name = text_of(params, "name").map_err(Answer::Error)?;
    if let Some(result) = SURFACE["results"].get(name) {
        return Ok(result.clone());
    }
    let arguments = &params["arguments"];
    match name {
        "json_schema_2020_12_tool" => Ok(text(&format!("Received: {arguments}"))),
        "test_custom_header" => Ok(text(&format!("Region: {}", argument(arguments, "region")?))),
        "test_tool_with_logging" | "test_logging_tool" => {
            log(fixture, call).await;
            Ok(text("Three messages were logged."))
        }
        "test_tool_with_progress" => {
            progress(call).await;
            Ok(text("Progress was reported."))
        }
        "test_reconnection" => {
            call.let_go();
            tokio::time::sleep(AWAY).await;
            Ok(text("You came back."))
        }
        "test_trigger_tool_change" => {
            fixture.changed(&Change::Tools);
            Ok(text("Clients were told that the tools have changed."))
        }
        "test_trigger_prompt_change" => {
            fixture.changed(&Change::Prompts);
            Ok(text("Clients were told that the prompts have changed."))
        }
        "test_sampling" => {
            let mut question = Question::new("prompt");
            question.request["params"]["messages"][0]["content"]["text"] = argument(arguments, "prompt")?.into();
            let answer = asking::ask(call, params, question).await?;
            Ok(text(&format!("LLM response: {}", asking::said(&answer))))
        }
        "test_elicitation" => {
            let mut question = Question::new("user");
            question.request["params"]["message"] = argument(arguments, "message")?.into();
            Ok(filled("User response", &asking::ask(call, params, question).await?))
        }
        "test_elicitation_sep1034_defaults" => {
            Ok(filled("Elicitation completed", &asking::ask(call, params, Question::new("details")).await?))
        }
        "test_elicitation_sep1330_enums" => {
            Ok(filled("Elicitation completed", &asking::ask(call, params, Question::new("choices")).await?))
        }
        _ if inputs::has(name) => inputs::call(fixture, call, params, name).await,
        _ if tasks::has(name) => tasks::call(fixture, call, params, name).await,
        _ => {
            let error = Error::new(Kind::ToolNotFound, format!("Unknown tool: {name}")).with("name", name);
            Err(Answer::Error(error))
        }
    }
}

/// An argument that must be a string; that it is not is for the model to read.
fn argument<'a>(arguments: &'a Value, name: &str) -> Result<&'a str, Answer> {
    text_of(arguments, name).map_err(|error| Answer::Error(Error::new(Kind::InvalidArguments, error.message)))
}

async fn log(fixture: &Fixture, call: &Call) {
    fixture.log(call, "info", "Tool execution started").await;
    tokio::time::sleep(STEP).await;
    fixture.log(call, "info", "Tool processing data").await;
    tokio::time::sleep(STEP).await;
    fixture.log(call, "info", "Tool execution completed").await;
}

async fn progress(call: &Call) {
    call.progress(0.0, Some(100.0), None).await;
    for done in [50.0, 100.0] {
        tokio::time::sleep(STEP).await;
        call.progress(done, Some(100.0), None).await;
    }
}

fn filled(title: &str, answer: &Value) -> Value {
    let action = answer["action"].as_str().unwrap_or_default();
    text(&format!("{title}: action={action}, content={}", answer["content"]))
}
