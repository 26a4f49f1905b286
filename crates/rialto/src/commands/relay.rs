//! `rialto relay`: a Nostr relay on this machine.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use rialto_relay::embedded::{Limits, Options, Relay};
use serde_json::json;

use crate::commands::wait_for;
use crate::failure::{Failure, Outcome};
use crate::output;
use crate::signals::Stop;
use crate::talk::{Format, Talk};

const EXAMPLES: &str = "\
Examples:
  rialto relay                                      On ws://127.0.0.1:7447, in memory
  rialto relay --store events.jsonl                 Events survive a restart
  rialto relay --listen 0.0.0.0:7447 --require-auth --url wss://relay.example.com
  rialto relay --listen 127.0.0.1:0 --json          Any free port, which is told on stdout

Look at it:
  curl -H 'Accept: application/nostr+json' http://127.0.0.1:7447";

/// Run a Nostr relay
///
/// Keeps events in memory, or in a file, and passes them on. Speaks NIP-01, 09, 11, 13, 40, 42, 45, 50 and 70. Ends
/// with Ctrl-C.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Where to listen; port 0 takes any free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7447")]
    listen: SocketAddr,

    /// File that keeps events, one a line; created if needed [default: memory only]
    #[arg(long, value_name = "FILE")]
    store: Option<PathBuf>,

    /// Serve only clients that prove who they are (NIP-42)
    #[arg(long)]
    require_auth: bool,

    /// Address by which clients know the relay, if it is not the one it listens on
    #[arg(long, value_name = "URL", value_parser = relay_url)]
    url: Option<String>,

    /// Name in the relay's information document
    #[arg(long, value_name = "NAME", default_value = "rialto")]
    name: String,

    /// Longest event, as JSON
    #[arg(long, value_name = "N", default_value_t = Limits::default().max_event_bytes, value_parser = at_least_one)]
    max_event_bytes: usize,

    /// How many events are kept; the oldest go first
    #[arg(long, value_name = "N", default_value_t = Limits::default().max_events, value_parser = at_least_one)]
    max_events: usize,

    /// How many clients may be connected at the same time
    #[arg(long, value_name = "N", default_value_t = Limits::default().max_connections, value_parser = at_least_one)]
    max_connections: usize,

    /// How many events a client may publish in a minute [default: any number]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    events_per_minute: Option<u32>,

    /// Leading zero bits that an event's id must have (NIP-13)
    #[arg(long, value_name = "BITS", default_value_t = 0)]
    min_pow: u8,
}

/// Clients sign this address when they prove who they are, so a wrong one would keep everybody out.
fn relay_url(text: &str) -> Result<String, String> {
    let rest = text.strip_prefix("wss://").or_else(|| text.strip_prefix("ws://"));
    match rest {
        Some(rest) if !rest.is_empty() && !rest.starts_with('/') => Ok(text.to_owned()),
        _ => Err("must begin with ws:// or wss:// and name a host".to_owned()),
    }
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("must be a number of at least 1".to_owned()),
        Ok(number) => Ok(number),
    }
}

impl Arguments {
    fn options(self) -> Options {
        let defaults = Limits::default();
        let limits = Limits {
            max_event_bytes: self.max_event_bytes,
            // A message is an event and a few words around it.
            max_message_bytes: defaults.max_message_bytes.max(self.max_event_bytes.saturating_add(1024)),
            max_events: self.max_events,
            max_connections: self.max_connections,
            events_per_minute: self.events_per_minute,
            min_pow_difficulty: self.min_pow,
            ..defaults
        };
        Options {
            listen: self.listen,
            store: self.store,
            limits,
            name: self.name,
            require_auth: self.require_auth,
            url: self.url,
        }
    }
}

pub(crate) fn run(arguments: Arguments, talk: &Talk) -> Outcome {
    wait_for(serve(arguments.options(), *talk))
}

/// Serves until it is asked to end.
async fn serve(options: Options, talk: Talk) -> Outcome {
    let mut stop = Stop::listen()?;
    let is_open_to_all = !options.listen.ip().is_loopback() && !options.require_auth;
    let store = options.store.clone();
    let relay = Relay::start(options).await.map_err(|error| cannot_start(&error))?;
    if is_open_to_all {
        talk.warn("everybody who can reach this machine can use the relay; --require-auth asks who they are");
    }
    announce(&relay, store.as_ref(), &talk)?;
    stop.asked().await;
    stop.or(relay.stop()).await;
    Ok(())
}

fn announce(relay: &Relay, store: Option<&PathBuf>, talk: &Talk) -> Outcome {
    let url = relay.url();
    let place = match store {
        Some(file) => format!("events are kept in {}", file.display()),
        None => "events are kept in memory only".to_owned(),
    };
    talk.info(&format!("relay at {url}; {place}"));
    talk.info("give this address to any Nostr client; Ctrl-C ends it");
    match talk.format {
        Format::Json => output::json(&json!({ "url": url, "address": relay.address(), "store": store })),
        Format::Text => Ok(()),
    }
}

fn cannot_start(error: &std::io::Error) -> Failure {
    let failure = Failure::unexpected("the relay cannot start").cause(error.to_string());
    match error.kind() {
        ErrorKind::AddrInUse => {
            failure.code("address_in_use").hint("rialto relay --listen 127.0.0.1:0    takes any free port")
        }
        ErrorKind::AddrNotAvailable => {
            failure.code("address_unknown").hint("--listen takes an address of this machine, such as 127.0.0.1:7447")
        }
        ErrorKind::ResourceBusy => failure.code("store_in_use").hint("give each relay its own --store"),
        _ => failure,
    }
}
