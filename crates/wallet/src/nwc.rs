//! Nostr Wallet Connect (NIP-47): a wallet that is asked by encrypted events on relays.
//!
//! There is no limit for fees in the protocol: what a payment may cost is the wallet's to decide.

mod address;
mod answer;
mod line;
pub(crate) mod protocol;

pub use address::Invalid;

use crate::answer::{invoice, malformed, read};
use address::Address;
use answer::{Balance, Made, Paid, Transaction, Transactions};
use line::{Answer, Insistence, Line, REQUEST_LIFE};
use rialto_payment::amount::Msat;
use rialto_payment::invoice::Invoice;
use rialto_payment::secret::{PaymentHash, Preimage, Secret};
use rialto_payment::wallet::{Abilities, Error, Later, Order, Payment, Receipt, Standing, Wallet};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::broadcast;
use tokio::time::Instant;

/// How long a payment is waited for: longer, and nothing is known anyway.
const PAY_PATIENCE: Duration = Duration::from_secs(60);

/// How long anything else is waited for: it takes a wallet a moment, or something is wrong.
const PATIENCE: Duration = Duration::from_secs(15);

/// How far clocks may differ when we say that a request is over.
const CLOCKS: Duration = Duration::from_secs(30);

/// How many of the last payments are searched for one.
const MAX_LISTED: u64 = 100;

const HOLD: [&str; 3] = ["make_hold_invoice", "settle_hold_invoice", "cancel_hold_invoice"];

/// How long answers are waited for.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    pub pay: Duration,
    pub other: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { pay: PAY_PATIENCE, other: PATIENCE }
    }
}

/// A wallet behind Nostr Wallet Connect.
pub struct Nwc {
    name: String,
    line: Line,
    patience: Patience,
    /// Payments that were asked for and not answered, and when the wallet will not take the request up any more.
    unanswered: Mutex<HashMap<PaymentHash, Instant>>,
}

impl fmt::Debug for Nwc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl Nwc {
    /// Begins to connect to the wallet's relays. Needs a tokio runtime.
    pub fn open(reference: &Secret, patience: Patience) -> Result<Self, Invalid> {
        let address = Address::read(reference)?;
        let relays: Vec<&str> = address.relays.iter().map(|relay| relay.as_str_without_trailing_slash()).collect();
        let wallet: String = address.wallet.to_hex().chars().take(8).collect();
        let name = format!("Nostr Wallet Connect to {wallet}… at {}", relays.join(", "));
        Ok(Self { name, line: Line::open(address), patience, unanswered: Mutex::default() })
    }

    async fn ask(&self, method: &'static str, params: Value) -> Result<Answer, Error> {
        self.line.ask(method, &params, self.patience.other, Insistence::Again).await
    }

    async fn offers(&self, method: &str) -> Result<bool, Error> {
        Ok(self.line.info().await?.methods.iter().any(|known| known == method))
    }

    /// What this connection may do; the wallet as such may be able to do more.
    async fn methods(&self) -> Result<Vec<String>, Error> {
        if self.offers("get_info").await?
            && let Ok(result) = self.ask("get_info", json!({})).await?
            && let Ok(answer::Abilities { methods }) = read(result)
        {
            return Ok(methods);
        }
        Ok(self.line.info().await?.methods.clone())
    }

    async fn make_invoice(&self, order: &Order, hash: Option<PaymentHash>) -> Result<Invoice, Error> {
        let mut params = json!({ "amount": order.amount.get(), "description": order.memo, "expiry": order.expiry });
        let method = match hash {
            Some(hash) => {
                params["payment_hash"] = json!(hash.to_string());
                HOLD[0]
            }
            None => "make_invoice",
        };
        let Made { invoice: text } = read(self.ask(method, params).await??)?;
        invoice(&text, order, hash)
    }

    /// What has become of an invoice after a wallet would not settle or cancel it: perhaps what was wanted, before.
    async fn unless(
        &self,
        answer: Answer,
        hash: PaymentHash,
        is_done: impl FnOnce(&Standing) -> bool,
    ) -> Result<(), Error> {
        let Err(complaint) = answer else { return Ok(()) };
        if is_done(&self.standing(hash).await?) { Ok(()) } else { Err(complaint.into()) }
    }

    async fn standing(&self, hash: PaymentHash) -> Result<Standing, Error> {
        match self.ask("lookup_invoice", json!({ "payment_hash": hash.to_string() })).await? {
            Ok(result) => read::<Transaction>(result)?.standing(hash),
            Err(complaint) if complaint.is_not_found() => Ok(Standing::Missing),
            Err(complaint) => Err(complaint.into()),
        }
    }

