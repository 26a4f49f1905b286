//! A stdio MCP server with one of everything, written with the official Rust SDK. It speaks both eras.

#![allow(deprecated, reason = "subscriptions, logging, sampling and roots of the old era are part of the surface")]

use std::{sync::Arc, time::Duration};

use rialto_rmcp_peers::{MODERN, SURFACE, complete, text, typed};
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt, model::*, service::*, transport::stdio_pipes};
use serde_json::{Value, json};
use tokio::sync::{Mutex, watch};

/// How the calls of the tool `slow` ended.
#[derive(Clone, Copy, Default)]
struct Slow {
    started: u32,
    finished: u32,
    cancelled: u32,
}

#[derive(Clone)]
struct Peer {
    slow: watch::Sender<Slow>,
    subscriptions: Arc<Mutex<Vec<SubscriptionSink>>>,
}

/// One call of a tool: its arguments and the way to the client that made it.
struct Call {
    arguments: Value,
    answer: Option<Value>,
    context: RequestContext<RoleServer>,
}

impl Call {
    fn modern(&self) -> bool {
        self.context.protocol_version().is_some_and(|version| version.as_str() >= MODERN)
    }

    async fn progress(&self, progress: u64, total: u64, message: String) -> Result<(), ErrorData> {
        let Some(token) = self.context.meta.get_progress_token() else { return Ok(()) };
        let params = json!({ "progressToken": token, "progress": progress, "total": total, "message": message });
        self.context.peer.notify_progress(typed(params)?).await.map_err(broken)
    }

    async fn log(&self) -> Result<Value, ErrorData> {
        if !self.modern() || self.context.meta.log_level().is_some() {
            let params = json!({ "level": "warning", "logger": "peer", "data": { "hello": "log" } });
            self.context.peer.notify_logging_message(typed(params)?).await.map_err(broken)?;
        }
        Ok(text("logged"))
    }

    /// Asks the client: with a request of our own in the old era, with an input_required result in the new one.
    async fn ask(&self, method: &str, params: Option<&Value>) -> Result<Value, ErrorData> {
        let mut request = json!({ "method": method });
        if let Some(params) = params {
            request["params"] = params.clone();
        }
        let answer = match (self.modern(), &self.answer) {
            (true, None) => {
                let requests = json!({ "answer": request });
                return Ok(
                    json!({ "resultType": "input_required", "inputRequests": requests, "requestState": "round-1" }),
                );
            }
            (true, Some(answer)) => answer.clone(),
            (false, _) => json!(self.context.peer.send_request(typed(request)?).await.map_err(broken)?),
        };
        let Value::Object(mut answer) = answer else { return Err(ErrorData::internal_error("no answer", None)) };
        answer.remove("_meta");
        answer.remove("resultType");
        Ok(text(Value::Object(answer).to_string()))
    }
}

fn broken(error: impl std::fmt::Display) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

impl Peer {
    async fn slow(&self, call: &Call, ms: u64) -> Result<Value, ErrorData> {
        if ms == 0 {
            let mut slow = self.slow.subscribe();
            let ended = slow.wait_for(|slow| slow.started == slow.finished + slow.cancelled).await.map_err(broken)?;
            let Slow { started, finished, cancelled } = *ended;
            return Ok(text(format!("started={started} finished={finished} cancelled={cancelled}")));
        }
        self.slow.send_modify(|slow| slow.started += 1);
        call.progress(0, 1, "started".into()).await?;
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(ms)) => self.slow.send_modify(|slow| slow.finished += 1),
            () = call.context.ct.cancelled() => self.slow.send_modify(|slow| slow.cancelled += 1),
        }
        Ok(text("waited"))
    }

    async fn announce(&self, call: &Call) -> Result<Value, ErrorData> {
        if call.modern() {
            // The SDK acknowledges a subscription before it tells us of it, and nothing says when it has done both.
            tokio::time::sleep(Duration::from_millis(200)).await;
            for sink in self.subscriptions.lock().await.iter() {
                sink.notify_resource_updated("peer://note").await.map_err(broken)?;
                sink.notify_tool_list_changed().await.map_err(broken)?;
            }
        } else {
            let peer = &call.context.peer;
            peer.notify_resource_updated(typed(json!({ "uri": "peer://note" }))?).await.map_err(broken)?;
            peer.notify_tool_list_changed().await.map_err(broken)?;
        }
        Ok(text("announced"))
    }

    async fn run(&self, name: &str, call: &Call) -> Result<Value, ErrorData> {
        let argument = |name: &str| &call.arguments[name];
        match name {
            "echo" => Ok(text(argument("text").as_str().unwrap_or_default())),
            "add" => {
                let sum = argument("a").as_f64().unwrap_or_default() + argument("b").as_f64().unwrap_or_default();
                let mut result = text(json!({ "sum": sum }).to_string());
                result["structuredContent"] = json!({ "sum": sum });
                result["_meta"] = json!({ "example.org/trace": { "hop": 1 } });
                Ok(result)
            }
            "progress" => {
                let steps = argument("steps").as_u64().unwrap_or_default();
                for step in 1..=steps {
                    call.progress(step, steps, format!("step {step}")).await?;
                }
                Ok(text(format!("{steps} steps")))
            }
            "slow" => self.slow(call, argument("ms").as_u64().unwrap_or_default()).await,
            "fail" => {
                let mut result = text("This tool always fails.");
                result["isError"] = json!(true);
                Ok(result)
            }
            "log" => call.log().await,
            "ask" => call.ask("elicitation/create", Some(&SURFACE["elicitation"])).await,
            "sample" => call.ask("sampling/createMessage", Some(&SURFACE["sampling"])).await,
            "roots" => call.ask("roots/list", None).await,
            "update" => self.announce(call).await,
            _ => Err(ErrorData::invalid_params(format!("Unknown tool: {name}"), None)),
        }
    }
}

