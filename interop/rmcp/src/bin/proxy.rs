//! The typed gateway of the benchmark: the official Rust SDK on both sides, every message parsed into its types and
//! written again. It is what a gateway costs when it is built from the SDK's parts.
//!
//! `proxy [--threads] [--http ADDRESS] -- COMMAND ARGUMENTS…`; `--threads` uses the multi-threaded runtime instead of one
//! thread, `--http` listens there instead of on standard input.

use std::process::Stdio;

use rialto_rmcp_peers::http;
use rmcp::{
    ErrorData, Peer, RoleClient, RoleServer, ServerHandler, ServiceExt,
    model::{
        CallToolRequestParams, CallToolResponse, ListToolsResult, PaginatedRequestParams, ServerCapabilities,
        ServerConfig,
    },
    service::{RequestContext, ServiceError},
    transport::{TokioChildProcess, stdio_pipes},
};
use tokio::process::Command;

type Failure = Box<dyn std::error::Error>;

#[derive(Clone)]
struct Proxy {
    upstream: Peer<RoleClient>,
}

/// The upstream's own error goes on to the client; a broken connection becomes an internal error.
fn forwarded(error: ServiceError) -> ErrorData {
    match error {
        ServiceError::McpError(error) => error,
        other => ErrorData::internal_error(other.to_string(), None),
    }
}

impl ServerHandler for Proxy {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        params: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        self.upstream.list_tools(params).await.map_err(forwarded)
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.upstream.call_tool_once(params).await.map_err(forwarded)
    }
}

async fn serve(program: String, arguments: Vec<String>, address: Option<String>) -> Result<(), Failure> {
    let mut command = Command::new(program);
    command.args(arguments);
    let (transport, _) = TokioChildProcess::builder(command).stderr(Stdio::inherit()).spawn()?;
    let upstream = ().serve(transport).await?;
    let proxy = Proxy { upstream: upstream.peer().clone() };
    match address {
        Some(address) => http::serve(proxy, &address).await?,
        None => drop(proxy.serve(stdio_pipes()).await?.waiting().await?),
    }
    upstream.cancel().await?;
    Ok(())
}

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let (mut threads, mut address) = (false, None);
    let program = loop {
        match arguments.next().ok_or("usage: proxy [--threads] [--http ADDRESS] -- COMMAND…")?.as_str() {
            "--threads" => threads = true,
            "--http" => address = Some(arguments.next().ok_or("--http needs an address")?),
            "--" => break arguments.next().ok_or("no command after --")?,
            other => return Err(format!("unknown argument {other}").into()),
        }
    };
    let mut runtime = if threads {
        tokio::runtime::Builder::new_multi_thread()
    } else {
        tokio::runtime::Builder::new_current_thread()
    };
    runtime.enable_all().build()?.block_on(serve(program, arguments.collect(), address))
}