    async fn pay_invoice(&self, invoice: &Invoice) -> Result<Receipt, Error> {
        if invoice.amount.is_none() {
            return Err(Error::Refused("the invoice names no amount".to_owned()));
        }
        let until = Instant::now() + self.patience.pay.max(REQUEST_LIFE) + CLOCKS;
        // An answer to this request says nothing of an earlier one.
        let is_first = !self.is_unanswered(invoice.hash);
        self.set_unanswered(invoice.hash, Some(until));
        let params = json!({ "invoice": invoice.text });
        let answer = self.line.ask("pay_invoice", &params, self.patience.pay, Insistence::Once).await;
        if is_first && !answer.as_ref().is_err_and(Error::is_unknown) {
            self.set_unanswered(invoice.hash, None);
        }
        match answer? {
            Ok(result) => read::<Paid>(result)?.receipt(invoice.hash),
            Err(complaint) if complaint.is_plain() => Err(complaint.into()),
            // It may have been paid before, or be on its way still.
            Err(complaint) => match self.payment(invoice.hash).await {
                Ok(Payment::Paid(receipt)) => Ok(receipt),
                Ok(Payment::Pending) => Err(Error::Unknown("the payment is on its way".to_owned())),
                Ok(Payment::Not) => Err(complaint.into()),
                Err(Error::Unsupported(_)) if complaint.is_failed_payment() => Err(complaint.into()),
                Err(_) => Err(Error::Unknown("the payment could not be looked up".to_owned())),
            },
        }
    }

    async fn payment(&self, hash: PaymentHash) -> Result<Payment, Error> {
        let answer = self.ask("lookup_invoice", json!({ "payment_hash": hash.to_string() })).await?;
        let found = match answer {
            Ok(result) => Some(read::<Transaction>(result)?).filter(Transaction::is_outgoing),
            Err(complaint) if complaint.is_not_found() => None,
            Err(complaint) => {
                let error = complaint.into();
                if !matches!(error, Error::Unsupported(_)) || !self.offers("list_transactions").await? {
                    return Err(error);
                }
                None
            }
        };
        // Some look for what came in only.
        let found = match found {
            None if self.offers("list_transactions").await? => {
                let params = json!({ "type": "outgoing", "unpaid": true, "limit": MAX_LISTED });
                let Transactions { transactions } = read(self.ask("list_transactions", params).await??)?;
                transactions.into_iter().find(|transaction| transaction.is_outgoing() && transaction.is_about(hash))
            }
            found => found,
        };
        match found.map_or(Ok(Payment::Not), |transaction| transaction.payment(hash))? {
            // A request that is still about may yet be taken up.
            Payment::Not if self.is_unanswered(hash) => Ok(Payment::Pending),
            payment => Ok(payment),
        }
    }

    fn set_unanswered(&self, hash: PaymentHash, until: Option<Instant>) {
        let mut unanswered = self.unanswered.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        unanswered.retain(|_, until| *until > now);
        match until {
            Some(until) => unanswered.insert(hash, until),
            None => unanswered.remove(&hash),
        };
    }

    fn is_unanswered(&self, hash: PaymentHash) -> bool {
        let unanswered = self.unanswered.lock().unwrap_or_else(PoisonError::into_inner);
        unanswered.get(&hash).is_some_and(|until| *until > Instant::now())
    }
}

impl Wallet for Nwc {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn abilities(&self) -> Later<'_, Abilities> {
        Box::pin(async {
            let methods = self.methods().await?;
            let has = |method: &str| methods.iter().any(|known| known == method);
            Ok(Abilities { hold: HOLD.into_iter().all(has), pay: has("pay_invoice") })
        })
    }

    fn make<'a>(&'a self, order: &'a Order) -> Later<'a, Invoice> {
        Box::pin(self.make_invoice(order, None))
    }

    fn hold<'a>(&'a self, order: &'a Order, hash: PaymentHash) -> Later<'a, Invoice> {
        Box::pin(self.make_invoice(order, Some(hash)))
    }

    fn settle<'a>(&'a self, preimage: &'a Preimage) -> Later<'a, ()> {
        Box::pin(async {
            let answer = self.ask(HOLD[1], json!({ "preimage": preimage.reveal_hex() })).await?;
            self.unless(answer, preimage.hash(), |standing| matches!(standing, Standing::Settled { .. })).await
        })
    }

    fn cancel(&self, hash: PaymentHash) -> Later<'_, ()> {
        Box::pin(async move {
            let answer = self.ask(HOLD[2], json!({ "payment_hash": hash.to_string() })).await?;
            self.unless(answer, hash, |standing| *standing == Standing::Over).await
        })
    }

    fn look_up(&self, hash: PaymentHash) -> Later<'_, Standing> {
        Box::pin(self.standing(hash))
    }

    fn pay<'a>(&'a self, invoice: &'a Invoice, _max_fee: Msat) -> Later<'a, Receipt> {
        Box::pin(self.pay_invoice(invoice))
    }

    fn look_up_payment(&self, hash: PaymentHash) -> Later<'_, Payment> {
        Box::pin(self.payment(hash))
    }

    fn balance(&self) -> Later<'_, Msat> {
        Box::pin(async {
            let Balance { balance } = read(self.ask("get_balance", json!({})).await??)?;
            Msat::new(balance).ok_or_else(|| malformed("there is not that much money"))
        })
    }

    fn hints(&self) -> Option<broadcast::Receiver<PaymentHash>> {
        Some(self.line.hints())
    }
}
