//! The prompts that the suite asks for, and completions of their arguments.

use super::asking::{self, Question};
use super::fixture::{SURFACE, text_of};
use rialto_mcp::call::Call;
use rialto_mcp::error::{Error, Kind};
use rialto_mcp::reply::Answer;
use serde_json::{Value, json};

pub(crate) async fn get(call: &Call, params: &Value) -> Result<Value, Answer> {
    let name = text_of(params, "name").map_err(Answer::Error)?;
    if let Some(messages) = SURFACE["messages"].get(name) {
        return Ok(json!({ "messages": messages }));
    }
    let argument = |name: &str| text_of(&params["arguments"], name).map_err(Answer::Error);
    let messages = match name {
        "test_prompt_with_arguments" => {
            let text = format!("Prompt with arguments: arg1='{}', arg2='{}'", argument("arg1")?, argument("arg2")?);
            json!([says(&text)])
        }
        "test_prompt_with_embedded_resource" => {
            let text = "Embedded resource content for testing.";
            let resource = json!({ "uri": argument("resourceUri")?, "mimeType": "text/plain", "text": text });
            let embedded = json!({ "role": "user", "content": { "type": "resource", "resource": resource } });
            json!([embedded, says("Please process the embedded resource above.")])
        }
        "test_input_required_result_prompt" => {
            let answer = asking::ask(call, params, Question::new("user_context")).await?;
            json!([says(&format!("Use this context: {}", asking::field(&answer, "context")))])
        }
        _ => {
            let error = Error::new(Kind::PromptNotFound, format!("Unknown prompt: {name}")).with("name", name);
            return Err(Answer::Error(error));
        }
    };
    Ok(json!({ "messages": messages }))
}

fn says(text: &str) -> Value {
    json!({ "role": "user", "content": { "type": "text", "text": text } })
}

pub(crate) fn complete(params: &Value) -> Result<Value, Error> {
    let begun = text_of(&params["argument"], "value")?;
    let words = SURFACE["completions"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let values: Vec<_> = words.filter(|word| word.starts_with(begun)).collect();
    Ok(json!({ "completion": { "values": values, "total": values.len(), "hasMore": false } }))
}
