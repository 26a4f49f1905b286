//! What became of payments of which it was not certain: after a crash, a wallet that did not answer, a call that failed.

use super::Payer;
use super::pay::{EXPIRY_MARGIN_SECS, LOCK_SECS};
use nostr::prelude::PublicKey;
use rialto_ledger::spending::{Entry, Rail};
use rialto_payment::wallet::{Error, Payment};
use std::time::Duration;

/// How long the wallet has for all of it; what it does not tell in time is asked for the next time.
const PATIENCE: Duration = Duration::from_secs(20);

impl Payer {
    /// Asks the wallet about all payments that are not certain: to one provider, or to all. What stays uncertain counts as
    /// spent.
    pub async fn resolve(&self, provider: Option<PublicKey>) {
        let now = self.now();
        let provider = provider.map(|provider| *provider.as_bytes());
        let found = self.ledger(move |spending| spending.unresolved(provider.as_ref(), now)).await;
        let Ok(Ok(entries)) = found else { return };
        let all = async {
            for entry in entries {
                match entry.rail {
                    Rail::Lightning => self.resolve_payment(&entry).await,
                    Rail::Ecash => self.resolve_token(&entry).await,
                }
            }
        };
        let _ = tokio::time::timeout(PATIENCE, all).await;
    }

    async fn resolve_payment(&self, entry: &Entry) {
        let Some(wallet) = &self.wallet else { return };
        let request = entry.spend.request;
        // If it cannot be noted, it stays uncertain, and is asked for again.
        let _ = match wallet.look_up_payment(entry.spend.hash).await {
            Ok(Payment::Paid(receipt)) => self.settle(request, receipt.fee).await,
            // Until then another process, or the wallet's relay, may be about to pay it.
            Ok(Payment::Not) if self.now() > entry.spend.expires.saturating_add(EXPIRY_MARGIN_SECS) => {
                self.fail(request, "it never left").await
            }
            Ok(Payment::Not | Payment::Pending) | Err(_) => Ok(()),
        };
    }

    /// Ecash that the provider has not taken is ours again.
    async fn resolve_token(&self, entry: &Entry) {
        let (Some(purse), Some(token)) = (&self.purse, &entry.token) else { return };
        if self.now() <= entry.changed.max(entry.spend.at).saturating_add(LOCK_SECS + EXPIRY_MARGIN_SECS) {
            return;
        }
        let request = entry.spend.request;
        let _ = match purse.take_back(token).await {
            Ok(_) => self.fail(request, "the provider did not take it; it was taken back").await,
            Err(Error::Refused(_)) => self.settle(request, entry.fee).await,
            Err(_) => Ok(()),
        };
    }
}
