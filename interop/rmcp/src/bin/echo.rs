//! The echo server of the benchmark, written with the official Rust SDK.
//!
//! `--blocking-stdio` uses `stdio()`, which reads in a helper thread; the default is the faster `stdio_pipes()`. With
//! `--http ADDRESS` it listens there instead.

use rialto_rmcp_peers::{complete, http};
use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListToolsResult, PaginatedRequestParams,
        ServerCapabilities, ServerConfig,
    },
    service::RequestContext,
    transport::{stdio, stdio_pipes},
};
use serde_json::json;

#[derive(Clone)]
struct Echo;

impl ServerHandler for Echo {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = json!({ "type": "object", "properties": { "text": { "type": "string" } }, "required": ["text"] });
        complete(json!({ "tools": [{ "name": "echo", "description": "Returns its text.", "inputSchema": schema }] }))
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if params.name != "echo" {
            return Err(ErrorData::invalid_params("unknown tool", None));
        }
        let given =
            params.arguments.as_ref().and_then(|arguments| arguments.get("text")).and_then(|text| text.as_str());
        Ok(CallToolResult::success(vec![ContentBlock::text(given.unwrap_or_default())]).into())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--http", address] => http::serve(Echo, address).await?,
        ["--blocking-stdio"] => drop(Echo.serve(stdio()).await?.waiting().await?),
        _ => drop(Echo.serve(stdio_pipes()).await?.waiting().await?),
    }
    Ok(())
}
