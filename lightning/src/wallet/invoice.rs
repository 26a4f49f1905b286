//! `make_invoice` and `make_hold_invoice`: asking to be paid.

use super::Wallet;
use super::answer::{Answer, Outcome, bytes, params};
use super::book::{Claim, Direction, Entry, Stage};
use crate::nwc::{Code, Failure};
use ldk_node::bitcoin::hashes::{Hash, sha256};
use ldk_node::lightning_invoice::{Bolt11Invoice, Bolt11InvoiceDescription, Description, Sha256};
use ldk_node::lightning_types::payment::PaymentHash;
use serde::Deserialize;
use serde_json::Value;

/// How long an invoice is good for unless the client says otherwise: an hour, as everywhere.
const EXPIRY_SECS: u32 = 3600;

/// What both kinds of invoices are made of. How late a held payment may be taken (`min_cltv_expiry_delta`) is not among
/// it: ldk-node does not let us choose, and on a chain that stands still it is never too late.
#[derive(Debug, Deserialize)]
struct Wanted {
    /// In thousandths of a satoshi; up to the payer if there is none.
    #[serde(default)]
    amount: u64,
    description: Option<String>,
    description_hash: Option<String>,
    expiry: Option<u32>,
    /// Only for invoices whose payments are held.
    payment_hash: Option<String>,
}

impl Wanted {
    fn description(&self) -> Result<Bolt11InvoiceDescription, Failure> {
        if let Some(hash) = &self.description_hash {
            let hash = sha256::Hash::from_byte_array(bytes("description_hash", hash)?);
            return Ok(Bolt11InvoiceDescription::Hash(Sha256(hash)));
        }
        let text = self.description.clone().unwrap_or_default();
        let description = Description::new(text);
        let description =
            description.map_err(|_| Failure::new(Code::Other, "the description is longer than 639 bytes"))?;
        Ok(Bolt11InvoiceDescription::Direct(description))
    }
}

impl Wallet {
    pub(super) fn make_invoice(&mut self, given: &Value) -> Outcome {
        let wanted: Wanted = params(given)?;
        let (description, expiry) = (wanted.description()?, wanted.expiry.unwrap_or(EXPIRY_SECS));
        let payment = self.node.bolt11_payment();
        let invoice = match wanted.amount {
            0 => payment.receive_variable_amount(&description, expiry),
            amount => payment.receive(amount, &description, expiry),
        };
        self.made(wanted, invoice, Claim::AtOnce)
    }

    pub(super) fn make_hold_invoice(&mut self, given: &Value) -> Outcome {
        let wanted: Wanted = params(given)?;
        let Some(hash) = &wanted.payment_hash else {
            return Err(Failure::new(Code::Other, "payment_hash is missing: the client chooses it"));
        };
        let hash = PaymentHash(bytes("payment_hash", hash)?);
        // A second invoice would take the place of the first, and whoever pays that one would not be found.
        if self.book.find(&hash).is_some() {
            return Err(Failure::new(Code::Other, "there is an invoice or a payment with this payment_hash already"));
        }
        let (description, expiry) = (wanted.description()?, wanted.expiry.unwrap_or(EXPIRY_SECS));
        let payment = self.node.bolt11_payment();
        let invoice = match wanted.amount {
            0 => payment.receive_variable_amount_for_hash(&description, expiry, hash),
            amount => payment.receive_for_hash(amount, &description, expiry, hash),
        };
        self.made(wanted, invoice, Claim::Held)
    }

    fn made(&mut self, wanted: Wanted, made: Result<Bolt11Invoice, ldk_node::NodeError>, claim: Claim) -> Outcome {
        let invoice = made.map_err(|error| Failure::new(Code::Internal, format!("no invoice was made: {error}")))?;
        let created_at = invoice.duration_since_epoch().as_secs();
        let entry = Entry {
            hash: PaymentHash(invoice.payment_hash().to_byte_array()),
            direction: Direction::Incoming,
            claim,
            invoice: invoice.to_string(),
            description: wanted.description,
            description_hash: wanted.description_hash,
            amount_msat: wanted.amount,
            fees_msat: 0,
            created_at,
            expires_at: created_at.saturating_add(invoice.expiry_time().as_secs()),
            stage: Stage::Pending,
        };
        let report = entry.report(self.moment());
        self.book.write(entry);
        Ok(Answer::Now(report))
    }
}
