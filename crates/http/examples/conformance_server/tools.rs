//! The tools that the suite calls.

use super::asking::{self, form_with};
use super::fixture::{Fixture, PIXEL, SILENCE, text_of};
use super::{inputs, tasks};
use rialto_mcp::call::Call;
use rialto_mcp::error::{Error, Kind};
use rialto_mcp::mirror::{self, Mirrored};
use rialto_mcp::peer::Change;
use rialto_mcp::reply::Answer;
use serde_json::{Value, json};
use std::sync::LazyLock;
use std::time::Duration;

/// Between two signs of life of a tool that takes its time.
const STEP: Duration = Duration::from_millis(50);

/// How long a client is left alone before the answer that it has to come back for.
const AWAY: Duration = Duration::from_millis(100);

static LIST: LazyLock<Value> = LazyLock::new(|| serde_json::from_str(include_str!("tools.json")).unwrap_or_default());

pub(crate) fn list() -> Value {
    LIST.clone()
}

/// What of a tool's arguments is repeated in headers.
pub(crate) fn mirrored(tool: &str) -> Vec<Mirrored> {
    let mut tools = LIST["tools"].as_array().into_iter().flatten();
    let definition = tools.find(|entry| entry["name"] == tool).map(Value::to_string);
    definition.and_then(|definition| mirror::of_tool(definition.as_bytes()).ok()).unwrap_or_default()
}

/// A result of one text.
pub(crate) fn text(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

pub(crate) async fn call(fixture: &Fixture, call: &Call, params: &Value) -> Result<Value, Answer> {
    let name = text_of(params, "name").map_err(Answer::Error)?;
    if let Some(content) = content(name) {
        return Ok(json!({ "content": content }));
    }
    let arguments = &params["arguments"];
    match name {
        "test_error_handling" => {
            let mut result = text("This tool intentionally returns an error for testing");
            result["isError"] = true.into();
            Ok(result)
        }
        "json_schema_2020_12_tool" => Ok(text(&format!("Received: {arguments}"))),
        "test_custom_header" => {
            let region = text_of(arguments, "region").map_err(|error| Answer::Error(misfit(&error)))?;
            Ok(text(&format!("Region: {region}")))
        }
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
            let prompt = text_of(arguments, "prompt").map_err(|error| Answer::Error(misfit(&error)))?;
            let answer = asking::ask(call, params, "sampling", asking::sampling(prompt, 100)).await?;
            Ok(text(&format!("LLM response: {}", inputs::said(&answer))))
        }
        "test_elicitation" => {
            let message = text_of(arguments, "message").map_err(|error| Answer::Error(misfit(&error)))?;
            let properties = json!({
                "username": { "type": "string", "description": "User's response" },
                "email": { "type": "string", "description": "User's email address" },
            });
            let question = form_with(message, properties, &["username", "email"]);
            filled("User response", &asking::ask(call, params, "user", question).await?)
        }
        "test_elicitation_sep1034_defaults" => {
            let question = form_with("Please check your details", defaults(), &[]);
            filled("Elicitation completed", &asking::ask(call, params, "details", question).await?)
        }
        "test_elicitation_sep1330_enums" => {
            let question = form_with("Please choose", choices(), &[]);
            filled("Elicitation completed", &asking::ask(call, params, "choices", question).await?)
        }
        _ if inputs::has(name) => inputs::call(fixture, call, params, name).await,
        _ if tasks::has(name) => tasks::call(fixture, call, params, name).await,
        _ => {
            let error = Error::new(Kind::ToolNotFound, format!("Unknown tool: {name}")).with("name", name);
            Err(Answer::Error(error))
        }
    }
}

/// What the tools return that do nothing else.
fn content(name: &str) -> Option<Value> {
    let image = json!({ "type": "image", "data": PIXEL, "mimeType": "image/png" });
    Some(match name {
        "test_simple_text" => json!([{ "type": "text", "text": "This is a simple text response for testing." }]),
        "test_image_content" => json!([image]),
        "test_audio_content" => json!([{ "type": "audio", "data": SILENCE, "mimeType": "audio/wav" }]),
        "test_embedded_resource" => json!([{ "type": "resource", "resource": {
            "uri": "test://embedded-resource",
            "mimeType": "text/plain",
            "text": "This is an embedded resource content.",
        } }]),
        "test_multiple_content_types" => json!([
            { "type": "text", "text": "Multiple content types test:" },
            image,
            { "type": "resource", "resource": {
                "uri": "test://mixed-content-resource",
                "mimeType": "application/json",
                "text": "{\"test\":\"data\",\"value\":123}",
            } },
        ]),
        _ => return None,
    })
}

/// An error in arguments is for the model to read.
fn misfit(error: &Error) -> Error {
    Error::new(Kind::InvalidArguments, error.message.clone())
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

fn filled(title: &str, answer: &Value) -> Result<Value, Answer> {
    let action = answer["action"].as_str().unwrap_or_default();
    Ok(text(&format!("{title}: action={action}, content={}", answer["content"])))
}

fn defaults() -> Value {
    json!({
        "name": { "type": "string", "default": "John Doe" },
        "age": { "type": "integer", "default": 30 },
        "score": { "type": "number", "default": 95.5 },
        "status": { "type": "string", "enum": ["active", "inactive", "pending"], "default": "active" },
        "verified": { "type": "boolean", "default": true },
    })
}

fn choices() -> Value {
    let titled = |word: &str| {
        json!([
            { "const": "value1", "title": format!("First {word}") },
            { "const": "value2", "title": format!("Second {word}") },
            { "const": "value3", "title": format!("Third {word}") },
        ])
    };
    json!({
        "untitledSingle": { "type": "string", "enum": ["option1", "option2", "option3"] },
        "titledSingle": { "type": "string", "oneOf": titled("Option") },
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": { "type": "array", "items": { "type": "string", "enum": ["option1", "option2", "option3"] } },
        "titledMulti": { "type": "array", "items": { "anyOf": titled("Choice") } },
    })
}
