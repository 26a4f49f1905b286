//! The server that the official conformance suite is run against: every tool, prompt and resource that the suite asks for
//! by name, in all versions of the protocol, with the tasks extension.
//!
//! `conformance_server --http 127.0.0.1:0` prints its address as the first line, `conformance_server --stdio` speaks over
//! standard input and output.

#![allow(clippy::print_stdout, reason = "whoever starts it waits for its address")]

mod asking;
mod clock;
mod fixture;
mod inputs;
mod prompts;
mod resources;
mod seal;
mod tasks;
mod tools;

use fixture::Fixture;
use rialto_http::server::Options;
use rialto_mcp::{serve, stdio};
use std::error::Error;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::watch;

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    run(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Serves until it is killed or, on standard input, until that ends.
pub(crate) fn run(arguments: &[&str]) -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let fixture = Arc::new(Fixture::new().map_err(|_| "there is no randomness")?);
    runtime.block_on(async {
        match arguments {
            ["--stdio"] => Ok(serve::serve(fixture, stdio::streams()).await?),
            ["--http", address] => {
                let listener = TcpListener::bind(address).await?;
                println!("http://{}/mcp", listener.local_addr()?);
                let (_stop, stopped) = watch::channel(false);
                Ok(rialto_http::server::serve(fixture, listener, Options::default(), stopped).await?)
            }
            _ => Err("usage: conformance_server --stdio | --http ADDRESS".into()),
        }
    })
}
