//! One demand, from reading it to its end.

use super::approval::{Decision, Question, Reason};
use super::bill::Bill;
use super::unpaid::{Unpaid, Why};
use super::{Met, Payer, Purchase, max_fee};
use crate::error::Demand;
use nostr::prelude::{EventId, PublicKey};
use rialto_ledger::spending::{Approval, Denied, Rail, Spend};
use rialto_payment::amount::Msat;
use rialto_payment::secret::Secret;
use rialto_payment::wallet::{Error, Lock, Payment, Purse, Receipt, Wallet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// How long ecash belongs to the provider alone; what it has not taken by then comes back to us.
pub(super) const LOCK_SECS: u64 = 60 * 60;

/// Pauses between look-ups, at first and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LAST_PAUSE: Duration = Duration::from_secs(15);

/// Clocks differ, and what has left before an invoice expired may arrive a little later.
pub(super) const EXPIRY_MARGIN_SECS: u64 = 120;

/// How far a payment has come, for whoever waits for the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// A person may have to think about it.
    Deciding,
    Paying,
}

/// Sends a token to the provider.
pub(crate) type Deliver = Box<dyn Fn(&Secret) -> Result<(), crate::error::Error> + Send + Sync>;

/// For which request, and how ecash gets to its provider.
pub(crate) struct Errand {
    pub(crate) request: EventId,
    pub(crate) provider: PublicKey,
    pub(crate) demand: Demand,
    pub(crate) phase: watch::Sender<Phase>,
    pub(crate) deliver: Deliver,
}

impl Purchase {
    /// Meets a demand of the provider that was asked. To be called once for a request; if it is called again nevertheless,
    /// nothing more is paid.
    pub(crate) async fn meet(self: Arc<Self>, errand: Errand) -> Result<Met, Unpaid> {
        let bill = Bill::read(&errand.demand, self.payer.network, self.payer.now());
        let amount = bill.as_ref().ok().map(|bill| bill.amount);
        let met = match bill {
            Ok(bill) => self.meet_bill(&errand, &bill).await,
            Err(why) => Err(why),
        };
        met.map_err(|why| Unpaid { demand: errand.demand, amount, why })
    }

    async fn meet_bill(&self, errand: &Errand, bill: &Bill) -> Result<Met, Why> {
        let Some(wallet) = &self.payer.wallet else {
            let is_shown = self.approver.show(bill).await;
            return if is_shown { Ok(Met::Elsewhere { until: bill.invoice.expires }) } else { Err(Why::NoWallet) };
        };
        self.payer.resolve(Some(errand.provider)).await;
        let fee = self.allow(errand, bill).await?;
        errand.phase.send_replace(Phase::Paying);
        let request = *errand.request.as_bytes();
        // A person may have thought about it for long.
        if let Err(why) = bill.check(self.payer.now()) {
            self.payer.fail(request, "the invoice expired before it was paid").await?;
            return Err(why);
        }
        if let Some(met) = self.pay_by_token(errand, bill, fee).await? {
            return Ok(met);
        }
        if !self.payer.begin(request, Rail::Lightning, None).await? {
            return Err(Why::Again);
        }
        let paid = self.payer.pay(wallet, request, bill, fee).await?;
        Ok(Met::Paid { amount: bill.amount, fee: paid.fee, rail: Rail::Lightning })
    }

    /// Has the payment allowed and noted; says what sending it may cost.
    async fn allow(&self, errand: &Errand, bill: &Bill) -> Result<Msat, Why> {
        let mut spend = Spend {
            request: *errand.request.as_bytes(),
            provider: *errand.provider.as_bytes(),
            service: self.service.clone(),
            tool: self.tool.clone(),
            amount: bill.amount,
            max_fee: max_fee(bill.amount),
            hash: bill.invoice.hash,
            invoice: bill.invoice.text.clone(),
            expires: bill.invoice.expires,
            approved: Approval::Person,
            at: self.payer.now(),
        };
        if let Some(allowed) = self.allowed {
            if spend.amount > allowed {
                return Err(Why::AboveLimit(allowed));
            }
            spend.max_fee = spend.max_fee.min(allowed.saturating_sub(spend.amount));
            return self.payer.reserve(spend).await.map_err(Why::from);
        }
        let reason = match self.announced() {
            Some(price) if bill.amount > price => Reason::AbovePrice { price },
            _ => match self.payer.reserve(Spend { approved: Approval::Budget, ..spend.clone() }).await {
                Ok(fee) => return Ok(fee),
                Err(denied @ (Denied::NoBudget | Denied::PerCall { .. } | Denied::PerDay { .. })) => {
                    Reason::Budget(denied)
                }
                Err(other) => return Err(other.into()),
            },
        };
        let question = Question {
            service: self.service.clone(),
            tool: self.tool.clone(),
            amount: spend.amount,
            max_fee: spend.max_fee,
            reason,
        };
        match self.approver.ask(&question).await {
            Decision::Pay => {
                spend.at = self.payer.now();
                self.payer.reserve(spend).await.map_err(Why::from)
            }
            Decision::Decline => Err(Why::Declined),
            Decision::NobodyThere => Err(match question.reason {
                Reason::Budget(denied) => denied.into(),
                Reason::AbovePrice { price } => Why::AbovePrice { price },
            }),
        }
    }

