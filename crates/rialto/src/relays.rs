//! Which relays to use: those given, else those in `RIALTO_RELAYS`, else the one on this machine.

use clap::Args;
use nostr::prelude::RelayUrl;

use crate::environment::{self, Environment};
use crate::failure::Failure;

/// Where `rialto relay` and `rialto serve` listen unless told otherwise.
pub(crate) const LOCAL: &str = "127.0.0.1:7447";

/// The flag of every command that talks to relays.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct RelayFlags {
    /// Relay to use; may be repeated [env: RIALTO_RELAYS, separated by spaces or commas]
    #[arg(long, value_name = "URL")]
    pub(crate) relay: Vec<String>,
}

impl RelayFlags {
    /// What was asked for; empty if nothing was.
    pub(crate) fn chosen(&self, environment: &Environment) -> Result<Vec<RelayUrl>, Failure> {
        let from_variable = environment.raw(environment::RELAYS).map(|value| value.to_string_lossy().into_owned());
        let texts: Vec<String> = match from_variable {
            Some(text) if self.relay.is_empty() => {
                text.split([' ', ',']).filter(|word| !word.is_empty()).map(ToOwned::to_owned).collect()
            }
            _ => self.relay.clone(),
        };
        texts.iter().map(|text| parse(text)).collect()
    }
}

/// The relay on this machine.
pub(crate) fn local() -> Result<RelayUrl, Failure> {
    parse(&format!("ws://{LOCAL}"))
}

pub(crate) fn parse(text: &str) -> Result<RelayUrl, Failure> {
    // Nobody types the scheme.
    let whole = if text.contains("://") { text.to_owned() } else { format!("wss://{text}") };
    RelayUrl::parse(&whole).map_err(|_| {
        Failure::usage(format!("`{text}` is no relay address"))
            .code("relay_invalid")
            .hint("for example wss://relay.example")
    })
}
