//! A small MCP server over HTTP: one tool that returns what it is given. It is what a server of one's own looks like, and the
//! subject of the benchmark.
//!
//! `echo --http 127.0.0.1:0` prints its address first.

#![allow(clippy::print_stdout, reason = "whoever starts it waits for its address")]

use bytes::Bytes;
use rialto_http::server::{Options, serve};
use rialto_mcp::call::Call;
use rialto_mcp::error::{Error, Kind};
use rialto_mcp::json;
use rialto_mcp::peer::{Peer, Profile};
use rialto_mcp::reply::Answer;
use rialto_mcp::server::{Description, Service};
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::watch;

const TOOLS: &str = r#"{"tools":[{"name":"echo","description":"Returns its text.","inputSchema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}}]}"#;

struct Echo;

impl Service for Echo {
    fn info(&self) -> Bytes {
        Bytes::from_static(br#"{"name":"rialto-echo","version":"1"}"#)
    }

    async fn describe(&self, _peer: &Arc<Peer>, _profile: &Arc<Profile>) -> Description {
        Description {
            capabilities: br#"{"tools":{}}"#.to_vec(),
            info: self.info(),
            instructions: None,
            more: Vec::new(),
        }
    }

    async fn request(&self, call: &Call) -> Answer {
        match call.method() {
            "tools/list" => Answer::Result(TOOLS.into()),
            "tools/call" => echo(call.params()).into(),
            method => Answer::Error(Error::not_offered(method)),
        }
    }
}

fn echo(params: &[u8]) -> Result<Vec<u8>, Error> {
    let name = json::get_string(params, "name").unwrap_or_default();
    if name != "echo" {
        return Err(Error::new(Kind::ToolNotFound, format!("Unknown tool: {name}")));
    }
    let text = json::get(params, "arguments").and_then(|arguments| json::get(arguments, "text"));
    let text = text.filter(|text| text.first() == Some(&b'"'));
    let text = text.ok_or_else(|| Error::new(Kind::InvalidArguments, "`text` must be a string"))?;
    // It is JSON already, and stays as it came.
    Ok([b"{\"content\":[{\"type\":\"text\",\"text\":".as_slice(), text, b"}]}"].concat())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [flag, address] = arguments.as_slice() else { return Err("usage: echo --http ADDRESS".into()) };
    if flag != "--http" {
        return Err("usage: echo --http ADDRESS".into());
    }
    let listener = TcpListener::bind(address).await?;
    println!("http://{}/mcp", listener.local_addr()?);
    let (_stop, stopped) = watch::channel(false);
    serve(Arc::new(Echo), listener, Options::default(), stopped).await?;
    Ok(())
}
