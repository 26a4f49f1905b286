//! Everything that tools work on.

use crate::failure::Failure;
use crate::guard::Guard;
use crate::keyring::Keyring;
use crate::network::Network;
use nostr::prelude::RelayUrl;
use rialto_relay::clock::{Clock, SystemClock};
use std::path::PathBuf;
use std::sync::Arc;

/// What a session begins with.
#[derive(Debug)]
pub struct Options {
    /// Where identities and settings are kept.
    pub directory: PathBuf,
    /// Relays to use beside those that the user has chosen.
    pub relays: Vec<RelayUrl>,
    pub guard: Guard,
}

/// One user's tools at work.
#[derive(Debug)]
pub struct Session {
    pub(crate) keyring: Keyring,
    pub(crate) network: Network,
    pub(crate) guard: Guard,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Session {
    /// Reads what is kept. Nothing is connected to before it is needed.
    pub fn open(options: Options) -> Result<Self, Failure> {
        let Options { directory, relays, guard } = options;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        Ok(Self {
            keyring: Keyring::open(&directory)?,
            network: Network::new(&directory, relays, clock.clone())?,
            guard,
            clock,
        })
    }
}
