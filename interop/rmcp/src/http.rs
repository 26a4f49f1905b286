//! The SDK's HTTP endpoint on a socket, without a framework around it.

use std::{convert::Infallible, error::Error, sync::Arc};

use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::{
    ServerHandler,
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
    },
};
use tokio::net::TcpListener;

/// Serves a copy of `handler` to each session, for ever. The address is printed first.
pub async fn serve<S>(handler: S, address: &str) -> Result<(), Box<dyn Error>>
where
    S: ServerHandler + Clone,
{
    let listener = TcpListener::bind(address).await?;
    println!("http://{}/mcp", listener.local_addr()?);
    let sessions = Arc::new(LocalSessionManager::default());
    let config = StreamableHttpServerConfig::default();
    let endpoint = StreamableHttpService::new(move || Ok(handler.clone()), sessions, config);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let endpoint = endpoint.clone();
        tokio::spawn(async move {
            let answer = service_fn(move |request| {
                let endpoint = endpoint.clone();
                async move { Ok::<_, Infallible>(endpoint.handle(request).await) }
            });
            // A client that goes away is none of our concern.
            let _ = http1::Builder::new().timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), answer).await;
        });
    }
}
