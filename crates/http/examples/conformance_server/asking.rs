//! Asking the client: with a request of our own where there are sessions, with a result that asks back where there are
//! none.

use rialto_mcp::call::Call;
use rialto_mcp::error::{Error, Kind};
use rialto_mcp::reply::Answer;
use serde_json::{Map, Value, json};

/// One question to the client.
#[derive(Debug, Clone)]
pub(crate) struct Question {
    pub(crate) method: &'static str,
    pub(crate) params: Value,
}

impl Question {
    /// The capability of a client that can answer it.
    fn capability(&self) -> &'static str {
        match self.method {
            "sampling/createMessage" => "sampling",
            "roots/list" => "roots",
            _ => "elicitation",
        }
    }

    pub(crate) fn as_input_request(&self) -> Value {
        json!({ "method": self.method, "params": self.params })
    }

    /// Whether an answer has the shape of one to this question.
    pub(crate) fn fits(&self, answer: &Value) -> bool {
        match self.method {
            "sampling/createMessage" => answer["content"].is_object() || answer["content"].is_array(),
            "roots/list" => answer["roots"].is_array(),
            _ => answer["action"].is_string(),
        }
    }
}

/// Asks the user for one field.
pub(crate) fn form(message: &str, field: &str, kind: &str) -> Question {
    form_with(message, json!({ field: { "type": kind } }), &[field])
}

/// Asks the user to fill in a form.
pub(crate) fn form_with(message: &str, properties: Value, required: &[&str]) -> Question {
    let mut schema = json!({ "type": "object", "properties": properties });
    if !required.is_empty() {
        schema["required"] = required.into();
    }
    Question { method: "elicitation/create", params: json!({ "message": message, "requestedSchema": schema }) }
}

/// Asks the client's model.
pub(crate) fn sampling(prompt: &str, most: u32) -> Question {
    let message = json!({ "role": "user", "content": { "type": "text", "text": prompt } });
    Question { method: "sampling/createMessage", params: json!({ "messages": [message], "maxTokens": most }) }
}

/// Asks for the client's roots.
pub(crate) fn roots() -> Question {
    Question { method: "roots/list", params: json!({}) }
}

/// A field of a filled-in form; empty if the user would not say.
pub(crate) fn field<'a>(answer: &'a Value, name: &str) -> &'a str {
    answer["content"][name].as_str().unwrap_or_default()
}

/// The error for a client that has not declared what a question needs.
pub(crate) fn refuse(capability: &str) -> Error {
    Error::new(Kind::ClientCapabilityMissing, format!("The client has not declared `{capability}`"))
        .with("requiredCapabilities", json!({ capability: {} }))
}

/// The client's answer, or what has to be sent to get it.
pub(crate) async fn ask(call: &Call, params: &Value, key: &str, question: Question) -> Result<Value, Answer> {
    if !call.profile.can(question.capability()) {
        return Err(Answer::Error(refuse(question.capability())));
    }
    if call.version().is_modern() {
        return given(params, key, &question).ok_or_else(|| input_required([(key, &question)], None));
    }
    let failed = |reason: String| Answer::Error(Error::new(Kind::ToolFailed, reason));
    let response = call.ask(question.method, question.params.to_string().as_bytes()).await;
    let response = response.map_err(|fault| failed(format!("The client did not answer: {fault}")))?;
    let result = response.result().ok_or_else(|| failed("The client answered with an error".into()))?;
    serde_json::from_slice(result).map_err(|error| failed(format!("The client's answer is not readable: {error}")))
}

/// The answer that came along with a repeated request. One of another shape counts as none.
pub(crate) fn given(params: &Value, key: &str, question: &Question) -> Option<Value> {
    params["inputResponses"].get(key).filter(|answer| question.fits(answer)).cloned()
}

/// A result that asks back.
pub(crate) fn input_required<'a>(
    questions: impl IntoIterator<Item = (&'a str, &'a Question)>,
    state: Option<String>,
) -> Answer {
    let requests = questions.into_iter().map(|(key, question)| (key.to_owned(), question.as_input_request()));
    let mut result = json!({ "resultType": "input_required", "inputRequests": requests.collect::<Map<_, _>>() });
    if let Some(state) = state {
        result["requestState"] = state.into();
    }
    Answer::Result(result.to_string().into_bytes())
}
