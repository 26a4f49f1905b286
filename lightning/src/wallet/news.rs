//! What the node tells: payments that came, went, or came back.

use super::Wallet;
use super::book::{Preimage, Stage, State};
use crate::nwc::{self, Code, Failure};
use ldk_node::Event as News;
use ldk_node::lightning::ln::channelmanager::PaymentId;
use ldk_node::lightning_types::payment::PaymentHash;
use ldk_node::payment::PaymentKind;
use serde_json::json;

impl Wallet {
    pub(super) fn learn(&mut self, news: &News) {
        match *news {
            News::PaymentSuccessful { payment_hash, payment_preimage, fee_paid_msat, .. } => {
                self.sent(payment_hash, payment_preimage.map(Preimage), fee_paid_msat.unwrap_or(0));
            }
            News::PaymentFailed { payment_hash: Some(hash), ref reason, .. } => {
                let reason =
                    reason.as_ref().map_or_else(|| "nobody knows why".to_owned(), |reason| format!("{reason:?}"));
                self.came_back(hash, &reason);
            }
            News::PaymentReceived { payment_hash, amount_msat, .. } => self.received(payment_hash, amount_msat),
            News::PaymentClaimable { payment_hash, claimable_amount_msat, claim_deadline, .. } => {
                self.accept(payment_hash, claimable_amount_msat, claim_deadline);
            }
            // Channels were opened before the wallet was, and nobody forwards anything here.
            _ => {}
        }
    }

    fn sent(&mut self, hash: PaymentHash, preimage: Option<Preimage>, fees_msat: u64) {
        let at = self.moment().now;
        if let Some(entry) = self.book.find_mut(&hash) {
            entry.fees_msat = fees_msat;
            entry.stage = Stage::Settled { at, preimage };
        }
        let revealed = preimage.map(Preimage::reveal);
        self.reply_waiting(&hash, &Ok(json!({"preimage": revealed, "fees_paid": fees_msat})));
        self.notify("payment_sent", &hash);
    }

    fn came_back(&mut self, hash: PaymentHash, reason: &str) {
        if let Some(entry) = self.book.find_mut(&hash) {
            entry.stage = Stage::Failed;
        }
        let words = format!("the payment came back: {reason}");
        self.reply_waiting(&hash, &Err(Failure::new(Code::PaymentFailed, words)));
    }

    fn received(&mut self, hash: PaymentHash, amount_msat: u64) {
        let at = self.moment().now;
        let known = self.node.payment(&PaymentId(hash.0)).and_then(|payment| match payment.kind {
            PaymentKind::Bolt11 { preimage, .. } => preimage.map(Preimage),
            _ => None,
        });
        if let Some(entry) = self.book.find_mut(&hash) {
            // The node does not remember what it was told by us.
            let preimage = match entry.stage {
                Stage::Claiming { preimage, .. } => Some(preimage),
                _ => known,
            };
            entry.amount_msat = amount_msat;
            entry.stage = Stage::Settled { at, preimage };
        }
        self.reply_waiting(&hash, &Ok(json!({})));
        self.notify("payment_received", &hash);
    }

    /// Money has come that is to be held. The node takes it for invoices that are expired or cancelled, too; we do not.
    fn accept(&mut self, hash: PaymentHash, amount_msat: u64, deadline: Option<u32>) {
        let moment = self.moment();
        match self.book.find_mut(&hash) {
            Some(entry) if entry.state(moment) == State::Pending => {
                entry.amount_msat = amount_msat;
                entry.stage = Stage::Accepted { deadline };
                self.notify("hold_invoice_accepted", &hash);
            }
            // The same news again.
            Some(entry) if matches!(entry.stage, Stage::Accepted { .. } | Stage::Claiming { .. }) => {}
            // If even this fails, the payment goes back at its deadline.
            _ => drop(self.send_back(hash)),
        }
    }

    fn notify(&self, name: &str, hash: &PaymentHash) {
        let Some(entry) = self.book.find(hash) else { return };
        for event in nwc::notifications(&self.connection, name, &entry.report(self.moment())) {
            self.pool.publish(&event);
        }
    }
}
