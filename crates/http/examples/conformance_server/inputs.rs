//! The tools that need something from the client before they can answer, and state that goes there and back.

use super::asking::{self, Question, field, input_required, said};
use super::fixture::{Fixture, text};
use rialto_mcp::call::Call;
use rialto_mcp::error::Error;
use rialto_mcp::reply::Answer;
use serde_json::{Value, json};

const PREFIX: &str = "test_input_required_result_";

pub(crate) fn has(tool: &str) -> bool {
    tool.starts_with(PREFIX) || ["test_missing_capability", "test_streaming_elicitation"].contains(&tool)
}

pub(crate) async fn call(fixture: &Fixture, call: &Call, params: &Value, tool: &str) -> Result<Value, Answer> {
    match tool.strip_prefix(PREFIX).unwrap_or(tool) {
        "elicitation" => {
            let answer = asking::ask(call, params, Question::new("user_name")).await?;
            Ok(text(&format!("Hello, {}!", field(&answer, "name"))))
        }
        "sampling" => {
            let answer = asking::ask(call, params, Question::new("capital_question")).await?;
            Ok(text(&format!("The model says: {}", said(&answer))))
        }
        "list_roots" => {
            let answer = asking::ask(call, params, Question::new("client_roots")).await?;
            Ok(text(&format!("Roots: {}", answer["roots"])))
        }
        "request_state" | "tampered_state" => {
            let [answer] = ask_all(fixture, call, params, ["confirm"], tool).await?;
            Ok(text(&format!("state-ok, confirmed: {}", answer["content"]["ok"])))
        }
        "multiple_inputs" => {
            let keys = ["user_name", "greeting", "client_roots"];
            let [name, greeting, roots] = ask_all(fixture, call, params, keys, tool).await?;
            Ok(text(&format!("{} ({}, roots: {})", said(&greeting), field(&name, "name"), roots["roots"])))
        }
        "multi_round" => rounds(fixture, call, params).await,
        "capabilities" => {
            let mut open: Vec<_> = ["user_name", "greeting"].map(Question::new).into();
            open.retain(|question| question.suits(call) && question.given(params).is_none());
            if call.version().is_modern() && !open.is_empty() {
                return Err(input_required(&open, None));
            }
            Ok(text("Nothing else is needed."))
        }
        "test_missing_capability" if !call.profile.can("sampling") => Err(Answer::Error(asking::refuse("sampling"))),
        "test_missing_capability" => Ok(text("The client can sample.")),
        "test_streaming_elicitation" => {
            call.progress(0.0, None, Some("about to ask")).await;
            let answer = asking::ask(call, params, Question::new("user_name")).await?;
            Ok(text(&format!("Hello, {}!", field(&answer, "name"))))
        }
        _ => Err(Answer::Error(Error::invalid_params(format!("Unknown tool: {tool}")))),
    }
}

/// Asks several things at once. What the state is about comes back with the answers, signed.
async fn ask_all<const N: usize>(
    fixture: &Fixture,
    call: &Call,
    params: &Value,
    keys: [&'static str; N],
    about: &str,
) -> Result<[Value; N], Answer> {
    let mut answers = [const { Value::Null }; N];
    if !call.version().is_modern() {
        for (answer, key) in answers.iter_mut().zip(keys) {
            *answer = asking::ask(call, params, Question::new(key)).await?;
        }
        return Ok(answers);
    }
    let is_ours = opened(fixture, params)?.is_some_and(|state| state == about);
    let mut open = Vec::new();
    for (answer, question) in answers.iter_mut().zip(keys.map(Question::new)) {
        match question.given(params).filter(|_| is_ours) {
            Some(given) => *answer = given,
            None => open.push(question),
        }
    }
    if open.is_empty() { Ok(answers) } else { Err(input_required(&open, Some(fixture.seal.close(about)))) }
}

/// The state that the client sends back. One that we have not signed is refused.
fn opened(fixture: &Fixture, params: &Value) -> Result<Option<String>, Answer> {
    let Some(state) = params.get("requestState") else { return Ok(None) };
    let state = state.as_str().and_then(|state| fixture.seal.open(state));
    state.map(Some).ok_or_else(|| Answer::Error(Error::invalid_params("`requestState` is not as it was sent")))
}

/// Two questions, one after the other; the first answer is kept in the state.
async fn rounds(fixture: &Fixture, call: &Call, params: &Value) -> Result<Value, Answer> {
    let [first, second] = ["step1", "step2"].map(Question::new);
    let liked = |name: &str, answer: &Value| Ok(text(&format!("{name} likes {}.", field(answer, "color"))));
    if !call.version().is_modern() {
        let name = asking::ask(call, params, first).await?;
        let colour = asking::ask(call, params, second).await?;
        return liked(field(&name, "name"), &colour);
    }
    let state: Value = opened(fixture, params)?.and_then(|state| serde_json::from_str(&state).ok()).unwrap_or_default();
    let ask = |question: Question, state: &Value| {
        Err(input_required(&[question], Some(fixture.seal.close(&state.to_string()))))
    };
    match (state["round"].as_u64(), first.given(params), second.given(params)) {
        (Some(2), _, Some(colour)) => liked(state["name"].as_str().unwrap_or_default(), &colour),
        (Some(1), Some(name), _) => ask(second, &json!({ "round": 2, "name": field(&name, "name") })),
        _ => ask(first, &json!({ "round": 1 })),
    }
}
