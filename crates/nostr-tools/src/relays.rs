//! The relays as the tools that manage them show them.

use crate::failure::Failure;
use crate::network::is_at;
use crate::result::{RelayListResult, RelayStatusRow, quoted};
use crate::session::Session;
use nostr::prelude::RelayUrl;
use rialto_relay::status::{State, Status};

/// Our relays and, if wanted, those that are used on account of others.
pub(crate) fn rows(session: &Session, with_others: bool) -> Result<Vec<RelayStatusRow>, Failure> {
    let statuses = session.network.status();
    let ours = session.network.all_relays()?;
    let row = |one: &crate::store::Chosen| RelayStatusRow {
        url: one.url.as_str_without_trailing_slash().to_owned(),
        status: words(statuses.iter().find(|status| is_at(status, &one.url))),
        read: one.read,
        write: one.write,
        discovery: false,
    };
    let mut rows: Vec<RelayStatusRow> = ours.iter().map(row).collect();
    let others = statuses.iter().filter(|status| with_others && !ours.iter().any(|one| is_at(status, &one.url)));
    rows.extend(others.map(|status| RelayStatusRow {
        url: status.url.to_string(),
        status: words(Some(status)),
        read: true,
        write: false,
        discovery: true,
    }));
    Ok(rows)
}

/// Only those that were named.
pub(crate) fn some(session: &Session, relays: &[RelayUrl]) -> Result<RelayListResult, Failure> {
    let mut rows = rows(session, false)?;
    let is_named = |row: &RelayStatusRow| relays.iter().any(|relay| relay.as_str_without_trailing_slash() == row.url);
    rows.retain(is_named);
    Ok(RelayListResult { relays: rows })
}

fn words(status: Option<&Status>) -> String {
    match status.map(|status| &status.state) {
        None => "disconnected".to_owned(),
        Some(State::Connecting) => "connecting".to_owned(),
        Some(State::Connected | State::Subscribed) => "connected".to_owned(),
        Some(State::Down { reason, .. }) => format!("unreachable: {}", quoted(reason)),
    }
}
