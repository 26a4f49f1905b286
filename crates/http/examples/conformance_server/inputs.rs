//! The tools that need something from the client before they can answer, and state that goes there and back.

use super::asking::{self, Question, form, given, input_required};
use super::fixture::Fixture;
use super::tools::text;
use rialto_mcp::call::Call;
use rialto_mcp::error::Error;
use rialto_mcp::reply::Answer;
use serde_json::{Value, json};

const PREFIX: &str = "test_input_required_result_";

pub(crate) fn has(tool: &str) -> bool {
    tool.starts_with(PREFIX) || ["test_missing_capability", "test_streaming_elicitation"].contains(&tool)
}

/// The text of what a model said.
pub(crate) fn said(answer: &Value) -> &str {
    answer["content"]["text"].as_str().unwrap_or_default()
}

pub(crate) async fn call(fixture: &Fixture, call: &Call, params: &Value, tool: &str) -> Result<Value, Answer> {
    let name = || form("What is your name?", "name", "string");
    match tool.strip_prefix(PREFIX).unwrap_or(tool) {
        "elicitation" => {
            let answer = asking::ask(call, params, "user_name", name()).await?;
            Ok(text(&format!("Hello, {}!", asking::field(&answer, "name"))))
        }
        "sampling" => {
            let question = asking::sampling("What is the capital of France?", 100);
            let answer = asking::ask(call, params, "capital_question", question).await?;
            Ok(text(&format!("The model says: {}", said(&answer))))
        }
        "list_roots" => {
            let answer = asking::ask(call, params, "client_roots", asking::roots()).await?;
            Ok(text(&format!("Roots: {}", answer["roots"])))
        }
        "request_state" | "tampered_state" => {
            let question = form("Please confirm", "ok", "boolean");
            let [answer] = ask_all(fixture, call, params, [("confirm", question)], tool).await?;
            Ok(text(&format!("state-ok, confirmed: {}", answer["content"]["ok"])))
        }
        "multiple_inputs" => {
            let greeting = asking::sampling("Generate a greeting", 50);
            let questions = [("user_name", name()), ("greeting", greeting), ("client_roots", asking::roots())];
            let [name, greeting, roots] = ask_all(fixture, call, params, questions, tool).await?;
            let name = asking::field(&name, "name");
            Ok(text(&format!("{} ({name}, roots: {})", said(&greeting), roots["roots"])))
        }
        "multi_round" => rounds(fixture, call, params).await,
        "capabilities" => {
            let wanted =
                [("user_name", name(), "elicitation"), ("greeting", asking::sampling("Say hi", 50), "sampling")];
            let open = wanted
                .iter()
                .filter(|(key, question, ability)| call.profile.can(ability) && given(params, key, question).is_none());
            let open: Vec<_> = open.map(|(key, question, _)| (*key, question)).collect();
            if call.version().is_modern() && !open.is_empty() {
                return Err(input_required(open, None));
            }
            Ok(text("Nothing else is needed."))
        }
        "test_missing_capability" if !call.profile.can("sampling") => Err(Answer::Error(asking::refuse("sampling"))),
        "test_missing_capability" => Ok(text("The client can sample.")),
        "test_streaming_elicitation" => {
            call.progress(0.0, None, Some("about to ask")).await;
            let answer = asking::ask(call, params, "user_name", name()).await?;
            Ok(text(&format!("Hello, {}!", asking::field(&answer, "name"))))
        }
        _ => Err(Answer::Error(Error::invalid_params(format!("Unknown tool: {tool}")))),
    }
}

/// Asks several things at once. What the state is about comes back with the answers, signed.
async fn ask_all<const N: usize>(
    fixture: &Fixture,
    call: &Call,
    params: &Value,
    questions: [(&str, Question); N],
    about: &str,
) -> Result<[Value; N], Answer> {
    let mut answers = [const { Value::Null }; N];
    if !call.version().is_modern() {
        for (answer, (key, question)) in answers.iter_mut().zip(questions) {
            *answer = asking::ask(call, params, key, question).await?;
        }
        return Ok(answers);
    }
    let is_ours = opened(fixture, params)?.is_some_and(|state| state == about);
    let mut open = Vec::new();
    for (answer, (key, question)) in answers.iter_mut().zip(&questions) {
        match given(params, key, question).filter(|_| is_ours) {
            Some(given) => *answer = given,
            None => open.push((*key, question)),
        }
    }
    if open.is_empty() { Ok(answers) } else { Err(input_required(open, Some(fixture.seal.close(about)))) }
}

/// The state that the client sends back. One that we have not signed is refused.
fn opened(fixture: &Fixture, params: &Value) -> Result<Option<String>, Answer> {
    let Some(state) = params.get("requestState") else { return Ok(None) };
    let state = state.as_str().and_then(|state| fixture.seal.open(state));
    state.map(Some).ok_or_else(|| Answer::Error(Error::invalid_params("`requestState` is not as it was sent")))
}

/// Two questions, one after the other; the first answer is kept in the state.
async fn rounds(fixture: &Fixture, call: &Call, params: &Value) -> Result<Value, Answer> {
    let first = form("Step 1: What is your name?", "name", "string");
    let second = form("Step 2: What is your favorite color?", "color", "string");
    let liked = |name: &str, answer: &Value| Ok(text(&format!("{name} likes {}.", asking::field(answer, "color"))));
    if !call.version().is_modern() {
        let name = asking::ask(call, params, "step1", first).await?;
        let colour = asking::ask(call, params, "step2", second).await?;
        return liked(asking::field(&name, "name"), &colour);
    }
    let state: Value = opened(fixture, params)?.and_then(|state| serde_json::from_str(&state).ok()).unwrap_or_default();
    match (state["round"].as_u64(), given(params, "step1", &first), given(params, "step2", &second)) {
        (Some(2), _, Some(colour)) => liked(state["name"].as_str().unwrap_or_default(), &colour),
        (Some(1), Some(name), _) => {
            let state = json!({ "round": 2, "name": asking::field(&name, "name") });
            Err(input_required([("step2", &second)], Some(fixture.seal.close(&state.to_string()))))
        }
        _ => {
            let state = json!({ "round": 1 }).to_string();
            Err(input_required([("step1", &first)], Some(fixture.seal.close(&state))))
        }
    }
}
