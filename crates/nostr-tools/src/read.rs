//! How tools read: anonymously, from where such events are, and as the user only where a relay of the user's own wants that.

use crate::failure::Failure;
use crate::network::{PATIENCE, Progress, Route};
use crate::result::{EventItem, EventItemsResult};
use crate::tool::Turn;
use nostr::prelude::{Event, EventId, Filter, PublicKey, RelayUrl};
use std::time::Duration;

impl Turn<'_> {
    /// The events that fit, the newest first.
    pub(crate) async fn fetch(
        &self,
        filters: &[Filter],
        route: Route<'_>,
        patience: Duration,
    ) -> Result<Vec<Event>, Failure> {
        let network = &self.session.network;
        let found = network.fetch_along(filters, route, patience, &Progress::of(self)).await;
        let Err(failure) = found else { return found };
        // Nobody is asked to sign, and no relay learns who asks, unless there is no other way.
        let ours = network.closed_relays()?;
        if ours.is_empty() || !matches!(route, Route::Usual | Route::Also(_)) {
            return Err(failure);
        }
        let Ok(signer) = self.session.keyring.signer().await else { return Err(failure) };
        let answers = network.fetch_as(&signer, filters, &ours, patience, &Progress::of(self)).await?;
        answers.heard().map_err(|_| failure)
    }

    /// The same, as tools give them.
    pub(crate) async fn list(
        &self,
        filters: &[Filter],
        route: Route<'_>,
        patience: Duration,
        limit: usize,
    ) -> Result<EventItemsResult, Failure> {
        let events = self.fetch(filters, route, patience).await?;
        let items: Vec<EventItem> = events.iter().take(limit).map(EventItem::from).collect();
        Ok(EventItemsResult { count: items.len() as u64, items })
    }

    /// One event, looked for on our relays and on those that were named with it.
    pub(crate) async fn find(&self, id: EventId, hints: &[RelayUrl]) -> Result<Option<Event>, Failure> {
        let filter = Filter::new().id(id).limit(1);
        Ok(self.fetch(&[filter], Route::Also(hints), PATIENCE).await?.into_iter().next())
    }

    /// Who we are; there need not be a secret.
    pub(crate) fn me(&self) -> Result<PublicKey, Failure> {
        let active = self.session.keyring.active()?;
        active.map(|identity| identity.public_key).ok_or_else(|| {
            Failure::no_signer(
                "there is no active key; make one with nostr_keys_generate, or choose one with nostr_keys_set_active",
            )
        })
    }
}
