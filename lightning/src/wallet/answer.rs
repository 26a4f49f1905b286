//! From a request's method to what is done about it, and the plain questions: what the wallet is, and what it has.

use super::Wallet;
use crate::nwc::{Code, Failure, METHODS, NOTIFICATIONS, Request, Ticket};
use ldk_node::bitcoin::hex::FromHex;
use ldk_node::lightning_types::payment::PaymentHash;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// What becomes of a request that is not refused.
#[derive(Debug)]
pub(super) enum Answer {
    Now(Value),
    /// Once something becomes of this payment.
    When(PaymentHash),
}

pub(super) type Outcome = Result<Answer, Failure>;

/// Reads a request's parameters.
pub(super) fn params<T: DeserializeOwned>(params: &Value) -> Result<T, Failure> {
    T::deserialize(params).map_err(|error| Failure::new(Code::Other, format!("the parameters are wrong: {error}")))
}

/// Reads 32 bytes in hexadecimal.
pub(super) fn bytes(what: &str, text: &str) -> Result<[u8; 32], Failure> {
    <[u8; 32]>::from_hex(text).map_err(|_| Failure::new(Code::Other, format!("{what} is not 32 bytes in hexadecimal")))
}

impl Wallet {
    pub(super) fn answer(&mut self, request: &Request) {
        let ticket: &Ticket = &request.ticket;
        let params = &request.params;
        let outcome = match ticket.method.as_str() {
            "get_info" => self.info(),
            "get_balance" => Ok(Answer::Now(json!({"balance": self.balance_msat()}))),
            "make_invoice" => self.make_invoice(params),
            "lookup_invoice" => self.lookup_invoice(params),
            "list_transactions" => self.list_transactions(params),
            "pay_invoice" => self.pay_invoice(params),
            "make_hold_invoice" => self.make_hold_invoice(params),
            "settle_hold_invoice" => self.settle_hold_invoice(params),
            "cancel_hold_invoice" => self.cancel_hold_invoice(params),
            other => Err(Failure::new(Code::NotImplemented, format!("this wallet knows no `{other}`"))),
        };
        match outcome {
            Ok(Answer::Now(result)) => self.reply(ticket, &Ok(result)),
            Ok(Answer::When(hash)) => self.waiting.entry(hash).or_default().push(ticket.clone()),
            Err(failure) => self.reply(ticket, &Err(failure)),
        }
    }

    fn info(&self) -> Outcome {
        let best = self.node.status().current_best_block;
        Ok(Answer::Now(json!({
            "alias": self.name,
            "color": "#f7931a",
            "pubkey": self.node.node_id().to_string(),
            "network": "regtest",
            "block_height": best.height,
            "block_hash": best.block_hash.to_string(),
            "methods": METHODS,
            "notifications": NOTIFICATIONS,
        })))
    }

    /// What belongs to the wallet, without what channels keep back as a security and without what is on its way out.
    pub(super) fn balance_msat(&self) -> u64 {
        self.node.list_channels().iter().map(|channel| channel.outbound_capacity_msat).sum()
    }

    /// What can be sent at this moment, in several parts if need be.
    pub(super) fn spendable_msat(&self) -> u64 {
        let usable = self.node.list_channels().into_iter().filter(|channel| channel.is_usable);
        usable.map(|channel| channel.next_outbound_htlc_limit_msat).sum()
    }
}
