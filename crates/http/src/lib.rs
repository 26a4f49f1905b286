//! MCP over HTTP: [`server`] is one endpoint for many clients of every version, [`client`] reaches remote servers.

pub mod client;
pub mod server;