    /// Pays with ecash, if the provider takes some that we have. `None` if not, and nothing has left.
    async fn pay_by_token(&self, errand: &Errand, bill: &Bill, max_fee: Msat) -> Result<Option<Met>, Why> {
        let Some(purse) = &self.payer.purse else { return Ok(None) };
        let same = |one: &str, other: &str| one.trim_end_matches('/') == other.trim_end_matches('/');
        let ours = purse.mints();
        let Some(mint) = ours.iter().find(|mint| bill.mints.iter().any(|taken| same(taken, mint))) else {
            return Ok(None);
        };
        let lock = Lock { key: *errand.provider.as_bytes(), until: Some(self.payer.now() + LOCK_SECS) };
        let request = *errand.request.as_bytes();
        let token = match purse.send(mint, bill.amount, lock).await {
            Ok(token) => token,
            // The coins of a token that we did not get come back when they can; paying another way meanwhile would be a
            // second payment.
            Err(error) if error.is_unknown() => {
                self.payer.begin(request, Rail::Ecash, None).await?;
                self.payer.doubt(request, &error.to_string()).await?;
                return Err(Why::Unclear(error.to_string()));
            }
            Err(_) => return Ok(None),
        };
        let worth = purse.read(&token).map_or(bill.amount, |token| token.amount);
        let fee = worth.saturating_sub(bill.amount);
        if fee > max_fee {
            // It stays ours: nobody else has seen it.
            let _ = purse.take_back(&token).await;
            return Ok(None);
        }
        if !self.payer.begin(request, Rail::Ecash, Some(token.clone())).await? {
            let _ = purse.take_back(&token).await;
            return Err(Why::Again);
        }
        if let Err(error) = (errand.deliver)(&token) {
            return Err(self.payer.keep(purse, request, &token, &error.to_string()).await);
        }
        Ok(Some(Met::Paid { amount: bill.amount, fee, rail: Rail::Ecash }))
    }
}

impl Payer {
    async fn reserve(&self, spend: Spend) -> Result<Msat, Denied> {
        let reserved = self.ledger(move |spending| spending.reserve(&spend)).await;
        reserved.unwrap_or_else(|why| Err(Denied::Ledger(rialto_ledger::ledger::Error::Broken(why.to_string()))))
    }

    pub(super) async fn begin(&self, request: [u8; 32], rail: Rail, token: Option<Secret>) -> Result<bool, Why> {
        let now = self.now();
        Ok(self.ledger(move |spending| spending.begin(&request, rail, token.as_ref(), now)).await??)
    }

    pub(super) async fn fail(&self, request: [u8; 32], note: &str) -> Result<(), Why> {
        let (note, now) = (note.to_owned(), self.now());
        Ok(self.ledger(move |spending| spending.failed(&request, &note, now)).await??)
    }

    async fn doubt(&self, request: [u8; 32], note: &str) -> Result<(), Why> {
        let (note, now) = (note.to_owned(), self.now());
        Ok(self.ledger(move |spending| spending.unknown(&request, &note, now)).await??)
    }

    pub(crate) async fn settle(&self, request: [u8; 32], fee: Msat) -> Result<(), Why> {
        let now = self.now();
        Ok(self.ledger(move |spending| spending.paid(&request, fee, now)).await??)
    }

    /// Takes back a token that could not be sent.
    async fn keep(&self, purse: &Arc<dyn Purse>, request: [u8; 32], token: &Secret, why: &str) -> Why {
        let noted = match purse.take_back(token).await {
            Ok(_) => self.fail(request, why).await,
            Err(_) => self.doubt(request, why).await,
        };
        noted.err().unwrap_or_else(|| Why::Wallet(why.to_owned()))
    }

    /// Pays an invoice that is allowed and noted.
    async fn pay(&self, wallet: &Arc<dyn Wallet>, request: [u8; 32], bill: &Bill, fee: Msat) -> Result<Receipt, Why> {
        let asked = wallet.pay(&bill.invoice, fee).await;
        let error = match asked {
            Ok(receipt) => {
                // That the money has left does not change if it cannot be noted; the wallet is asked again later.
                let _ = self.settle(request, receipt.fee).await;
                return Ok(receipt);
            }
            Err(error) => error,
        };
        if !error.is_unknown() {
            self.fail(request, &error.to_string()).await?;
            return Err(Why::Wallet(error.to_string()));
        }
        self.doubt(request, &error.to_string()).await?;
        self.look_up(wallet, request, bill, error).await
    }

    /// Looks until it is certain what has become of a payment. That the wallet knows nothing of it is certain only when nobody
    /// can pay the invoice any more: what we asked for may still be on its way to the wallet.
    async fn look_up(
        &self,
        wallet: &Arc<dyn Wallet>,
        request: [u8; 32],
        bill: &Bill,
        error: Error,
    ) -> Result<Receipt, Why> {
        let end = bill.invoice.expires.saturating_add(EXPIRY_MARGIN_SECS);
        let mut pause = FIRST_PAUSE;
        loop {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LAST_PAUSE);
            match wallet.look_up_payment(bill.invoice.hash).await {
                Ok(Payment::Paid(receipt)) => {
                    let _ = self.settle(request, receipt.fee).await;
                    return Ok(receipt);
                }
                Ok(Payment::Not) if self.now() > end => {
                    self.fail(request, "it never left").await?;
                    return Err(Why::Wallet(error.to_string()));
                }
                Ok(Payment::Pending) => {}
                Ok(Payment::Not) | Err(_) if self.now() <= end => {}
                Ok(Payment::Not) | Err(_) => return Err(Why::Unclear(error.to_string())),
            }
        }
    }
}
