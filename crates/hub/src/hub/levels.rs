//! Which log messages a client wants. Servers that are shared speak at the level of the client that wants to hear most, and
//! each client gets what it asked for.

use super::Hub;
use bytes::Bytes;
use rialto_mcp::json;
use rialto_mcp::peer::Peer;
use std::sync::PoisonError;

/// The levels of log messages, the least important first.
pub(super) const LEVELS: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// What a client is shown that has not said what it wants, where others have.
pub(super) const DEFAULT_LEVEL: usize = 1;

/// How important a log message is; one of no known level is shown to everybody.
pub(super) fn rank(level: Option<&[u8]>) -> usize {
    let level = level.and_then(json::string);
    level.and_then(|level| LEVELS.iter().position(|known| *known == level)).unwrap_or(LEVELS.len())
}

impl Hub {
    /// Notes which log messages a client wants; gives the level that servers must speak at, as written.
    pub(super) fn note_level(&self, peer: &Peer, level: &[u8]) -> Vec<u8> {
        let rank = rank(Some(level));
        // What is no level is for the server to refuse.
        if !self.is_shared || rank >= LEVELS.len() {
            return level.to_vec();
        }
        let mut peers = self.peers();
        if let Some(entry) = peers.get_mut(&peer.serial) {
            entry.level = Some(rank);
        }
        let lowest = peers.values().filter_map(|entry| entry.level).min();
        lowest.map_or_else(|| level.to_vec(), |lowest| json::quoted(LEVELS[lowest]))
    }

    /// The log messages that one client wants, as written.
    pub(crate) fn level_of(&self, peer: &Peer) -> Option<Bytes> {
        if !self.is_shared {
            return self.log_level();
        }
        let level = self.peers().get(&peer.serial).and_then(|entry| entry.level);
        Some(json::quoted(LEVELS[level.unwrap_or(DEFAULT_LEVEL)]).into())
    }

    pub(crate) fn log_level(&self) -> Option<Bytes> {
        self.log_level.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
