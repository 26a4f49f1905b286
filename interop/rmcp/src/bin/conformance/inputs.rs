//! The tools that need something from the client before they can answer.

use rialto_rmcp_peers::{text, typed};
use rmcp::{ErrorData, model::ClientCapabilities};
use serde_json::{Value, json};

use crate::{
    Early, Fixture,
    call::{Call, broken, input_required},
};

const PREFIX: &str = "test_input_required_result_";

pub(crate) fn has(tool: &str) -> bool {
    tool.starts_with(PREFIX) || ["test_missing_capability", "test_streaming_elicitation"].contains(&tool)
}

pub(crate) async fn call(fixture: &Fixture, call: &Call, tool: &str) -> Result<Value, Early> {
    match tool.strip_prefix(PREFIX).unwrap_or(tool) {
        "elicitation" | "test_streaming_elicitation" => {
            Ok(text(format!("Hello, {}!", call.ask("user_name").await?["content"]["name"])))
        }
        "sampling" => Ok(text(format!("The model says: {}", call.ask("capital_question").await?["content"]))),
        "list_roots" => Ok(text(format!("Roots: {}", call.ask("client_roots").await?["roots"]))),
        "request_state" | "tampered_state" => {
            let answers = ask_all(fixture, call, &["confirm"], tool).await?;
            Ok(text(format!("state-ok, confirmed: {}", answers[0]["content"]["ok"])))
        }
        "multiple_inputs" => {
            let answers = ask_all(fixture, call, &["user_name", "greeting", "client_roots"], tool).await?;
            Ok(text(json!(answers).to_string()))
        }
        "multi_round" => rounds(fixture, call).await,
        "capabilities" => {
            let wanted = [("user_name", "elicitation"), ("greeting", "sampling")];
            let open = wanted.iter().filter(|(key, ability)| call.can(ability) && call.given(key).is_none());
            let open: Vec<_> = open.map(|(key, _)| *key).collect();
            if call.is_modern() && !open.is_empty() {
                return Err(Early::Input(input_required(&open, None)));
            }
            Ok(text("Nothing else is needed."))
        }
        "test_missing_capability" if !call.can("sampling") => {
            let required: ClientCapabilities = typed(json!({ "sampling": {} }))?;
            Err(ErrorData::missing_required_client_capability(required).into())
        }
        "test_missing_capability" => Ok(text("The client can sample.")),
        _ => Err(ErrorData::invalid_params(format!("Unknown tool: {tool}"), None).into()),
    }
}

/// Asks several things at once, with a signed state.
async fn ask_all(fixture: &Fixture, call: &Call, keys: &[&str], about: &str) -> Result<Vec<Value>, Early> {
    let mut answers = Vec::new();
    if !call.is_modern() {
        for key in keys {
            answers.push(call.ask(key).await?);
        }
        return Ok(answers);
    }
    let is_ours = call.opened(fixture)?.is_some_and(|state| state == about);
    answers.extend(keys.iter().filter(|_| is_ours).filter_map(|key| call.given(key)));
    if answers.len() == keys.len() {
        return Ok(answers);
    }
    let state = fixture.states.seal_json(&about).map_err(broken)?;
    Err(Early::Input(input_required(keys, Some(state))))
}

/// Two questions, one after the other; the first answer is kept in the state.
async fn rounds(fixture: &Fixture, call: &Call) -> Result<Value, Early> {
    let liked = |name: &Value, answer: &Value| Ok(text(format!("{name} likes {}.", answer["content"]["color"])));
    if !call.is_modern() {
        let name = call.ask("step1").await?["content"]["name"].clone();
        return liked(&name, &call.ask("step2").await?);
    }
    let state = call.opened(fixture)?.unwrap_or_default();
    let ask = |key: &str, state: &Value| {
        let state = fixture.states.seal_json(state).map_err(broken)?;
        Err(Early::Input(input_required(&[key], Some(state))))
    };
    match (state["round"].as_u64(), call.given("step1"), call.given("step2")) {
        (Some(2), _, Some(colour)) => liked(&state["name"], &colour),
        (Some(1), Some(name), _) => ask("step2", &json!({ "round": 2, "name": name["content"]["name"] })),
        _ => ask("step1", &json!({ "round": 1 })),
    }
}
