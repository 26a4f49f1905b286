//! One request to the MCP servers behind us, and what its answer means for the customer.
//!
//! What went wrong inside (which program died, and with which words) is for the operator; the customer gets a code and a
//! sentence that tells nothing of it.

use crate::catalogue::Output;
use rialto_mcp::error::Kind;
use rialto_mcp::json;
use rialto_mcp::local::Local;
use rialto_mcp::pending::Fault;
use rialto_mcp::reply::Answer;
use rialto_mcp::server::Service;
use rialto_wire::dvmcp::answer;
use rialto_wire::failure::{Code, Failure};
use rialto_wire::manifest;
use rialto_wire::request::{Body, Execution};
use std::time::Duration;
use tokio::time::Instant;

/// The longest message of a server that is passed on as the reason of an error.
const MAX_REASON: usize = 500;

/// The content of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) content: String,
    /// If the tool itself said that it failed: its words.
    pub(crate) complaint: Option<String>,
}

/// What a customer gets of a result.
#[derive(Debug)]
pub(crate) enum Form {
    /// All of it, as the content of a response.
    Response,
    /// What the tool has promised, as the text of a message.
    Message(Output),
}

/// Does what a request asks for. Progress is reported under `token`, if there is one.
pub(crate) async fn perform<S: Service>(
    local: &Local<S>,
    body: &Body,
    limit: Duration,
    token: Option<u64>,
    form: &Form,
) -> Result<Reply, Failure> {
    match body {
        Body::Execute(execution) => execute(local, execution, limit, token, form).await,
        Body::Batch(executions) => batch(local, executions, limit, token).await,
        Body::Read { uri } => {
            let params = serde_json::json!({ "uri": uri }).to_string();
            plain(local, "resources/read", &params, limit).await
        }
        Body::Prompt { name, arguments } => {
            let name = json::quoted(name);
            let mut params = Vec::new();
            json::push_member(&mut params, b"name", &name);
            if let Some(arguments) = arguments {
                json::push_member(&mut params, b"arguments", arguments.as_bytes());
            }
            let params = format!("{{{}}}", String::from_utf8_lossy(&params));
            plain(local, "prompts/get", &params, limit).await
        }
        Body::Complete { params } => plain(local, "completion/complete", params, limit).await,
        // These never come this far.
        Body::List { .. } | Body::Cancel { .. } | Body::Pay { .. } | Body::Refund { .. } => {
            Err(Failure::new(Code::InternalError, "nothing to run"))
        }
    }
}

async fn execute<S: Service>(
    local: &Local<S>,
    execution: &Execution,
    limit: Duration,
    token: Option<u64>,
    form: &Form,
) -> Result<Reply, Failure> {
    let limit = execution.timeout.map_or(limit, |asked| asked.min(limit));
    let began = Instant::now();
    let result = ask(local, "tools/call", &call_params(execution, token), limit).await?;
    let complaint = answer::complaint(&result);
    let content = match (form, &complaint) {
        (Form::Response, _) => {
            let seconds = (began.elapsed().as_secs_f64() * 1e6).round() / 1e6;
            answer::completed(&result, seconds)
        }
        (Form::Message(_), Some(words)) => manifest::answer::complained(words, &result),
        (Form::Message(output), None) => promised(&result, output)?,
    };
    Ok(Reply { content, complaint })
}

/// The result in the form that the tool has promised; a server that does not keep its promise is at fault, not the customer.
fn promised(result: &[u8], output: &Output) -> Result<String, Failure> {
    let text = manifest::answer::given(result, output.is_structured)?;
    let value = serde_json::from_str(&text).map_err(|_| Failure::new(Code::InternalError, "the result is no JSON"))?;
    match output.schema.as_ref().map_or(Ok(()), |schema| schema.check(&value)) {
        Ok(()) => Ok(text),
        Err(misfit) => {
            let words = format!("the result does not fit what the tool promises: {}", misfit.message);
            Err(Failure::new(Code::InternalError, words).at(misfit.pointer))
        }
    }
}

fn call_params(execution: &Execution, token: Option<u64>) -> Vec<u8> {
    let mut members = Vec::with_capacity(execution.arguments.len() + 128);
    json::push_member(&mut members, b"name", &json::quoted(&execution.name));
    json::push_member(&mut members, b"arguments", execution.arguments.as_bytes());
    let meta = execution.meta.as_ref().map(|meta| json::without_members(meta.as_bytes(), &["progressToken"]));
    let meta = match (meta, token) {
        (None, None) => None,
        (meta, None) => meta,
        (meta, Some(token)) => {
            let member = format!("\"progressToken\":{token}");
            Some(json::with_members(meta.as_deref().unwrap_or(b"{}"), member.as_bytes()))
        }
    };
    if let Some(meta) = meta {
        json::push_member(&mut members, b"_meta", &meta);
    }
    [b"{".as_slice(), &members, b"}"].concat()
}

