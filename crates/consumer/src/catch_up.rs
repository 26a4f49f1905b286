//! Sealed answers that came while a relay was away.
//!
//! Wraps are dated back by up to two days, so no date tells new ones from old ones. The subscription therefore takes only
//! what comes from now on; and when a relay is back while something sealed is open, all its wraps are looked through once.

use crate::customer::Inner;
use nostr::prelude::{Filter, Kind, PublicKey, Timestamp};
use rialto_relay::seal;
use rialto_relay::status::Status;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// How long a relay has to bring its wraps.
const PATIENCE: Duration = Duration::from_secs(20);

/// Wraps for a customer.
pub(crate) fn wraps(me: PublicKey) -> Filter {
    Filter::new().kind(Kind::GiftWrap).pubkey(me)
}

/// Looks through the wraps that relays have stored.
pub(crate) async fn run(customer: Arc<Inner>) {
    let since = customer.clock.now().as_secs().saturating_sub(seal::SPREAD_SECS);
    let filter = wraps(customer.me()).since(Timestamp::from(since));
    let mut query = customer.pool.query(&[filter], PATIENCE);
    // A customer that is gone needs no answers.
    let customer = Arc::downgrade(&customer);
    while let Some(event) = query.next().await {
        let Some(customer) = customer.upgrade() else { return };
        customer.take(event);
    }
}

/// How often each relay has been connected to. Tells a new connection from a subscription that was only changed.
#[derive(Debug, Default)]
pub(crate) struct Connections(HashMap<Arc<str>, u64>);

impl Connections {
    /// Whether this relay was connected to anew since it was asked last.
    pub(crate) fn is_new(&mut self, relay: &Arc<str>, statuses: &[Status]) -> bool {
        let count = statuses.iter().find(|status| status.url == *relay).map_or(0, |status| status.counts.connections);
        self.0.insert(relay.clone(), count) != Some(count)
    }
}
