//! What a patient user would say: to every question its default, to every argument something that fits.

use rialto_mcp::client::Host;
use rialto_mcp::error::Error;
use rialto_mcp::message::{Notification, Request};
use rialto_mcp::pending::Reason;
use rialto_mcp::reply::Answer;
use serde_json::{Map, Value, json};

/// Answers the server's questions.
pub(crate) struct Answers;

impl Host for Answers {
    async fn request(&self, request: Request, _reason: Reason) -> Answer {
        let params = serde_json::from_slice(request.params()).unwrap_or_default();
        match response(request.method(), &params) {
            Some(response) => Answer::Result(response.to_string().into_bytes()),
            None => Answer::Error(Error::method_not_found(request.method())),
        }
    }

    async fn notification(&self, _note: Notification) {}

    fn stray(&self, _text: &[u8]) {}
}

/// The answers to the questions that a call was ended with.
pub(crate) fn responses(requests: &Value) -> Value {
    let answer = |(key, question): (&String, &Value)| {
        let method = question["method"].as_str().unwrap_or_default();
        (key.clone(), response(method, &question["params"]).unwrap_or_default())
    };
    Value::Object(requests.as_object().into_iter().flatten().map(answer).collect())
}

fn response(method: &str, params: &Value) -> Option<Value> {
    match method {
        "elicitation/create" => {
            Some(json!({ "action": "accept", "content": filled(&params["requestedSchema"], |_| true) }))
        }
        "roots/list" => Some(json!({ "roots": [] })),
        "sampling/createMessage" => Some(json!({
            "model": "none", "role": "assistant", "stopReason": "endTurn", "content": { "type": "text", "text": "Yes." },
        })),
        _ => None,
    }
}

/// Arguments for a tool. One tool wants to see the schema of another as it was received.
pub(crate) fn arguments(tool: &Value, tools: &[Value]) -> Value {
    if tool["name"] == "json_schema_echo" {
        let other = tools.iter().find(|other| other["name"] != tool["name"]);
        return json!({ "schema": other.map(|other| &other["inputSchema"]) });
    }
    let schema = &tool["inputSchema"];
    let required = |key: &str| schema["required"].as_array().is_some_and(|keys| keys.iter().any(|name| name == key));
    filled(schema, required)
}

/// An object that fits a schema: its defaults, and something of the right type for the rest that is wanted.
fn filled(schema: &Value, wanted: impl Fn(&str) -> bool) -> Value {
    let mut object = Map::new();
    for (key, property) in schema["properties"].as_object().into_iter().flatten() {
        match property.get("default") {
            Some(default) => drop(object.insert(key.clone(), default.clone())),
            None if wanted(key) => drop(object.insert(key.clone(), something(property))),
            None => {}
        }
    }
    Value::Object(object)
}

fn something(schema: &Value) -> Value {
    if let Some(first) = schema["enum"].get(0) {
        return first.clone();
    }
    match schema["type"].as_str() {
        Some("number" | "integer") => json!(5),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        Some("object") => json!({}),
        Some("null") => Value::Null,
        _ => json!("something"),
    }
}
