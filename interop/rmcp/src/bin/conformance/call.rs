//! One call: its arguments, what came back with it, and the way to the client that made it.

use rialto_rmcp_peers::{MODERN, typed};
use rmcp::{ErrorData, RoleServer, model::*, service::*};
use serde_json::{Value, json};

use crate::{Early, Fixture, SURFACE};

pub(crate) struct Call {
    pub(crate) arguments: Value,
    pub(crate) answers: Option<InputResponses>,
    pub(crate) state: Option<String>,
    pub(crate) context: RequestContext<RoleServer>,
}

pub(crate) fn broken(error: impl std::fmt::Display) -> Early {
    Early::Error(ErrorData::internal_error(error.to_string(), None))
}

impl Call {
    pub(crate) fn is_modern(&self) -> bool {
        self.context.protocol_version().is_some_and(|version| version.as_str() >= MODERN)
    }

    /// What the client can do, as JSON.
    pub(crate) fn can(&self, capability: &str) -> bool {
        let capabilities = json!(self.context.client_capabilities());
        capabilities.get(capability).is_some_and(|capability| !capability.is_null())
    }

    pub(crate) fn knows_tasks(&self) -> bool {
        self.is_modern() && self.context.client_capabilities().is_some_and(|client| client.supports_tasks())
    }

    pub(crate) async fn progress(&self, progress: u64) -> Result<(), Early> {
        let Some(token) = self.context.meta.get_progress_token() else { return Ok(()) };
        let params = json!({ "progressToken": token, "progress": progress, "total": 100 });
        self.context.peer.notify_progress(typed(params)?).await.map_err(broken)
    }

    pub(crate) async fn log(&self, text: &str) -> Result<(), Early> {
        if self.is_modern() && self.context.meta.log_level().is_none() {
            return Ok(());
        }
        let params = json!({ "level": "info", "logger": "conformance", "data": text });
        self.context.peer.notify_logging_message(typed(params)?).await.map_err(broken)
    }

    /// The answer to a question of the surface.
    pub(crate) async fn ask(&self, key: &str) -> Result<Value, Early> {
        self.ask_this(key, SURFACE["questions"][key].clone()).await
    }

    pub(crate) async fn ask_this(&self, key: &str, request: Value) -> Result<Value, Early> {
        let capability = match request["method"].as_str() {
            Some("sampling/createMessage") => "sampling",
            Some("roots/list") => "roots",
            _ => "elicitation",
        };
        if !self.can(capability) {
            let required: ClientCapabilities = typed(json!({ capability: {} }))?;
            return Err(Early::Error(ErrorData::missing_required_client_capability(required)));
        }
        if self.is_modern() {
            return self.given(key).ok_or_else(|| Early::Input(input_required(&[key], None)));
        }
        let result = self.context.peer.send_request(typed(request)?).await.map_err(broken)?;
        Ok(json!(result))
    }

    /// An answer that came back, if it has the shape of one.
    pub(crate) fn given(&self, key: &str) -> Option<Value> {
        self.answers.as_ref()?.get(key).filter(|answer| answer.is_object()).cloned()
    }

    /// The state that came back. One that was changed is refused.
    pub(crate) fn opened(&self, fixture: &Fixture) -> Result<Option<Value>, Early> {
        let Some(state) = &self.state else { return Ok(None) };
        let opened = fixture.states.open_json(state);
        opened.map(Some).map_err(|_| ErrorData::invalid_params("`requestState` is not as it was sent", None).into())
    }
}

/// A result that asks questions of the surface.
pub(crate) fn input_required(keys: &[&str], state: Option<String>) -> Value {
    let requests: serde_json::Map<_, _> =
        keys.iter().map(|&key| (key.to_owned(), SURFACE["questions"][key].clone())).collect();
    let mut result = json!({ "resultType": "input_required", "inputRequests": requests });
    if let Some(state) = state {
        result["requestState"] = state.into();
    }
    result
}