async fn batch<S: Service>(
    local: &Local<S>,
    executions: &[Execution],
    limit: Duration,
    token: Option<u64>,
) -> Result<Reply, Failure> {
    let mut results = Vec::with_capacity(executions.len());
    let mut complaint = None;
    // One after the other: a batch is one job, and takes one place.
    for (index, execution) in executions.iter().enumerate() {
        let content = match execute(local, execution, limit, token, &Form::Response).await {
            Ok(reply) => {
                complaint = complaint.or(reply.complaint.map(|words| format!("call {index}: {words}")));
                reply.content
            }
            Err(failure) => {
                complaint = complaint.or(Some(format!("call {index}: {failure}")));
                answer::failed(&failure)
            }
        };
        results.push(content);
    }
    let is_error = complaint.is_some();
    Ok(Reply { content: format!("{{\"isError\":{is_error},\"results\":[{}]}}", results.join(",")), complaint })
}

/// A request whose result is the content as it is.
async fn plain<S: Service>(local: &Local<S>, method: &str, params: &str, limit: Duration) -> Result<Reply, Failure> {
    let result = ask(local, method, params.as_bytes(), limit).await?;
    let content = String::from_utf8(result).map_err(|_| Failure::new(Code::InternalError, "the result is no text"))?;
    Ok(Reply { content, complaint: None })
}

async fn ask<S: Service>(local: &Local<S>, method: &str, params: &[u8], limit: Duration) -> Result<Vec<u8>, Failure> {
    let answer = tokio::time::timeout(limit, local.request(method, params)).await.map_err(|_| timed_out())?;
    match answer {
        Answer::Result(result) => Ok(result),
        Answer::Response(response) => match response.result() {
            Some(result) if result.first() == Some(&b'{') => Ok(result.to_vec()),
            Some(_) => Err(Failure::new(Code::InternalError, "the server's result cannot be read")),
            None => Err(said_no(method, response.error().unwrap_or(b"{}"))),
        },
        Answer::Error(error) => {
            let code = match (error.kind, &error.fault) {
                (_, Some(Fault::Timeout(_))) => return Err(timed_out()),
                (_, Some(Fault::TooLong)) => Code::ResultTooLarge,
                (_, Some(_)) | (Kind::ToolFailed | Kind::Unavailable, None) => Code::UpstreamUnavailable,
                (Kind::Timeout, None) => return Err(timed_out()),
                (Kind::ToolNotFound, _) => Code::UnknownTool,
                (Kind::PromptNotFound, _) => Code::UnknownPrompt,
                (Kind::ResourceNotFound, _) => Code::UnknownResource,
                (Kind::InvalidArguments | Kind::InvalidParams, _) => Code::InvalidInput,
                (Kind::Busy | Kind::ShuttingDown, _) => Code::Busy,
                (
                    Kind::SamplingUnsupported
                    | Kind::CapabilityUnsupported
                    | Kind::ClientCapabilityMissing
                    | Kind::MethodNotFound,
                    _,
                ) => Code::Unsupported,
                _ => Code::InternalError,
            };
            let message = match code {
                Code::UpstreamUnavailable => "the server behind this service is not available".to_owned(),
                Code::ResultTooLarge => "the result is longer than the limit".to_owned(),
                Code::InternalError => "something went wrong inside the provider".to_owned(),
                _ => shortened(&error.message),
            };
            Err(Failure::new(code, message))
        }
    }
}

fn timed_out() -> Failure {
    Failure::new(Code::Timeout, "the tool did not answer in time")
}

fn shortened(text: &str) -> String {
    text.chars().take(MAX_REASON).collect()
}

/// An MCP server's own error.
fn said_no(method: &str, error: &[u8]) -> Failure {
    let number = json::get(error, "code").and_then(|code| std::str::from_utf8(code).ok()?.parse::<i64>().ok());
    let message = json::get_string(error, "message").unwrap_or_default();
    let code = match (number.unwrap_or_default(), method) {
        (-32601 | -32042 | -32021 | -32006 | -32007, _) => Code::Unsupported,
        (-32602 | -32001 | -32002, "resources/read") => Code::UnknownResource,
        (-32602 | -32005, "prompts/get") if message.to_lowercase().contains("prompt") => Code::UnknownPrompt,
        (-32602 | -32004, _) => Code::InvalidInput,
        _ => Code::ToolError,
    };
    Failure::new(code, if message.is_empty() { "the server refused".to_owned() } else { shortened(&message) })
}
