//! The prompts that the suite asks for, and completions of their arguments.

use super::asking;
use super::fixture::{PIXEL, text_of};
use rialto_mcp::call::Call;
use rialto_mcp::error::{Error, Kind};
use rialto_mcp::reply::Answer;
use serde_json::{Value, json};

const WORDS: [&str; 4] = ["paris", "park", "party", "testing"];

pub(crate) fn list() -> Value {
    let argument =
        |name: &str, description: &str| json!({ "name": name, "description": description, "required": true });
    json!({ "prompts": [
        { "name": "test_simple_prompt", "description": "Says one thing" },
        {
            "name": "test_prompt_with_arguments",
            "description": "Repeats its arguments",
            "arguments": [argument("arg1", "First test argument"), argument("arg2", "Second test argument")],
        },
        {
            "name": "test_prompt_with_embedded_resource",
            "description": "Has a resource in it",
            "arguments": [argument("resourceUri", "URI of the resource to embed")],
        },
        { "name": "test_prompt_with_image", "description": "Has an image in it" },
        { "name": "test_input_required_result_prompt", "description": "Asks the user first" },
    ] })
}

pub(crate) async fn get(call: &Call, params: &Value) -> Result<Value, Answer> {
    let name = text_of(params, "name").map_err(Answer::Error)?;
    let argument = |name: &str| text_of(&params["arguments"], name).map_err(Answer::Error);
    let messages = match name {
        "test_simple_prompt" => vec![says("This is a simple prompt for testing.")],
        "test_prompt_with_arguments" => {
            vec![says(&format!("Prompt with arguments: arg1='{}', arg2='{}'", argument("arg1")?, argument("arg2")?))]
        }
        "test_prompt_with_embedded_resource" => {
            let text = "Embedded resource content for testing.";
            let resource = json!({ "uri": argument("resourceUri")?, "mimeType": "text/plain", "text": text });
            let embedded = json!({ "role": "user", "content": { "type": "resource", "resource": resource } });
            vec![embedded, says("Please process the embedded resource above.")]
        }
        "test_prompt_with_image" => {
            let image = json!({ "type": "image", "data": PIXEL, "mimeType": "image/png" });
            vec![json!({ "role": "user", "content": image }), says("Please analyze the image above.")]
        }
        "test_input_required_result_prompt" => {
            let question = asking::form("What context should the prompt use?", "context", "string");
            let answer = asking::ask(call, params, "user_context", question).await?;
            vec![says(&format!("Use this context: {}", asking::field(&answer, "context")))]
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
    let values: Vec<_> = WORDS.into_iter().filter(|word| word.starts_with(begun)).collect();
    Ok(json!({ "completion": { "values": values, "total": values.len(), "hasMore": false } }))
}