impl ServerHandler for Peer {
    fn get_info(&self) -> ServerConfig {
        let info = json!({
            "protocolVersion": ProtocolVersion::LATEST,
            "capabilities": {
                "completions": {}, "logging": {}, "prompts": {},
                "resources": { "subscribe": true }, "tools": { "listChanged": true },
            },
            "serverInfo": { "name": "rmcp-peer", "version": "1" },
            "instructions": SURFACE["instructions"],
        });
        typed(info).expect("a constant in the SDK's own shape")
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        complete(json!({ "tools": SURFACE["tools"], "_meta": { "example.org/page": 1 } }))
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let answer = params.input_responses.and_then(|mut responses| responses.remove("answer"));
        if answer.is_some() && params.request_state.as_deref() != Some("round-1") {
            return Err(ErrorData::invalid_params("the request state came back changed", None));
        }
        let call = Call { arguments: json!(params.arguments), answer, context };
        let result = self.run(&params.name, &call).await?;
        if result["resultType"] == "input_required" {
            return Ok(CallToolResponse::InputRequired(typed(result)?));
        }
        Ok(CallToolResponse::Complete(complete(result)?))
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        complete(json!({ "resources": SURFACE["resources"] }))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        complete(json!({ "resourceTemplates": SURFACE["resourceTemplates"] }))
    }

    async fn read_resource(
        &self,
        params: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = params.uri;
        let contents = if uri == "peer://note" {
            json!([{ "uri": uri, "mimeType": "text/plain", "text": "a short one" }])
        } else if let Some(id) = uri.strip_prefix("peer://item/") {
            json!([
                { "uri": uri, "mimeType": "application/json", "text": json!({ "id": id }).to_string() },
                { "uri": format!("{uri}/raw"), "mimeType": "application/octet-stream", "blob": "AAECAw==" },
            ])
        } else {
            let message = format!("No such resource: {uri}");
            return Err(ErrorData::resource_not_found(message, Some(json!({ "uri": uri }))));
        };
        complete(json!({ "contents": contents })).map(ReadResourceResponse::Complete)
    }

    async fn subscribe(&self, _: SubscribeRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(&self, _: UnsubscribeRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        self.subscriptions.lock().await.push(context.sink().clone());
        context.cancelled().await;
        self.subscriptions.lock().await.retain(|sink| sink.id() != context.sink().id());
        Ok(())
    }

    async fn set_level(&self, _: SetLevelRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        complete(json!({ "prompts": SURFACE["prompts"] }))
    }

    async fn get_prompt(
        &self,
        params: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let arguments = json!(params.arguments);
        let greeting = format!("Hello, {}!", arguments["name"].as_str().unwrap_or("you"));
        let message = json!({ "role": "user", "content": { "type": "text", "text": greeting } });
        complete(json!({ "description": "Greets somebody.", "messages": [message] })).map(GetPromptResponse::Complete)
    }

    async fn complete(
        &self,
        params: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let names = SURFACE["completions"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let values: Vec<_> = names.filter(|name| name.starts_with(&params.argument.value)).collect();
        complete(json!({ "completion": { "values": values, "total": values.len(), "hasMore": false } }))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let peer = Peer { slow: watch::Sender::default(), subscriptions: Arc::default() };
    peer.serve(stdio_pipes()).await?.waiting().await?;
    Ok(())
}
