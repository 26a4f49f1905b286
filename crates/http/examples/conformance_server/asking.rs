//! Asking the client: with a request of our own where there are sessions, with a result that asks back where there are
//! none.

use super::fixture::SURFACE;
use rialto_mcp::call::Call;
use rialto_mcp::error::{Error, Kind};
use rialto_mcp::reply::Answer;
use serde_json::{Map, Value, json};

/// One question to the client.
#[derive(Debug, Clone)]
pub(crate) struct Question {
    pub(crate) key: &'static str,
    /// Method and params.
    pub(crate) request: Value,
}

impl Question {
    /// A question of the surface.
    pub(crate) fn new(key: &'static str) -> Self {
        Self { key, request: SURFACE["questions"][key].clone() }
    }

    fn method(&self) -> &str {
        self.request["method"].as_str().unwrap_or_default()
    }

    /// The capability of a client that can answer it.
    fn capability(&self) -> &'static str {
        match self.method() {
            "sampling/createMessage" => "sampling",
            "roots/list" => "roots",
            _ => "elicitation",
        }
    }

    /// Whether the client can answer it.
    pub(crate) fn suits(&self, call: &Call) -> bool {
        call.profile.can(self.capability())
    }

    /// Whether an answer has the shape of one to this question.
    pub(crate) fn fits(&self, answer: &Value) -> bool {
        match self.method() {
            "sampling/createMessage" => answer["content"].is_object() || answer["content"].is_array(),
            "roots/list" => answer["roots"].is_array(),
            _ => answer["action"].is_string(),
        }
    }

    /// The answer that came along with a repeated request. One of another shape counts as none.
    pub(crate) fn given(&self, params: &Value) -> Option<Value> {
        params["inputResponses"].get(self.key).filter(|answer| self.fits(answer)).cloned()
    }
}

/// A field of a filled-in form; empty if the user would not say.
pub(crate) fn field<'a>(answer: &'a Value, name: &str) -> &'a str {
    answer["content"][name].as_str().unwrap_or_default()
}

/// The text of what a model said.
pub(crate) fn said(answer: &Value) -> &str {
    answer["content"]["text"].as_str().unwrap_or_default()
}

/// The error for a client that has not declared what a question needs.
pub(crate) fn refuse(capability: &str) -> Error {
    Error::new(Kind::ClientCapabilityMissing, format!("The client has not declared `{capability}`"))
        .with("requiredCapabilities", json!({ capability: {} }))
}

/// The client's answer, or what has to be sent to get it.
pub(crate) async fn ask(call: &Call, params: &Value, question: Question) -> Result<Value, Answer> {
    if !question.suits(call) {
        return Err(Answer::Error(refuse(question.capability())));
    }
    if call.version().is_modern() {
        return question.given(params).ok_or_else(|| input_required(&[question], None));
    }
    let failed = |reason: String| Answer::Error(Error::new(Kind::ToolFailed, reason));
    let response = call.ask(question.method(), question.request["params"].to_string().as_bytes()).await;
    let response = response.map_err(|fault| failed(format!("The client did not answer: {fault}")))?;
    let result = response.result().ok_or_else(|| failed("The client answered with an error".into()))?;
    serde_json::from_slice(result).map_err(|error| failed(format!("The client's answer is not readable: {error}")))
}

/// A result that asks back.
pub(crate) fn input_required(questions: &[Question], state: Option<String>) -> Answer {
    let requests: Map<_, _> =
        questions.iter().map(|question| (question.key.to_owned(), question.request.clone())).collect();
    let mut result = json!({ "resultType": "input_required", "inputRequests": requests });
    if let Some(state) = state {
        result["requestState"] = state.into();
    }
    Answer::Result(result.to_string().into_bytes())
}
