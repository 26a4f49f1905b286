//! Everything that tools work on.

use crate::failure::Failure;
use crate::guard::Guard;
use crate::keyring::{Keyring, Passphrase};
use crate::network::Network;
use nostr::prelude::RelayUrl;
use rialto_relay::clock::{Clock, SystemClock};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a session begins with.
#[derive(Debug)]
pub struct Options {
    /// Where identities and settings are kept.
    pub directory: PathBuf,
    /// Relays to use beside those that the user has chosen.
    pub relays: Vec<RelayUrl>,
    pub guard: Guard,
    /// What seals new secrets, and opens sealed ones.
    pub passphrase: Passphrase,
}

impl Options {
    /// No relays, no limits, no passphrase.
    pub fn new(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            relays: Vec::new(),
            guard: Guard::default(),
            passphrase: Passphrase::none(),
        }
    }
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
        let Options { directory, relays, guard, passphrase } = options;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        Ok(Self {
            keyring: Keyring::open(&directory, passphrase)?,
            network: Network::new(&directory, relays, clock.clone())?,
            guard,
            clock,
        })
    }

    /// Seconds since 1970, as keys and settings count them.
    pub(crate) fn seconds(&self) -> i64 {
        i64::try_from(self.clock.now().as_secs()).unwrap_or(i64::MAX)
    }
}
