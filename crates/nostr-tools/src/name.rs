//! Names on the web, for the two tools that ask about them.

use crate::failure::Failure;
use crate::network::patience;
use crate::result::quoted;
use crate::tool::Turn;
use nostr::nips::nip05::Nip05Address;
use rialto_relay::address;
use rialto_relay::nip05::{self, Error, Found};

/// Relays of one name that are told; a document could name any number.
pub(crate) const MAX_RELAYS: usize = 20;

pub(crate) fn parse(identifier: &str) -> Result<Nip05Address, Failure> {
    let parsed = Nip05Address::parse(identifier.trim());
    parsed.map_err(|_| Failure::invalid("a name is name@domain").at("/identifier"))
}

/// What the domain says, unless it takes too long.
pub(crate) async fn ask(
    turn: &Turn<'_>,
    address: &Nip05Address,
    timeout_secs: Option<u64>,
) -> Result<Result<Found, Error>, Failure> {
    let asking = nip05::look_up(address, &turn.session.network.reach);
    let asked = tokio::time::timeout(patience(timeout_secs), asking).await;
    asked.map_err(|_| Failure::timeout(format!("{} does not answer", address.domain())))
}

pub(crate) async fn look_up(turn: &Turn<'_>, identifier: &str, timeout_secs: Option<u64>) -> Result<Found, Failure> {
    ask(turn, &parse(identifier)?, timeout_secs).await?.map_err(|error| failure(&error))
}

pub(crate) fn failure(error: &Error) -> Failure {
    let words = quoted(&error.to_string());
    match error {
        Error::Malformed => Failure::invalid(words).at("/identifier"),
        Error::Address(address::Error::Private(_)) => Failure::denied(words).at("/identifier"),
        Error::NoName(..) => Failure::not_found(words),
        _ => Failure::internal(words),
    }
}
