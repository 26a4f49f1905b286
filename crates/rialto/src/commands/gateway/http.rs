//! The gateway for many clients, over HTTP.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use rialto_http::server::{self, Checked, Options};
use rialto_hub::event::Events;
use rialto_hub::plan::Plan;
use rialto_hub::{Figures, Hub};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::commands::gateway::reload::{self, HangUp};
use crate::commands::gateway::{Sources, new_guard, tell, token};
use crate::failure::{Failure, Outcome};
use crate::signals::Stop;
use crate::talk::{Aside, Listener, Talk};

/// Where to listen if nothing else is said.
const ADDRESS: &str = "127.0.0.1:7400";

/// One figure of a server.
type Value = fn(&Figures) -> u64;

#[derive(Debug, Args)]
pub(super) struct Flags {
    /// Serve many clients over HTTP [default address: 127.0.0.1:7400]
    #[arg(
        long = "http",
        value_name = "ADDRESS",
        num_args = 0..=1,
        default_missing_value = ADDRESS,
        value_parser = parse_address
    )]
    pub(super) address: Option<SocketAddr>,

    /// File with the bearer token that clients must show [default: one of your own, made when first needed]
    #[arg(long, value_name = "FILE", requires = "address", conflicts_with = "no_token")]
    token_file: Option<PathBuf>,

    /// Let every program of this machine in without a token
    #[arg(long, requires = "address")]
    no_token: bool,

    /// Show your token, and do nothing else
    #[arg(long, exclusive = true)]
    pub(super) print_token: bool,

    /// Name by which clients may call this machine (Host), beside localhost; may be repeated
    #[arg(long, value_name = "HOST", requires = "address")]
    allow_host: Vec<String>,

    /// Web page origin that may call, such as https://app.example; may be repeated
    #[arg(long, value_name = "ORIGIN", requires = "address")]
    allow_origin: Vec<String>,
}

/// An address with a port, or a port of this machine alone.
fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let port = text.strip_prefix("localhost:").or_else(|| text.strip_prefix(':')).unwrap_or(text);
    if let Ok(port) = port.parse() {
        return Ok(SocketAddr::from(([127, 0, 0, 1], port)));
    }
    text.parse().map_err(|_| "write an address with a port, such as 127.0.0.1:7401, or a port alone".to_owned())
}

/// Serves clients until a signal comes, and finishes what runs then.
pub(super) async fn serve(flags: Flags, plan: Plan, sources: &Sources<'_>, paths: Vec<PathBuf>, talk: Talk) -> Outcome {
    let address = flags.address.unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 7400)));
    if flags.no_token && !address.ip().is_loopback() {
        return Err(Failure::usage(format!("without a token, everybody who reaches {address} could use your servers"))
            .code("token_needed")
            .hint("leave out --no-token, or listen on 127.0.0.1"));
    }
    let token =
        if flags.no_token { None } else { Some(token::load(flags.token_file.as_deref(), sources.environment)?) };
    let in_use = |error: &std::io::Error| {
        let failure = Failure::unexpected(format!("cannot listen on {address}")).because(error);
        failure.hint("name another address:  rialto gateway --http 127.0.0.1:7401")
    };
    let listener = TcpListener::bind(address).await.map_err(|error| in_use(&error))?;
    let address = listener.local_addr().map_err(|error| in_use(&error))?;
    raise_limit();
    let guard = new_guard()?;
    let (aside, last_words) = Aside::new(talk);
    let hub = Hub::start_shared(plan, guard, Events::new(move |event| tell(&aside, &event)));
    let mut stop = Stop::listen()?;
    let options = Options {
        token: token.as_ref().map(|(token, _)| token.clone()),
        hosts: flags.allow_host,
        origins: flags.allow_origin,
        probe: Some(probe(&hub)),
        gauges: Some(gauges(&hub)),
    };
    talk.info(&format!("listening on http://{address}/mcp (also /healthz and /metrics)"));
    match &token {
        Some((_, path)) => talk.info(&format!(
            "clients must send `Authorization: Bearer TOKEN`; the token is in {}, rialto gateway --print-token shows yours",
            path.display()
        )),
        None => talk.warn("every program of this machine may use these servers (--no-token)"),
    }
    let (ending, ended) = watch::channel(false);
    let served = {
        let mut serving = std::pin::pin!(server::serve(hub.clone(), listener, options, ended));
        // A terminal that is closed ends what runs in it.
        let hang_up = if Listener::of_stderr() == Listener::Terminal { HangUp::Ends } else { HangUp::Reloads };
        let reloading = reload::watch(&hub, sources, paths, hang_up, talk);
        let served = tokio::select! {
            served = &mut serving => Some(served),
            failed = reloading => return failed,
            () = stop.asked() => None,
        };
        match served {
            Some(served) => served,
            None => {
                ending.send_replace(true);
                stop.or(serving).await.unwrap_or(Ok(()))
            }
        }
    };
    // If servers do not end in time, the guard ends them.
    stop.or(hub.stop()).await;
    drop(hub);
    last_words.wait();
    served.map_err(|error| Failure::unexpected("cannot serve over HTTP").because(&error))
}

fn probe(hub: &Arc<Hub>) -> server::Probe {
    let hub = Arc::downgrade(hub);
    Arc::new(move || {
        let hub = hub.upgrade();
        Box::pin(async move {
            let Some(hub) = hub else { return Vec::new() };
            hub.check().await.into_iter().map(|(name, outcome)| Checked { name, outcome }).collect()
        })
    })
}

fn gauges(hub: &Arc<Hub>) -> server::Gauges {
    let hub = Arc::downgrade(hub);
    Arc::new(move |out| {
        let figures = hub.upgrade().map(|hub| hub.figures()).unwrap_or_default();
        let rows: [(&str, &str, &str, Value); 3] = [
            ("rialto_server_up", "gauge", "Whether the server is ready.", |server| server.is_ready.into()),
            ("rialto_server_starts_total", "counter", "How often the server was started.", |server| server.starts),
            ("rialto_server_calls_total", "counter", "Requests passed on to the server.", |server| server.calls),
        ];
        for (name, kind, words, value) in rows {
            let _ = write!(out, "# HELP {name} {words}\n# TYPE {name} {kind}\n");
            for server in &figures {
                let label = server.name.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
                let _ = writeln!(out, "{name}{{server=\"{label}\"}} {}", value(server));
            }
        }
    })
}

/// Each connection is an open file, and the usual allowance is small.
fn raise_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

#[cfg(test)]
mod tests {
    use super::parse_address;

    #[test]
    fn addresses_as_people_write_them() {
        for (text, address) in [
            ("127.0.0.1:7400", "127.0.0.1:7400"),
            ("7401", "127.0.0.1:7401"),
            (":7401", "127.0.0.1:7401"),
            ("localhost:7401", "127.0.0.1:7401"),
            ("[::1]:0", "[::1]:0"),
            ("0.0.0.0:80", "0.0.0.0:80"),
        ] {
            assert_eq!(parse_address(text).map(|address| address.to_string()).as_deref(), Ok(address), "{text}");
        }
        for text in ["", "localhost", "127.0.0.1", "127.0.0.1:99999", "99999", "example.com:80"] {
            assert!(parse_address(text).is_err(), "{text}");
        }
    }
}
