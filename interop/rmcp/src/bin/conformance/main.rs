//! A server for the official conformance suite, written with the official Rust SDK: the suite is run against it directly and
//! through our gateway, and must find the same.
//!
//! `--http ADDRESS` listens there and prints the address; otherwise it speaks over standard input and output.

#![allow(deprecated, reason = "subscriptions, logging, sampling and roots of the old era are part of the suite")]

mod call;
mod inputs;
mod tasks;
mod tools;

use std::sync::{Arc, LazyLock};

use call::Call;
use rialto_rmcp_peers::{complete, http, typed};
use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt, model::*, service::*, task_manager::TaskManager,
    transport::stdio_pipes,
};
use serde_json::{Value, json};
use tokio::sync::Mutex;

/// What every server that the suite is run against offers.
static SURFACE: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../../../conformance/surface.json")).expect("it is part of this program")
});

#[derive(Clone)]
struct Fixture {
    subscriptions: Arc<Mutex<Vec<SubscriptionSink>>>,
    tasks: TaskManager,
    states: Arc<RequestStateCodec>,
}

/// A result that asks back, or whatever else is not the end.
enum Early {
    Input(Value),
    Task(Box<Task>),
    Error(ErrorData),
}

impl From<ErrorData> for Early {
    fn from(error: ErrorData) -> Self {
        Early::Error(error)
    }
}

impl ServerHandler for Fixture {
    fn get_info(&self) -> ServerConfig {
        let info = json!({
            "protocolVersion": ProtocolVersion::LATEST,
            "capabilities": {
                "completions": {}, "logging": {}, "prompts": { "listChanged": true },
                "resources": { "subscribe": true, "listChanged": true }, "tools": { "listChanged": true },
                "extensions": { TASKS_EXTENSION_ID: {} },
            },
            "serverInfo": { "name": "rmcp-conformance", "version": "1" },
        });
        typed(info).expect("a constant in the SDK's own shape")
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        complete(json!({ "tools": SURFACE["tools"], "ttlMs": 0, "cacheScope": "private" }))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        let mut tools = SURFACE["tools"].as_array().into_iter().flatten();
        tools.find(|tool| tool["name"] == name).and_then(|tool| typed(tool.clone()).ok())
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let call = Call {
            arguments: json!(params.arguments),
            answers: params.input_responses,
            state: params.request_state,
            context,
        };
        match tools::call(self, &call, &params.name).await {
            Ok(result) => Ok(CallToolResponse::Complete(complete(result)?)),
            Err(Early::Input(result)) => Ok(CallToolResponse::InputRequired(typed(result)?)),
            Err(Early::Task(task)) => Ok(CallToolResponse::Task(CreateTaskResult::new(*task))),
            Err(Early::Error(error)) => Err(error),
        }
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        complete(json!({ "resources": SURFACE["resources"], "ttlMs": 0, "cacheScope": "private" }))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        complete(json!({ "resourceTemplates": SURFACE["resourceTemplates"], "ttlMs": 0, "cacheScope": "private" }))
    }

    async fn read_resource(
        &self,
        params: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = params.uri;
        let id = uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data"));
        let content = match (SURFACE["contents"].get(&uri), id) {
            (Some(content), _) => content.clone(),
            (None, Some(id)) => {
                let data = json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
                json!({ "uri": uri, "mimeType": "application/json", "text": data.to_string() })
            }
            _ => {
                let message = format!("Resource not found: {uri}");
                return Err(ErrorData::resource_not_found(message, Some(json!({ "uri": uri }))));
            }
        };
        complete(json!({ "contents": [content], "ttlMs": 0, "cacheScope": "private" }))
            .map(ReadResourceResponse::Complete)
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
        complete(json!({ "prompts": SURFACE["prompts"], "ttlMs": 0, "cacheScope": "private" }))
    }

    async fn get_prompt(
        &self,
        params: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let call = Call {
            arguments: json!(params.arguments),
            answers: params.input_responses,
            state: params.request_state,
            context,
        };
        match prompt(&call, &params.name).await {
            Ok(messages) => complete(json!({ "messages": messages })).map(GetPromptResponse::Complete),
            Err(Early::Input(result)) => Ok(GetPromptResponse::InputRequired(typed(result)?)),
            Err(Early::Error(error)) => Err(error),
            Err(Early::Task(_)) => Err(ErrorData::internal_error("prompts are no tasks", None)),
        }
    }

    async fn complete(
        &self,
        params: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let words = SURFACE["completions"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let values: Vec<_> = words.filter(|word| word.starts_with(&params.argument.value)).collect();
        complete(json!({ "completion": { "values": values, "total": values.len(), "hasMore": false } }))
    }

    async fn get_task(&self, params: GetTaskParams, _: RequestContext<RoleServer>) -> Result<GetTaskResult, ErrorData> {
        self.tasks.get_task(&params.task_id).map(GetTaskResult::new)
    }

    async fn update_task(&self, params: UpdateTaskParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.tasks.update_task(&params.task_id, params.input_responses)
    }

    async fn cancel_task(&self, params: CancelTaskParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.tasks.cancel_task(&params.task_id)
    }
}

async fn prompt(call: &Call, name: &str) -> Result<Value, Early> {
    let says = |text: String| json!({ "role": "user", "content": { "type": "text", "text": text } });
    let argument = |name: &str| call.arguments[name].as_str().unwrap_or_default().to_owned();
    Ok(match name {
        "test_prompt_with_arguments" => {
            json!([says(format!("Prompt with arguments: arg1='{}', arg2='{}'", argument("arg1"), argument("arg2")))])
        }
        "test_prompt_with_embedded_resource" => {
            let text = "Embedded resource content for testing.";
            let resource = json!({ "uri": argument("resourceUri"), "mimeType": "text/plain", "text": text });
            let embedded = json!({ "role": "user", "content": { "type": "resource", "resource": resource } });
            json!([embedded, says("Please process the embedded resource above.".into())])
        }
        "test_input_required_result_prompt" => {
            let answer = call.ask("user_context").await?;
            json!([says(format!("Use this context: {}", answer["content"]["context"]))])
        }
        _ => match SURFACE["messages"].get(name) {
            Some(messages) => messages.clone(),
            None => return Err(ErrorData::invalid_params(format!("Unknown prompt: {name}"), None).into()),
        },
    })
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // State is given out and taken back within one run of the suite, so that a key of this run is enough.
    let states = Arc::new(RequestStateCodec::new(tasks::key()));
    let fixture = Fixture { subscriptions: Arc::default(), tasks: TaskManager::new(), states };
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--http", address] => http::serve(fixture, address).await?,
        _ => drop(fixture.serve(stdio_pipes()).await?.waiting().await?),
    }
    Ok(())
}
