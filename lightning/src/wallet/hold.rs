//! `settle_hold_invoice` and `cancel_hold_invoice`: taking money that waits, or sending it back.

use super::Wallet;
use super::answer::{Answer, Outcome, bytes, params};
use super::book::{Claim, Entry, Preimage, Stage, State};
use crate::nwc::{Code, Failure};
use ldk_node::bitcoin::hashes::{Hash, sha256};
use ldk_node::lightning_types::payment::{PaymentHash, PaymentPreimage};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Settle {
    preimage: String,
}

#[derive(Debug, Deserialize)]
struct Cancel {
    payment_hash: String,
}

fn other(words: &str) -> Failure {
    Failure::new(Code::Other, words)
}

impl Wallet {
    pub(super) fn settle_hold_invoice(&mut self, given: &Value) -> Outcome {
        let settle: Settle = params(given)?;
        let preimage = Preimage(PaymentPreimage(bytes("preimage", &settle.preimage)?));
        let hash = PaymentHash(sha256::Hash::hash(&preimage.0.0).to_byte_array());
        let moment = self.moment();
        let entry = self.held(&hash)?;
        let amount_msat = entry.amount_msat;
        let deadline = match (entry.state(moment), entry.stage) {
            (State::Settled, _) => return Ok(Answer::Now(json!({}))),
            (_, Stage::Claiming { .. }) => return Ok(Answer::When(hash)),
            (State::Accepted, Stage::Accepted { deadline }) => deadline,
            (State::Pending, _) => return Err(other("nobody has paid the invoice yet")),
            (State::Expired, _) => return Err(other("the invoice has expired, and nobody has paid it")),
            _ => return Err(other("the payment has been sent back")),
        };
        entry.stage = Stage::Claiming { deadline, preimage };
        let claimed = self.node.bolt11_payment().claim_for_hash(hash, amount_msat, preimage.0);
        if let Err(error) = claimed {
            self.held(&hash)?.stage = Stage::Accepted { deadline };
            return Err(Failure::new(Code::Internal, format!("the payment cannot be taken: {error}")));
        }
        Ok(Answer::When(hash))
    }

    pub(super) fn cancel_hold_invoice(&mut self, given: &Value) -> Outcome {
        let cancel: Cancel = params(given)?;
        let hash = PaymentHash(bytes("payment_hash", &cancel.payment_hash)?);
        let entry = self.held(&hash)?;
        match entry.stage {
            Stage::Failed => return Ok(Answer::Now(json!({}))),
            Stage::Settled { .. } | Stage::Claiming { .. } => return Err(other("the payment has been taken")),
            Stage::Pending | Stage::Accepted { .. } => entry.stage = Stage::Failed,
        }
        self.send_back(hash)?;
        Ok(Answer::Now(json!({})))
    }

    /// Sends a held payment back to where it came from; if none has come, there is none to send.
    pub(super) fn send_back(&self, hash: PaymentHash) -> Result<(), Failure> {
        let failed = self.node.bolt11_payment().fail_for_hash(hash);
        failed.map_err(|error| Failure::new(Code::Internal, format!("the payment cannot be sent back: {error}")))
    }

    fn held(&mut self, hash: &PaymentHash) -> Result<&mut Entry, Failure> {
        let entry = self.book.find_mut(hash).filter(|entry| entry.claim == Claim::Held);
        entry.ok_or_else(|| Failure::new(Code::NotFound, "there is no such hold invoice"))
    }
}
