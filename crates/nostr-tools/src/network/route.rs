//! Which relays an event goes to, and where it may be found.

use super::Network;
use crate::failure::Failure;
use crate::publish::Route;
use nostr::prelude::{RelayUrl, UnsignedEvent};

impl Network {
    /// Where an event goes, if nobody wishes otherwise.
    pub(crate) async fn destinations(
        &self,
        _draft: &UnsignedEvent,
        route: Route<'_>,
    ) -> Result<Vec<RelayUrl>, Failure> {
        Ok(match route {
            Route::Usual => self.relays.clone(),
            Route::Also(more) => self.relays.iter().chain(more).cloned().collect(),
            Route::Only(these) => these.to_vec(),
        })
    }
}
