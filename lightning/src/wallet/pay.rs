//! `pay_invoice`: sending money. The answer comes when the network says how it went, which for a held payment may be long.

use super::Wallet;
use super::answer::{Answer, Outcome, params};
use super::book::{Claim, Direction, Entry, Stage};
use crate::nwc::{Code, Failure};
use ldk_node::NodeError;
use ldk_node::bitcoin::hashes::Hash;
use ldk_node::lightning_invoice::{Bolt11Invoice, Bolt11InvoiceDescriptionRef};
use ldk_node::lightning_types::payment::PaymentHash;
use serde::Deserialize;
use serde_json::Value;

#[derive(Debug, Deserialize)]
struct Wanted {
    invoice: String,
    /// In thousandths of a satoshi, for an invoice that leaves it to us.
    amount: Option<u64>,
}

pub(super) fn parse(invoice: &str) -> Result<Bolt11Invoice, Failure> {
    invoice.parse().map_err(|error| Failure::new(Code::Other, format!("the invoice cannot be read: {error}")))
}

impl Wallet {
    pub(super) fn pay_invoice(&mut self, given: &Value) -> Outcome {
        let wanted: Wanted = params(given)?;
        let invoice = parse(&wanted.invoice)?;
        let hash = PaymentHash(invoice.payment_hash().to_byte_array());
        let amount_msat = amount(&invoice, wanted.amount)?;
        if invoice.recover_payee_pub_key() == self.node.node_id() {
            return Err(Failure::new(Code::PaymentFailed, "the invoice is this wallet's own"));
        }
        match self.book.find(&hash).map(|entry| entry.stage) {
            None | Some(Stage::Failed) => {}
            // Not PAYMENT_FAILED: whoever reads that may think that no money has moved.
            Some(Stage::Settled { .. }) => return Err(Failure::new(Code::Other, "the invoice is paid already")),
            Some(_) => return Err(Failure::new(Code::Other, "the invoice is being paid already")),
        }
        if invoice.is_expired() {
            return Err(Failure::new(Code::PaymentFailed, "the invoice has expired"));
        }
        self.can_send(amount_msat)?;
        let payment = self.node.bolt11_payment();
        let sent = match invoice.amount_milli_satoshis() {
            Some(_) => payment.send(&invoice, None),
            None => payment.send_using_amount(&invoice, amount_msat, None),
        };
        match sent {
            Ok(_) => {}
            Err(NodeError::DuplicatePayment) => {
                return Err(Failure::new(Code::Other, "the invoice is paid, or being paid, already"));
            }
            Err(error) => return Err(Failure::new(Code::PaymentFailed, error.to_string())),
        }
        self.book.write(entry(&invoice, hash, amount_msat, self.moment().now));
        Ok(Answer::When(hash))
    }

    /// A payment that has no chance is not begun: the node would try for seconds.
    fn can_send(&self, amount_msat: u64) -> Result<(), Failure> {
        let spendable_msat = self.spendable_msat();
        if amount_msat <= spendable_msat {
            return Ok(());
        }
        if spendable_msat == 0 && amount_msat <= self.balance_msat() {
            let words = "too many payments are on their way; try again when some have ended";
            return Err(Failure::new(Code::PaymentFailed, words));
        }
        let words = format!("{amount_msat} msat are more than the {spendable_msat} msat that can be sent");
        Err(Failure::new(Code::InsufficientBalance, words))
    }
}

/// What is to be paid: what the invoice says, or what the client says if it leaves that open.
fn amount(invoice: &Bolt11Invoice, given: Option<u64>) -> Result<u64, Failure> {
    match (invoice.amount_milli_satoshis(), given) {
        (Some(amount), None) | (None, Some(amount)) => Ok(amount),
        (Some(amount), Some(given)) if amount == given => Ok(amount),
        (Some(amount), Some(_)) => Err(Failure::new(Code::Other, format!("the invoice is for {amount} msat"))),
        (None, None) => Err(Failure::new(Code::Other, "the invoice names no amount, so the request must")),
    }
}

fn entry(invoice: &Bolt11Invoice, hash: PaymentHash, amount_msat: u64, created_at: u64) -> Entry {
    let made_at = invoice.duration_since_epoch().as_secs();
    let (description, description_hash) = match invoice.description() {
        Bolt11InvoiceDescriptionRef::Direct(text) => (Some(text.to_string()), None),
        Bolt11InvoiceDescriptionRef::Hash(hash) => (None, Some(hash.0.to_string())),
    };
    Entry {
        hash,
        direction: Direction::Outgoing,
        claim: Claim::AtOnce,
        invoice: invoice.to_string(),
        description: description.filter(|text| !text.is_empty()),
        description_hash,
        amount_msat,
        fees_msat: 0,
        created_at,
        expires_at: made_at.saturating_add(invoice.expiry_time().as_secs()),
        stage: Stage::Pending,
    }
}
